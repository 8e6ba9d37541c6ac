/* Lists. */
#include "middle.h"

/* Returns whether a list has these elements, one for each letter, in both directions. */
static int holds(acp_list_t list, const char *letters)
{
    size_t size = strlen(letters);
    acp_list_it_t it = acp_begin_list(list), end = acp_end_list(list);
    if (acp_size_list(list) != size || acp_empty_list(list) != (size == 0))
        return 0;
    if (acp_distance_list_it(it, end) != (int)size)
        return 0;
    for (size_t n = 0; n < size; n++, it = acp_increment_list_it(it)) {
        char letter[2] = { letters[n], 0 };
        if (it.elem == end.elem || !is_text(acp_dereference_list_it(it), letter))
            return 0;
    }
    for (size_t n = size; n-- > 0;) {
        char letter[2] = { letters[n], 0 };
        it = acp_decrement_list_it(it);
        if (!is_text(acp_dereference_list_it(it), letter))
            return 0;
    }
    return 1;
}

static acp_list_t list_of(const char *letters)
{
    acp_list_t list = acp_create_list(me);
    for (int n = 0; letters[n] != 0; n++)
        acp_push_back_list(list, lent(&letters[n], 1), n % ranks);
    return list;
}

static acp_list_it_t at(acp_list_t list, int n)
{
    return acp_advance_list_it(acp_begin_list(list), n);
}

static int compared;

/* Orders letters; calls the library itself. */
static int by_letter(const acp_element_t left, const acp_element_t right)
{
    char letters[2];
    get(&letters[0], left.ga, left.size);
    get(&letters[1], right.ga, right.size);
    compared++;
    return letters[0] - letters[1];
}

/* Not an order. */
static int nonsense(const acp_element_t left, const acp_element_t right)
{
    (void)left;
    (void)right;
    return compared++ % 3 - 1;
}

static void elements(void)
{
    acp_list_t list = list_of("bd");
    CHECK(holds(list, "bd"));
    acp_list_it_t it = acp_insert_list(at(list, 1), text("c"), ranks - 1);
    CHECK(is_text(acp_dereference_list_it(it), "c") && acp_query_rank(it.elem) == ranks - 1);
    acp_push_front_list(list, text("a"), 0);
    CHECK(holds(list, "abcd"));
    CHECK(acp_erase_list(at(list, 1)).elem == at(list, 1).elem && holds(list, "acd"));
    CHECK(acp_erase_list(at(list, 2)).elem == list.ga && holds(list, "ac"));
    acp_pop_front_list(list);
    CHECK(holds(list, "c"));
    acp_pop_back_list(list);
    acp_pop_back_list(list);
    acp_pop_front_list(list);
    CHECK(holds(list, ""));
    /* Elements of other sizes, also of none. */
    acp_element_t none = { ACP_GA_NULL, 0 };
    acp_push_back_list(list, text("a longer text"), me);
    acp_push_back_list(list, none, me);
    CHECK(is_text(acp_dereference_list_it(at(list, 0)), "a longer text"));
    CHECK(acp_dereference_list_it(at(list, 1)).size == 0 && acp_size_list(list) == 2);
    acp_destroy_list(list);
}

