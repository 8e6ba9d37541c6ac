/*
 * Every process registers an array, writes its address to the starter memory of all processes, and
 * adds its rank to a counter in the starter memory of process 0; then each copies the array of its
 * right neighbour.
 */
#include "acp.h"
#include "check.h"

static uint64_t array[1000], copied[1000];

int main(int argc, char **argv)
{
    CHECK(acp_rank() == -1 && acp_sync() == -1);
    CHECK(acp_init(&argc, &argv) == 0);
    int me = acp_rank(), all = acp_procs();
    CHECK(me >= 0 && me < all && acp_colors() >= 1);
    for (int i = 0; i < 1000; i++) {
        array[i] = (uint64_t)me * 1000 + (uint64_t)i;
    }

    acp_atkey_t key = acp_register_memory(array, sizeof array, 0);
    acp_atkey_t key_copied = acp_register_memory(copied, sizeof copied, 0);
    CHECK(key != ACP_ATKEY_NULL && key_copied != ACP_ATKEY_NULL);
    uint64_t *starter = acp_query_address(acp_query_starter_ga(me));
    CHECK(starter != NULL);

    starter[1] = acp_query_ga(key, array);
    CHECK(acp_query_rank(starter[1]) == me && acp_query_address(starter[1]) == array);
    acp_handle_t added = acp_add8(acp_query_starter_ga(me) + 16, acp_query_starter_ga(0), (uint64_t)me + 1, ACP_HANDLE_NULL);
    CHECK(added == 1);
    acp_complete(added);
    CHECK(acp_sync() == 0);
    if (me == 0) {
        CHECK(starter[0] == (uint64_t)all * ((uint64_t)all + 1) / 2);
    }

    int right = (me + 1) % all;
    acp_ga_t there = acp_query_ga(key_copied, copied);
    acp_complete(acp_copy(there, acp_query_starter_ga(right) + 8, 8, ACP_HANDLE_NULL));
    acp_ga_t of_right = copied[0];
    CHECK(acp_query_rank(of_right) == right);
    acp_handle_t copy = acp_copy(there, of_right, sizeof copied, ACP_HANDLE_ALL);
    CHECK(copy == added + 2);
    acp_complete(copy);
    CHECK(acp_inquire(copy) == 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(copied[i] == (uint64_t)right * 1000 + (uint64_t)i);
    }
    CHECK(acp_finalize() == 0);
    CHECK(acp_rank() == -1 && acp_copy(there, of_right, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    return check_result("first");
}
