/* The middle layer after the loss of a rank. Runs as 2 ranks; rank 1 kills itself. Rank 0 prints each
 * failure, and at last calls a function without a result, which ends it. */
#include "acp.h"
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    int me = acp_rank(), on[] = { 1 };
    acp_ch_t from = acp_create_ch(1, 0);
    static char memory[64];
    acp_segbuf_t segments = me == 0 ? acp_create_dst_segbuf(1, memory, 8, 8) : acp_create_src_segbuf(0, memory, 8, 8);
    acp_vector_t vector = acp_create_vector(8, 1);
    acp_map_t map = acp_create_map(1, on, 4, 1);
    acp_element_t key = { acp_malloc(8, me), 8 };
    CHECK(from != NULL && segments != NULL && vector.ga != ACP_GA_NULL && map.ga != ACP_GA_NULL);
    acp_sync();
    if (me == 1)
        raise(SIGKILL);
    char byte;
    CHECK(acp_recv_ch(from, &byte, 1) == -1);
    CHECK(acp_connect_segbuf(segments) == -1);
    CHECK(acp_free_ch(from) == -1);
    CHECK(acp_malloc(8, 1) == ACP_GA_NULL && acp_create_list(1).ga == ACP_GA_NULL);
    CHECK(acp_size_vector(vector) == 0 && acp_at_vector(vector, 0) == ACP_GA_NULL);
    CHECK(acp_begin_map(map).elem == ACP_GA_NULL && acp_find_map(map, key).elem == ACP_GA_NULL);
    /* Nothing of this depends on the lost rank. */
    acp_list_t list = acp_create_list(0);
    acp_push_back_list(list, key, 0);
    CHECK(acp_size_list(list) == 1);
    check_result("middle_lost");
    fflush(stdout);
    acp_clear_vector(vector);
    CHECK(!"the process continues");
    return check_result("continued");
}
