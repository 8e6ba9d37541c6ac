/*
 * Several threads of each process start operations, wait for their own, and register memory, all at
 * the same time.
 */
#include <pthread.h>

#include "acp.h"
#include "check.h"

enum { THREADS = 4, TIMES = 500 };

static uint64_t previous[THREADS];
static acp_atkey_t key;

static void *run(void *argument)
{
    uint64_t *own = argument;
    acp_ga_t to = acp_query_ga(key, own);
    for (int i = 0; i < TIMES; i++) {
        acp_handle_t added = acp_add8(to, acp_query_starter_ga(0), 1, i % 2 ? ACP_HANDLE_NULL : ACP_HANDLE_ALL);
        CHECK(added > 0);
        acp_complete(added);
        if (i % 50 == 0) {
            uint64_t local[10] = { 0 };
            acp_atkey_t mine = acp_register_memory(local, sizeof local, 0);
            CHECK(mine != ACP_ATKEY_NULL);
            acp_complete(acp_copy(acp_query_ga(mine, local), acp_query_starter_ga(0), 8, ACP_HANDLE_NULL));
            CHECK(((volatile uint64_t *)local)[0] > 0);
            CHECK(acp_unregister_memory(mine) == 0);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    key = acp_register_memory(previous, sizeof previous, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, run, &previous[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    acp_sync();
    if (acp_rank() == 0) {
        uint64_t *counter = acp_query_address(acp_query_starter_ga(0));
        CHECK(*counter == (uint64_t)THREADS * TIMES * (uint64_t)acp_procs());
    }
    CHECK(acp_finalize() == 0);
    return check_result("threads");
}
