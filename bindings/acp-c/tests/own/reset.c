/*
 * Processes change their ranks. Three processes.
 */
#include "acp.h"
#include "check.h"
#include "exchange.h"

static uint64_t words[4];

/* Each process writes its rank into the memory of its right neighbour. */
static void works(void)
{
    int me = acp_rank(), all = acp_procs(), right = (me + 1) % all, left = (me + all - 1) % all;
    acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    CHECK(key != ACP_ATKEY_NULL && acp_query_rank(acp_query_ga(key, words)) == me);
    publish(acp_query_ga(key, words));
    words[0] = (uint64_t)me;
    acp_sync();
    acp_ga_t there = published(key, &words[1], right);
    CHECK(acp_query_rank(there) == right);
    acp_complete(acp_copy(there + 16, acp_query_ga(key, words), 8, ACP_HANDLE_NULL));
    acp_sync();
    CHECK(words[2] == (uint64_t)left);
    acp_sync();
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    int all = acp_procs();
    works();
    for (int round = 0; round < all; round++) {
        int next = (acp_rank() + 1) % all;
        acp_ga_t old = acp_query_starter_ga(acp_rank());
        *(uint64_t *)acp_query_address(old) = 7;
        CHECK(acp_reset(next) == 0 && acp_rank() == next && acp_procs() == all);
        volatile uint64_t *starter = acp_query_address(acp_query_starter_ga(next));
        CHECK(starter[0] == 0);
        /* Others may write from here on. */
        acp_sync();
        works();
    }
    /* Not a permutation: no process changes. */
    int me = acp_rank();
    CHECK(acp_reset(0) == -1 && acp_rank() == me);
    CHECK(acp_reset(me == 1 ? all : me) == -1 && acp_rank() == me);
    CHECK(acp_reset(me == 1 ? -1 : me) == -1 && acp_rank() == me);
    acp_sync();
    works();
    CHECK(acp_reset(me) == 0 && acp_rank() == me);
    acp_sync();
    works();
    CHECK(acp_finalize() == 0);
    return check_result("reset");
}
