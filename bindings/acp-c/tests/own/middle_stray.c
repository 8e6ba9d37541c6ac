/* Functions of containers on memory that holds something else. Any result will do, as long as each
 * call returns. Runs as any number of ranks; the argument is the seed. */
#include "acp.h"
#include "check.h"
#include <stdint.h>
#include <string.h>

enum { CALLS = 400, WORDS = 64 };

static uint64_t state;

static uint64_t random_below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

static acp_ga_t block[4];

/* An address in one of the blocks, or none. */
static acp_ga_t stray(void)
{
    switch (random_below(12)) {
    case 0:
        return ACP_GA_NULL;
    case 1:
        return random_below(1000);
    case 2:
        return acp_query_starter_ga(0) + 8 * random_below(400);
    default:
        return block[random_below(4)] + 8 * random_below(WORDS);
    }
}

static uint64_t word(void)
{
    switch (random_below(6)) {
    case 0:
        return 0;
    case 1:
        return (uint64_t)-1 >> random_below(60);
    case 2:
        return random_below(64);
    default:
        return stray();
    }
}

/* Fills the blocks anew. */
static void fill(void)
{
    for (int n = 0; n < 4; n++) {
        uint64_t *own = acp_query_address(acp_query_starter_ga(acp_rank()) + 4096);
        for (int at = 0; at < WORDS; at++)
            own[at] = word();
        acp_complete(acp_copy(block[n], acp_query_starter_ga(acp_rank()) + 4096, 8 * WORDS, ACP_HANDLE_NULL));
    }
}

static int compare(const acp_element_t left, const acp_element_t right)
{
    return left.ga < right.ga ? -1 : 1;
}

static void sequences(void)
{
    acp_vector_t vector = { stray() }, other = { stray() };
    acp_deque_t deque = { stray() }, back = { stray() };
    acp_vector_it_t it = { vector, (int)random_below(100) - 9 }, end = { vector, (int)random_below(100) };
    acp_deque_it_t at = { deque, it.index }, last = { deque, end.index };
    size_t size = (size_t)word();
    acp_push_back_vector(vector, stray(), size);
    acp_insert_vector(it, stray(), size);
    acp_insert_range_vector(it, it, end);
    acp_erase_range_vector(it, end);
    acp_assign_vector(vector, other);
    acp_swap_vector(vector, other);
    acp_dereference_vector_it(end);
    acp_reserve_vector(other, size);
    acp_push_front_deque(deque, stray(), size);
    acp_pop_front_deque(deque, size);
    acp_assign_range_deque(back, at, last);
    acp_dereference_deque_it(at, size);
    acp_erase_deque(at, size);
}

static void lists(void)
{
    acp_list_t list = { stray() }, other = { stray() };
    acp_list_it_t it = { list, stray() }, end = { list, stray() };
    acp_element_t element = { stray(), (size_t)word() };
    acp_push_back_list(list, element, 0);
    acp_insert_list(it, element, (int)random_below(3));
    acp_insert_range_list(acp_begin_list(other), it, end);
    acp_distance_list_it(it, end);
    acp_advance_list_it(it, (int)random_below(2000) - 1000);
    acp_sort_list(list, compare);
    acp_merge_list(list, other, compare);
    acp_unique_list(list);
    acp_remove_list(other, element);
    acp_splice_range_list(it, acp_begin_list(other), acp_end_list(other));
    acp_erase_list(it);
    acp_pop_back_list(other);
    acp_size_list(list);
}

static void tables(void)
{
    acp_map_t map = { stray(), word(), word() }, other = { stray(), 1 + random_below(3), 1 + random_below(9) };
    acp_set_t set = { stray(), 1 + random_below(3), 1 + random_below(9) };
    acp_multiset_t multiset = { stray(), 1 + random_below(3), word() };
    acp_map_it_t it = { other, (int)random_below(4) - 1, (int)random_below(9), stray() };
    acp_pair_t pair = { { stray(), (size_t)random_below(99) }, { stray(), (size_t)word() } };
    acp_insert_map(map, pair);
    acp_insert_map(other, pair);
    acp_retrieve_map(other, pair);
    acp_remove_map(other, pair.first);
    acp_increment_map_it(it);
    acp_dereference_map_it(it);
    acp_size_map(map);
    acp_begin_local_map(other);
    acp_merge_map(map, other);
    acp_swap_map(map, other);
    acp_insert_set(set, pair.first);
    acp_clear_set(set);
    acp_insert_multiset(multiset, pair.first);
    acp_retrieve_multiset(multiset, pair.first);
    acp_move_multiset(multiset, multiset);
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (int n = 0; n < 4; n++) {
        block[n] = acp_malloc(8 * WORDS, n % acp_procs());
        CHECK(block[n] != ACP_GA_NULL);
    }
    acp_sync();
    /* One rank calls, on memory of all. */
    for (int call = 0; call < CALLS && acp_rank() == 0; call++) {
        fill();
        switch (random_below(3)) {
        case 0:
            sequences();
            break;
        case 1:
            lists();
            break;
        default:
            tables();
        }
    }
    acp_sync();
    CHECK(acp_finalize() == 0);
    return check_result("middle_stray");
}
