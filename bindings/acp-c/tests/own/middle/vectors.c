/* Vectors. */
#include "middle.h"

/* Returns whether a vector holds a text, byte by byte. */
static int holds(acp_vector_t vector, const char *text)
{
    size_t size = acp_size_vector(vector);
    if (size != strlen(text) || acp_end_vector(vector).index != (int)size || acp_empty_vector(vector) != (size == 0))
        return 0;
    for (size_t n = 0; n < size; n++) {
        char byte;
        get(&byte, acp_at_vector(vector, (int)n), 1);
        if (byte != text[n])
            return 0;
    }
    return 1;
}

static void changes(int home)
{
    acp_vector_t vector = acp_create_vector(0, home), other = acp_create_vector(5, home);
    CHECK(vector.ga != ACP_GA_NULL && acp_query_rank(vector.ga) == home);
    CHECK(acp_size_vector(other) == 5 && acp_capacity_vector(other) >= 5 && acp_at_vector(other, 4) != ACP_GA_NULL);
    CHECK(holds(vector, ""));
    acp_push_back_vector(vector, text("defg").ga, 4);
    acp_vector_it_t begin = acp_begin_vector(vector);
    CHECK(acp_insert_vector(begin, text("abc").ga, 3).index == 0 && holds(vector, "abcdefg"));
    CHECK(acp_insert_vector(acp_advance_vector_it(begin, 3), text("--").ga, 2).index == 3 && holds(vector, "abc--defg"));
    CHECK(acp_insert_vector(acp_advance_vector_it(begin, 99), text("h").ga, 1).index == 9 && holds(vector, "abc--defgh"));
    CHECK(acp_erase_vector(acp_advance_vector_it(begin, 3), 2).index == 3 && holds(vector, "abcdefgh"));
    CHECK(acp_distance_vector_it(begin, acp_end_vector(vector)) == 8);
    CHECK(acp_distance_vector_it(acp_end_vector(vector), begin) == -8);
    CHECK(acp_at_vector(vector, 8) == ACP_GA_NULL && acp_at_vector(vector, -1) == ACP_GA_NULL);
    CHECK(acp_dereference_vector_it(acp_advance_vector_it(begin, 2)) == acp_at_vector(vector, 2));
    CHECK(acp_dereference_vector_it(acp_end_vector(vector)) == ACP_GA_NULL);
    CHECK(acp_dereference_vector_it(acp_advance_vector_it(begin, -1)) == ACP_GA_NULL);
    /* Ranges of itself and of another one. */
    acp_vector_it_t start = acp_advance_vector_it(begin, 1), end = acp_advance_vector_it(begin, 3);
    CHECK(acp_insert_range_vector(begin, start, end).index == 0 && holds(vector, "bcabcdefgh"));
    acp_assign_vector(other, vector);
    CHECK(holds(other, "bcabcdefgh"));
    acp_assign_range_vector(other, start, end);
    CHECK(holds(other, "ca"));
    CHECK(acp_insert_range_vector(acp_end_vector(other), start, end).index == 2 && holds(other, "caca"));
    CHECK(acp_erase_range_vector(start, end).index == 1 && holds(vector, "bbcdefgh"));
    acp_swap_vector(vector, other);
    CHECK(holds(vector, "caca") && holds(other, "bbcdefgh"));
    acp_pop_back_vector(other, 3);
    CHECK(holds(other, "bbcde"));
    /* What is no range or not there changes nothing. */
    acp_erase_range_vector(end, start);
    acp_insert_range_vector(begin, end, start);
    acp_assign_range_vector(vector, start, acp_end_vector(other));
    acp_erase_vector(acp_advance_vector_it(begin, 5), 1);
    acp_erase_vector(acp_advance_vector_it(begin, -1), 1);
    acp_insert_vector(acp_advance_vector_it(begin, -1), text("x").ga, 1);
    acp_insert_vector(begin, ACP_GA_NULL, 1);
    acp_push_back_vector(vector, 12345, 8);
    acp_push_back_vector(vector, acp_query_starter_ga(me), (size_t)-1);
    acp_reserve_vector(vector, (size_t)-1);
    CHECK(holds(vector, "caca"));
    acp_reserve_vector(vector, 1000);
    CHECK(acp_capacity_vector(vector) >= 1000 && holds(vector, "caca"));
    CHECK(acp_erase_vector(start, 100).index == 1 && holds(vector, "c"));
    acp_pop_back_vector(vector, 100);
    CHECK(holds(vector, ""));
    acp_pop_back_vector(vector, 1);
    acp_push_back_vector(vector, text("x").ga, 1);
    acp_clear_vector(vector);
    CHECK(holds(vector, "") && acp_capacity_vector(vector) >= 1000);
    acp_destroy_vector(vector);
    acp_destroy_vector(other);
}

void vectors(void)
{
    CHECK(acp_create_vector(8, -1).ga == ACP_GA_NULL && acp_create_vector(8, ranks).ga == ACP_GA_NULL);
    CHECK(acp_create_vector((size_t)-1, me).ga == ACP_GA_NULL && acp_create_vector((size_t)1 << 40, me).ga == ACP_GA_NULL);
    changes(me);
    changes((me + 1) % ranks);
    acp_sync();
    /* One vector at rank 1, to which one rank after the other appends its digit. */
    acp_vector_t vector = { ACP_GA_NULL };
    if (me == 0)
        vector = acp_create_vector(0, 1);
    share(&vector, sizeof vector, 0);
    char digits[16] = "";
    for (int turn = 0; turn < ranks && turn < 10; turn++) {
        char digit = (char)('0' + turn);
        digits[turn] = digit;
        if (me == turn)
            acp_push_back_vector(vector, lent(&digit, 1).ga, 1);
        acp_sync();
        CHECK(holds(vector, digits));
        acp_sync();
    }
    if (me == ranks - 1)
        acp_destroy_vector(vector);
}
