/* Calls with null handles, and handles of things that never existed. */
#include "middle.h"

static int never(const acp_element_t left, const acp_element_t right)
{
    CHECK(!"a comparison of nothing");
    return left.ga < right.ga;
}

static acp_element_t nothing;
static acp_pair_t no_pair;

static void no_channels(acp_ch_t channel, acp_request_t request)
{
    char byte = 0;
    size_t size = 0;
    CHECK(acp_nbsend_ch(channel, &byte, 1) == NULL && acp_nbrecv_ch(channel, &byte, 1) == NULL);
    CHECK(acp_send_ch(channel, &byte, 1) == -1 && acp_recv_ch(channel, &byte, 1) == -1);
    CHECK(acp_nbfree_ch(channel) == NULL && acp_free_ch(channel) == -1);
    CHECK(acp_wait_ch(request) == (size_t)-1);
    CHECK(acp_waitall_ch(&request, 1, &size) == -1 && size == (size_t)-1 && acp_waitall_ch(&request, -1, &size) == -1);
}

static void no_segments(acp_segbuf_t segbuf)
{
    CHECK(acp_connect_segbuf(segbuf) == -1 && acp_isconnected_segbuf(segbuf) == -1);
    CHECK(acp_ready_segbuf(segbuf) == -1 && acp_ack_segbuf(segbuf) == -1);
    CHECK(acp_isready_segbuf(segbuf) == -1 && acp_isacked_segbuf(segbuf) == -1);
    CHECK(acp_query_segbuf_head(segbuf) == -1 && acp_query_segbuf_tail(segbuf) == -1);
    CHECK(acp_query_segbuf_sent(segbuf) == -1);
    CHECK(acp_disconnect_segbuf(segbuf) == -1 && acp_free_segbuf(segbuf) == -1);
}

static void no_space(acp_wsd_t space)
{
    acp_destroy_ws(space);
    CHECK(acp_read_ws(space, ACP_GA_NULL, 1, 0) == 1 && acp_write_ws(space, ACP_GA_NULL, 1, 0) == 1);
}

static void no_list(acp_ga_t ga)
{
    acp_list_t list = { ga };
    acp_list_it_t it = { list, ga };
    acp_destroy_list(list);
    acp_clear_list(list);
    CHECK(acp_empty_list(list) == 1 && acp_size_list(list) == 0);
    acp_swap_list(list, list);
    acp_assign_list(list, list);
    acp_assign_range_list(list, it, it);
    CHECK(acp_begin_list(list).elem == ACP_GA_NULL && acp_end_list(list).elem == ga);
    CHECK(acp_insert_list(it, nothing, 0).elem == ACP_GA_NULL);
    CHECK(acp_insert_range_list(it, it, it).elem == ACP_GA_NULL);
    CHECK(acp_erase_list(it).elem == ACP_GA_NULL && acp_erase_range_list(it, it).elem == ACP_GA_NULL);
    acp_push_back_list(list, nothing, 0);
    acp_push_front_list(list, nothing, 0);
    acp_pop_back_list(list);
    acp_pop_front_list(list);
    acp_sort_list(list, never);
    acp_merge_list(list, list, never);
    acp_reverse_list(list);
    acp_unique_list(list);
    acp_remove_list(list, nothing);
    acp_splice_list(it, it);
    acp_splice_range_list(it, it, it);
    acp_advance_list_it(it, 1);
    acp_increment_list_it(it);
    CHECK(acp_decrement_list_it(it).elem == ACP_GA_NULL);
    CHECK(acp_dereference_list_it(it).ga == ACP_GA_NULL && acp_distance_list_it(it, it) == 0);
}