static void ranges(void)
{
    acp_list_t list = list_of("abcdef"), other = list_of("xyz");
    CHECK(is_text(acp_dereference_list_it(acp_insert_range_list(at(list, 2), at(other, 1), acp_end_list(other))), "y"));
    CHECK(holds(list, "abyzcdef") && holds(other, "xyz"));
    CHECK(acp_erase_range_list(at(list, 2), at(list, 4)).elem == at(list, 2).elem && holds(list, "abcdef"));
    CHECK(acp_distance_list_it(at(list, 1), at(list, 4)) == 3 && acp_distance_list_it(at(list, 4), at(list, 1)) == 0);
    acp_splice_list(at(list, 0), at(other, 2));
    CHECK(holds(list, "zabcdef") && holds(other, "xy"));
    acp_splice_range_list(acp_end_list(other), at(list, 1), at(list, 3));
    CHECK(holds(list, "zcdef") && holds(other, "xyab"));
    acp_splice_list(at(list, 0), at(list, 4));
    CHECK(holds(list, "fzcde"));
    acp_assign_list(other, list);
    CHECK(holds(other, "fzcde"));
    acp_assign_range_list(other, at(list, 1), at(list, 3));
    CHECK(holds(other, "zc"));
    acp_swap_list(list, other);
    CHECK(holds(list, "zc") && holds(other, "fzcde"));
    acp_reverse_list(other);
    CHECK(holds(other, "edczf"));
    /* Steps stop at both ends. */
    CHECK(acp_advance_list_it(at(list, 1), 5).elem == list.ga && acp_increment_list_it(acp_end_list(list)).elem == list.ga);
    CHECK(acp_decrement_list_it(at(list, 0)).elem == at(list, 0).elem);
    CHECK(acp_advance_list_it(acp_end_list(list), -9).elem == at(list, 0).elem);
    /* Positions of other lists, the end, and ranges that are none. */
    acp_list_it_t foreign = { list, at(other, 0).elem };
    CHECK(acp_erase_list(acp_end_list(list)).elem == ACP_GA_NULL);
    CHECK(acp_erase_range_list(at(list, 1), at(list, 0)).elem == ACP_GA_NULL);
    CHECK(acp_insert_range_list(at(list, 0), at(other, 0), acp_end_list(list)).elem == ACP_GA_NULL);
    CHECK(acp_insert_list(at(list, 0), text("n"), ranks).elem == ACP_GA_NULL);
    acp_element_t nowhere = { 12345, 8 };
    CHECK(acp_insert_list(at(list, 0), nowhere, me).elem == ACP_GA_NULL);
    acp_push_back_list(list, nowhere, me);
    acp_push_front_list(list, text("n"), -1);
    acp_remove_list(list, nowhere);
    acp_splice_list(at(list, 0), acp_end_list(other));
    acp_splice_range_list(at(list, 0), at(other, 1), acp_end_list(list));
    acp_assign_range_list(list, at(other, 1), at(list, 0));
    CHECK(acp_dereference_list_it(acp_end_list(list)).ga == ACP_GA_NULL);
    CHECK(holds(list, "zc") && holds(other, "edczf") && foreign.elem != ACP_GA_NULL);
    acp_clear_list(list);
    CHECK(holds(list, ""));
    acp_destroy_list(list);
    acp_destroy_list(other);
}

static void orders(void)
{
    acp_list_t list = list_of("hgfedcba"), other = list_of("kaxbb"), none = list_of("");
    acp_ga_t first = acp_begin_list(list).elem;
    acp_sort_list(list, by_letter);
    CHECK(holds(list, "abcdefgh") && acp_decrement_list_it(acp_end_list(list)).elem == first);
    acp_sort_list(other, by_letter);
    CHECK(holds(other, "abbkx"));
    acp_merge_list(list, other, by_letter);
    CHECK(holds(list, "aabbbcdefghkx") && holds(other, ""));
    acp_unique_list(list);
    CHECK(holds(list, "abcdefghkx"));
    acp_merge_list(list, none, by_letter);
    acp_merge_list(list, list, by_letter);
    acp_sort_list(list, NULL);
    acp_merge_list(list, other, NULL);
    CHECK(holds(list, "abcdefghkx"));
    acp_merge_list(none, list, by_letter);
    CHECK(holds(none, "abcdefghkx") && holds(list, ""));
    acp_remove_list(none, text("c"));
    acp_remove_list(none, text("q"));
    CHECK(holds(none, "abdefghkx"));
    acp_sort_list(none, nonsense);
    acp_sort_list(none, by_letter);
    CHECK(holds(none, "abdefghkx") && compared > 0);
    acp_destroy_list(list);
    acp_destroy_list(other);
    acp_destroy_list(none);
}

void lists(void)
{
    CHECK(acp_create_list(-1).ga == ACP_GA_NULL && acp_create_list(ranks).ga == ACP_GA_NULL);
    elements();
    ranges();
    orders();
    acp_sync();
    /* One list at rank 1; each rank appends an element in its own memory. */
    acp_list_t list = { ACP_GA_NULL };
    if (me == 0)
        list = acp_create_list(1);
    share(&list, sizeof list, 0);
    char letters[16] = "";
    for (int turn = 0; turn < ranks && turn < 10; turn++) {
        char letter = (char)('a' + turn);
        letters[turn] = letter;
        if (me == turn)
            acp_push_back_list(list, lent(&letter, 1), me);
        acp_sync();
        CHECK(holds(list, letters));
        acp_sync();
    }
    if (me == ranks - 1)
        acp_destroy_list(list);
}
