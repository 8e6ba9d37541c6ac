/* Deques. */
#include "middle.h"

/* Returns whether a deque holds a text, byte by byte. */
static int holds(acp_deque_t deque, const char *text)
{
    size_t size = acp_size_deque(deque);
    if (size != strlen(text) || acp_end_deque(deque).index != (int)size || acp_empty_deque(deque) != (size == 0))
        return 0;
    for (size_t n = 0; n < size; n++) {
        char byte;
        get(&byte, acp_at_deque(deque, (int)n), 1);
        if (byte != text[n])
            return 0;
    }
    return 1;
}

static void changes(int home)
{
    acp_deque_t deque = acp_create_deque(0, home), other = acp_create_deque(5, home);
    CHECK(deque.ga != ACP_GA_NULL && acp_query_rank(deque.ga) == home);
    CHECK(acp_size_deque(other) == 5 && acp_capacity_deque(other) >= 5 && acp_at_deque(other, 4) != ACP_GA_NULL);
    CHECK(holds(deque, ""));
    acp_push_back_deque(deque, text("defg").ga, 4);
    acp_deque_it_t begin = acp_begin_deque(deque);
    CHECK(acp_insert_deque(begin, text("abc").ga, 3).index == 0 && holds(deque, "abcdefg"));
    CHECK(acp_insert_deque(acp_advance_deque_it(begin, 3), text("--").ga, 2).index == 3 && holds(deque, "abc--defg"));
    CHECK(acp_insert_deque(acp_advance_deque_it(begin, 99), text("h").ga, 1).index == 9 && holds(deque, "abc--defgh"));
    CHECK(acp_erase_deque(acp_advance_deque_it(begin, 3), 2).index == 3 && holds(deque, "abcdefgh"));
    CHECK(acp_distance_deque_it(begin, acp_end_deque(deque)) == 8);
    CHECK(acp_distance_deque_it(acp_end_deque(deque), begin) == -8);
    CHECK(acp_at_deque(deque, 8) == ACP_GA_NULL && acp_at_deque(deque, -1) == ACP_GA_NULL);
    acp_pair_t pieces = acp_dereference_deque_it(acp_advance_deque_it(begin, 2), 3);
    CHECK(pieces.first.size + pieces.second.size == 3 && pieces.first.ga == acp_at_deque(deque, 2));
    pieces = acp_dereference_deque_it(acp_end_deque(deque), 3);
    CHECK(pieces.first.ga == ACP_GA_NULL && pieces.first.size == 0 && pieces.second.size == 0);
    pieces = acp_dereference_deque_it(acp_advance_deque_it(begin, -1), 3);
    CHECK(pieces.first.ga == ACP_GA_NULL);
    /* Ranges of itself and of another one. */
    acp_deque_it_t start = acp_advance_deque_it(begin, 1), end = acp_advance_deque_it(begin, 3);
    CHECK(acp_insert_range_deque(begin, start, end).index == 0 && holds(deque, "bcabcdefgh"));
    acp_assign_deque(other, deque);
    CHECK(holds(other, "bcabcdefgh"));
    acp_assign_range_deque(other, start, end);
    CHECK(holds(other, "ca"));
    CHECK(acp_insert_range_deque(acp_end_deque(other), start, end).index == 2 && holds(other, "caca"));
    CHECK(acp_erase_range_deque(start, end).index == 1 && holds(deque, "bbcdefgh"));
    acp_swap_deque(deque, other);
    CHECK(holds(deque, "caca") && holds(other, "bbcdefgh"));
    acp_pop_back_deque(other, 3);
    CHECK(holds(other, "bbcde"));
    /* What is no range or not there changes nothing. */
    acp_erase_range_deque(end, start);
    acp_insert_range_deque(begin, end, start);
    acp_assign_range_deque(deque, start, acp_end_deque(other));
    acp_erase_deque(acp_advance_deque_it(begin, 5), 1);
    acp_erase_deque(acp_advance_deque_it(begin, -1), 1);
    acp_insert_deque(acp_advance_deque_it(begin, -1), text("x").ga, 1);
    acp_insert_deque(begin, ACP_GA_NULL, 1);
    acp_push_back_deque(deque, 12345, 8);
    acp_push_back_deque(deque, acp_query_starter_ga(me), (size_t)-1);
    acp_reserve_deque(deque, (size_t)-1);
    CHECK(holds(deque, "caca"));
    acp_reserve_deque(deque, 1000);
    CHECK(acp_capacity_deque(deque) >= 1000 && holds(deque, "caca"));
    CHECK(acp_erase_deque(start, 100).index == 1 && holds(deque, "c"));
    acp_pop_back_deque(deque, 100);
    CHECK(holds(deque, ""));
    acp_pop_back_deque(deque, 1);
    acp_push_back_deque(deque, text("x").ga, 1);
    acp_clear_deque(deque);
    CHECK(holds(deque, "") && acp_capacity_deque(deque) >= 1000);

    acp_destroy_deque(deque);
    acp_destroy_deque(other);
}

/* A ring that grows at both ends, and wraps around. */
static void ends(int home)
{
    acp_deque_t deque = acp_create_deque(8, home);
    acp_clear_deque(deque);
    acp_push_back_deque(deque, text("3456").ga, 4);
    acp_push_front_deque(deque, text("012").ga, 3);
    CHECK(holds(deque, "0123456"));
    acp_pop_front_deque(deque, 2);
    CHECK(holds(deque, "23456"));
    int wrapped = 0;
    for (int n = 0; n < 40; n++) {
        acp_push_back_deque(deque, text("xyz").ga, 3);
        acp_pop_front_deque(deque, 3);
        acp_pair_t pieces = acp_dereference_deque_it(acp_begin_deque(deque), 100);
        CHECK(pieces.first.size + pieces.second.size == 5);
        if (pieces.second.size > 0) {
            char seen[5];
            get(seen, pieces.first.ga, pieces.first.size);
            get(seen + pieces.first.size, pieces.second.ga, pieces.second.size);
            CHECK(memcmp(seen, n == 0 ? "56xyz" : "yzxyz", 5) == 0);
            wrapped++;
        }
    }
    CHECK(wrapped > 0 && holds(deque, "yzxyz"));
    acp_pop_front_deque(deque, 100);
    CHECK(acp_empty_deque(deque) == 1);
    acp_pop_front_deque(deque, 1);
    acp_destroy_deque(deque);
}

void deques(void)
{
    CHECK(acp_create_deque(8, -1).ga == ACP_GA_NULL && acp_create_deque(8, ranks).ga == ACP_GA_NULL);
    CHECK(acp_create_deque((size_t)-1, me).ga == ACP_GA_NULL && acp_create_deque((size_t)1 << 40, me).ga == ACP_GA_NULL);
    changes(me);
    changes((me + 1) % ranks);
    ends(me);
    ends((me + 1) % ranks);
    acp_sync();
    /* One deque at rank 1, to which one rank after the other appends its digit. */
    acp_deque_t deque = { ACP_GA_NULL };
    if (me == 0)
        deque = acp_create_deque(0, 1);
    share(&deque, sizeof deque, 0);
    char digits[16] = "";
    for (int turn = 0; turn < ranks && turn < 10; turn++) {
        char digit = (char)('0' + turn);
        digits[turn] = digit;
        if (me == turn)
            acp_push_back_deque(deque, lent(&digit, 1).ga, 1);
        acp_sync();
        CHECK(holds(deque, digits));
        acp_sync();
    }
    if (me == ranks - 1)
        acp_destroy_deque(deque);
}
