/*
 * Ordered broadcast by one rank: a block goes from rank 0 to rank 1, from there to rank 2, and so on,
 * and a flag follows it. Rank 0 alone issues all copies. Each copy waits for the one before it, so no
 * rank passes on a block that it has not received, although rank 0 does not wait between them.
 *
 *   cc acp_broadcast.c -o acp_broadcast $(pkg-config --cflags --libs acp)
 *   onesided run -n 4 -- ./acp_broadcast
 */
#include <acp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1000 };

/* A rank's memory: what it receives, and the flag that says so. */
static struct {
    uint64_t block[WORDS];
    uint64_t flag;
} own;

/* Ends the job if a call has failed; the reason is printed if ONESIDED_VERBOSE is set. */
static void check(int succeeded, const char *call)
{
    if (!succeeded) {
        acp_abort(call);
    }
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) != 0) {
        fprintf(stderr, "acp_init failed\n");
        return EXIT_FAILURE;
    }
    int me = acp_rank(), ranks = acp_procs();

    /* Every rank says in its starter memory where its block is. */
    acp_atkey_t key = acp_register_memory(&own, sizeof own, 0);
    check(key != ACP_ATKEY_NULL, "acp_register_memory");
    acp_ga_t *starter = acp_query_address(acp_query_starter_ga(me));
    starter[0] = acp_query_ga(key, &own);
    acp_sync();

    if (me == 0) {
        for (int i = 0; i < WORDS; i++) {
            own.block[i] = (uint64_t)i * i;
        }
        own.flag = 1;
        /* The addresses of all ranks, copied one after the other into this rank's starter memory. */
        acp_ga_t here = acp_query_starter_ga(0);
        acp_handle_t last = ACP_HANDLE_NULL;
        for (int rank = 1; rank < ranks; rank++) {
            last = acp_copy(here + 8 * (acp_ga_t)rank, acp_query_starter_ga(rank), 8, ACP_HANDLE_NULL);
            check(last != ACP_HANDLE_NULL, "acp_copy");
        }
        acp_complete(last);
        /* Neither rank of most of these copies is rank 0. */
        for (int rank = 1; rank < ranks; rank++) {
            last = acp_copy(starter[rank], starter[rank - 1], sizeof own.block, last);
            last = acp_copy(starter[rank] + sizeof own.block, starter[rank - 1] + sizeof own.block, 8, last);
            check(last != ACP_HANDLE_NULL, "acp_copy");
        }
        acp_complete(last);
    }

    /* A flag that is set means that the whole block is here. In virtual time, time passes in calls. */
    while (*(volatile uint64_t *)&own.flag == 0) {
        acp_inquire(ACP_HANDLE_ALL);
        sched_yield();
    }
    int wrong = 0;
    for (int i = 0; i < WORDS; i++) {
        wrong += own.block[i] != (uint64_t)i * i;
    }
    check(wrong == 0, "the block is wrong");
    acp_sync();
    if (me == 0) {
        printf("broadcast: %d ranks have the block\n", ranks);
    }
    return acp_finalize() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
