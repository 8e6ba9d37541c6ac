/* Addresses that processes give each other in their starter memory. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "acp.h"

/* Puts an address into the first word of this process's starter memory. */
static inline void publish(acp_ga_t address)
{
    *(volatile acp_ga_t *)acp_query_address(acp_query_starter_ga(acp_rank())) = address;
}

/* Returns the address that a process has published; `word`, registered as `key`, receives it. */
static inline acp_ga_t published(acp_atkey_t key, uint64_t *word, int rank)
{
    acp_complete(acp_copy(acp_query_ga(key, word), acp_query_starter_ga(rank), 8, ACP_HANDLE_NULL));
    return *(volatile uint64_t *)word;
}

#endif