/* The calls that vectors and deques share. */
#define NO_SEQUENCE(type)                                                                                              \
    static void no_##type(acp_ga_t ga)                                                                                 \
    {                                                                                                                  \
        acp_##type##_t object = { ga };                                                                                \
        acp_##type##_it_t it = { object, 0 };                                                                          \
        acp_destroy_##type(object);                                                                                    \
        acp_clear_##type(object);                                                                                      \
        CHECK(acp_empty_##type(object) == 1 && acp_size_##type(object) == 0 && acp_capacity_##type(object) == 0);      \
        acp_reserve_##type(object, 8);                                                                                 \
        acp_swap_##type(object, object);                                                                               \
        acp_assign_##type(object, object);                                                                             \
        acp_assign_range_##type(object, it, it);                                                                       \
        CHECK(acp_at_##type(object, 0) == ACP_GA_NULL);                                                                \
        CHECK(acp_begin_##type(object).index == 0 && acp_end_##type(object).index == 0);                               \
        CHECK(acp_insert_##type(it, ga, 8).index == 0 && acp_insert_range_##type(it, it, it).index == 0);              \
        CHECK(acp_erase_##type(it, 8).index == 0 && acp_erase_range_##type(it, it).index == 0);                        \
        acp_push_back_##type(object, ga, 8);                                                                           \
        acp_pop_back_##type(object, 8);                                                                                \
        CHECK(acp_advance_##type##_it(it, 1).index == 1 && acp_distance_##type##_it(it, it) == 0);                     \
    }
NO_SEQUENCE(vector)
NO_SEQUENCE(deque)

static void no_ends(acp_ga_t ga)
{
    acp_deque_t deque = { ga };
    acp_deque_it_t it = { deque, 0 };
    acp_vector_it_t vector_it = { { ga }, 0 };
    acp_push_front_deque(deque, ga, 8);
    acp_pop_front_deque(deque, 8);
    CHECK(acp_dereference_deque_it(it, 8).first.ga == ACP_GA_NULL);
    CHECK(acp_dereference_vector_it(vector_it) == ACP_GA_NULL);
}

/* The calls that sets, multisets and maps share. */
#define NO_TABLE(type, content)                                                                                        \
    static void no_##type(acp_ga_t ga, uint64_t parts, uint64_t slots)                                                 \
    {                                                                                                                  \
        acp_##type##_t table = { ga, parts, slots };                                                                   \
        acp_##type##_it_t it = { table, 0, 0, ga };                                                                    \
        acp_destroy_##type(table);                                                                                     \
        acp_clear_##type(table);                                                                                       \
        CHECK(acp_empty_##type(table) == 1 && acp_size_##type(table) == 0);                                            \
        CHECK(acp_empty_local_##type(table) == 1 && acp_size_local_##type(table) == 0);                                \
        CHECK(acp_insert_##type(table, content) == 0);                                                                 \
        acp_remove_##type(table, nothing);                                                                             \
        CHECK(acp_find_##type(table, nothing).elem == ACP_GA_NULL);                                                    \
        acp_assign_##type(table, table);                                                                               \
        acp_assign_local_##type(table, table);                                                                         \
        acp_merge_##type(table, table);                                                                                \
        acp_merge_local_##type(table, table);                                                                          \
        acp_move_##type(table, table);                                                                                 \
        acp_move_local_##type(table, table);                                                                           \
        acp_swap_##type(table, table);                                                                                 \
        CHECK(acp_begin_##type(table).elem == ACP_GA_NULL && acp_end_##type(table).elem == ACP_GA_NULL);               \
        CHECK(acp_begin_local_##type(table).elem == ACP_GA_NULL && acp_end_local_##type(table).elem == ACP_GA_NULL);   \
        CHECK(acp_increment_##type##_it(it).elem == ACP_GA_NULL);                                                      \
        (void)acp_dereference_##type##_it(it);                                                                         \
    }
NO_TABLE(set, nothing)
NO_TABLE(multiset, nothing)
NO_TABLE(map, no_pair)

static void no_tables(acp_ga_t ga, uint64_t parts, uint64_t slots)
{
    acp_multiset_t set = { ga, parts, slots };
    acp_map_t map = { ga, parts, slots };
    no_set(ga, parts, slots);
    no_multiset(ga, parts, slots);
    no_map(ga, parts, slots);
    acp_remove_all_multiset(set, nothing);
    CHECK(acp_retrieve_multiset(set, nothing) == 0 && acp_retrieve_map(map, no_pair) == 0);
    acp_clear_local_map(map);
}

void wrong(void)
{
    /* Never an address: a rank that no job has. */
    static const acp_ga_t gas[] = { ACP_GA_NULL, 12345, (acp_ga_t)-1 };
    no_channels(NULL, NULL);
    no_channels((acp_ch_t)(uintptr_t)123456789, (acp_request_t)(uintptr_t)123456789);
    no_segments(NULL);
    no_segments((acp_segbuf_t)(uintptr_t)123456789);
    no_space(NULL);
    no_space(ACP_WSD_NULL);
    for (int n = 0; n < 3; n++) {
        no_list(gas[n]);
        no_vector(gas[n]);
        no_deque(gas[n]);
        no_ends(gas[n]);
        no_tables(gas[n], 0, 0);
        no_tables(gas[n], 1, 1);
        no_tables(gas[n], (uint64_t)-1, (uint64_t)-1);
        acp_free(gas[n]);
    }
    /* Before acp_init and after acp_finalize nothing can be created. */
    if (ranks == 0) {
        int on[] = { 0 };
        CHECK(acp_create_ch(0, 1) == NULL && acp_create_ws(8) == ACP_WSD_NULL && acp_malloc(8, 0) == ACP_GA_NULL);
        CHECK(acp_create_src_segbuf(1, on, 4, 1) == NULL && acp_create_dst_segbuf(1, on, 4, 1) == NULL);
        CHECK(acp_create_vector(8, 0).ga == ACP_GA_NULL && acp_create_deque(8, 0).ga == ACP_GA_NULL);
        CHECK(acp_create_list(0).ga == ACP_GA_NULL && acp_create_set(1, on, 1, 0).ga == ACP_GA_NULL);
        CHECK(acp_create_multiset(1, on, 1, 0).ga == ACP_GA_NULL && acp_create_map(1, on, 1, 0).ga == ACP_GA_NULL);
    }
}
