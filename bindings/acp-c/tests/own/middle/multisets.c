/* Multisets. */
#include "middle.h"

/* Returns whether a multiset has these keys, one for each letter, by calls and by its iterator. */
static int holds(acp_multiset_t set, const char *letters)
{
    size_t size = 0, seen[128] = { 0 };
    acp_multiset_it_t it = acp_begin_multiset(set), end = acp_end_multiset(set);
    for (; it.rank != end.rank; it = acp_increment_multiset_it(it), size++) {
        char letter = 0;
        acp_element_t key = acp_dereference_multiset_it(it);
        if (size > 100 || it.elem == ACP_GA_NULL || key.size != 1)
            return 0;
        get(&letter, key.ga, 1);
        seen[letter & 127]++;
    }
    if (it.elem != ACP_GA_NULL || size != strlen(letters) || acp_size_multiset(set) != size)
        return 0;
    if (acp_empty_multiset(set) != (size == 0))
        return 0;
    for (size_t n = 0; n < size; n++) {
        if (seen[letters[n] & 127] != 1 || acp_find_multiset(set, lent(&letters[n], 1)).elem == ACP_GA_NULL)
            return 0;
    }
    return 1;
}

/* Returns the number of this rank's keys, by the local iterator and by the local calls. */
static size_t local(acp_multiset_t set)
{
    size_t count = 0;
    acp_multiset_it_t end = acp_end_local_multiset(set);
    for (acp_multiset_it_t it = acp_begin_local_multiset(set); it.elem != end.elem; it = acp_increment_multiset_it(it)) {
        CHECK(it.elem != ACP_GA_NULL && acp_query_rank(it.elem) == me);
        if (it.elem == ACP_GA_NULL)
            return 0;
        count++;
    }
    CHECK(acp_size_local_multiset(set) == count && acp_empty_local_multiset(set) == (count == 0));
    return count;
}

static acp_multiset_t multiset_of(const char *letters, int slots)
{
    int on[] = { ranks - 1, 0 };
    acp_multiset_t set = acp_create_multiset(2, on, slots, me);
    for (; *letters != 0; letters++) {
        char letter[2] = { *letters, 0 };
        CHECK(acp_insert_multiset(set, text(letter)) == 1);
    }
    return set;
}

static void calls(void)
{
    acp_multiset_t set = multiset_of("abc", 3);
    CHECK(set.ga != ACP_GA_NULL && set.num_ranks == 2 && set.num_slots == 3);
    CHECK(holds(set, "abc"));
    CHECK(acp_insert_multiset(set, text("b")) == 1);
    CHECK(holds(set, "abc"));
    CHECK(acp_retrieve_multiset(set, text("b")) == 2 && acp_retrieve_multiset(set, text("a")) == 1);
    acp_insert_multiset(set, text("b"));
    acp_remove_multiset(set, text("b"));
    CHECK(acp_retrieve_multiset(set, text("b")) == 2 && acp_retrieve_multiset(set, text("x")) == 0);
    acp_remove_all_multiset(set, text("b"));
    acp_remove_all_multiset(set, text("x"));
    CHECK(holds(set, "ac") && acp_retrieve_multiset(set, text("b")) == 0);
    acp_insert_multiset(set, text("b"));
    acp_remove_multiset(set, text("a"));
    acp_remove_multiset(set, text("x"));
    CHECK(holds(set, "bc"));
    acp_multiset_it_t end = acp_end_multiset(set);
    CHECK(end.elem == ACP_GA_NULL && end.rank == 2 && end.slot == 0);
    CHECK(acp_find_multiset(set, text("a")).rank == 2 && acp_increment_multiset_it(end).rank == 2);
    CHECK(acp_dereference_multiset_it(end).ga == ACP_GA_NULL);
    /* An element that was removed, and slots that do not exist. */
    acp_multiset_it_t gone = acp_find_multiset(set, text("b"));
    acp_remove_multiset(set, text("b"));
    CHECK(acp_increment_multiset_it(gone).elem == ACP_GA_NULL);
    CHECK(acp_dereference_multiset_it(gone).ga == ACP_GA_NULL);
    gone.slot = 99;
    CHECK(acp_increment_multiset_it(gone).elem == ACP_GA_NULL);
    gone.rank = -1;
    CHECK(acp_dereference_multiset_it(gone).size == 0);
    /* Keys that do not exist, or have no bytes. */
    acp_element_t nowhere = { 12345, 8 }, empty = text("");
    CHECK(acp_find_multiset(set, nowhere).elem == ACP_GA_NULL && acp_find_multiset(set, empty).elem == ACP_GA_NULL);
    CHECK(acp_insert_multiset(set, nowhere) == 0 && acp_insert_multiset(set, empty) == 0);
    acp_remove_multiset(set, nowhere);
    CHECK(holds(set, "c"));
    acp_clear_multiset(set);
    CHECK(holds(set, ""));
    acp_destroy_multiset(set);
}

static void pairs(void)
{
    acp_multiset_t one = multiset_of("abc", 3), other = multiset_of("cde", 2);
    acp_merge_multiset(one, other);
    CHECK(holds(one, "abcde") && holds(other, "cde"));
    acp_assign_multiset(other, one);
    CHECK(holds(other, "abcde"));
    acp_remove_multiset(other, text("a"));
    acp_swap_multiset(one, other);
    CHECK(acp_retrieve_multiset(one, text("c")) == 2);
    acp_remove_multiset(one, text("c"));
    CHECK(holds(one, "bcde") && holds(other, "abcde"));
    acp_clear_multiset(one);
    CHECK(acp_insert_multiset(one, text("x")) == 1);
    acp_move_multiset(one, other);
    CHECK(holds(one, "xabcde") && holds(other, ""));
    acp_move_multiset(one, one);
    acp_merge_multiset(other, one);
    CHECK(holds(one, "xabcde") && holds(other, "xabcde"));
    acp_destroy_multiset(one);
    acp_destroy_multiset(other);
}

/* The local forms, on all ranks, have the effect of the others. */
static void locals(void)
{
    acp_multiset_t both[2];
    if (me == 0) {
        both[0] = multiset_of("abcdefgh", 4);
        both[1] = multiset_of("gh", 4);
    }
    share(both, sizeof both, 0);
    size_t counts[1] = { local(both[0]) }, all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t count = counts[0];
        share(&count, sizeof count, rank);
        all += count;
    }
    CHECK(all == 8 && (me == 0 || me == ranks - 1 || counts[0] == 0));
    acp_sync();
    acp_merge_local_multiset(both[1], both[0]);
    acp_sync();
    CHECK(holds(both[1], "abcdefgh"));
    if (me == 0)
        acp_clear_multiset(both[0]);
    acp_sync();
    acp_assign_local_multiset(both[0], both[1]);
    acp_sync();
    CHECK(holds(both[0], "abcdefgh"));
    if (me == 0)
        acp_clear_multiset(both[1]);
    acp_sync();
    acp_move_local_multiset(both[1], both[0]);
    acp_sync();
    CHECK(holds(both[0], "") && holds(both[1], "abcdefgh"));
    acp_sync();
    if (me == 0) {
        acp_destroy_multiset(both[0]);
        acp_destroy_multiset(both[1]);
    }
}

/* All ranks change one multiset at the same time. */
static void together(void)
{
    enum { COUNT = 30 };
    acp_multiset_t set;
    if (me == 0)
        set = multiset_of("", 7);
    share(&set, sizeof set, 0);
    for (int n = 0; n < COUNT; n++) {
        int own[2] = { me, n }, same[2] = { -1, n };
        CHECK(acp_insert_multiset(set, lent(own, sizeof own)) == 1);
        acp_insert_multiset(set, lent(same, sizeof same));
    }
    acp_sync();
    CHECK(acp_size_multiset(set) == (size_t)(ranks + 1) * COUNT);
    int same[2] = { -1, me };
    CHECK(acp_retrieve_multiset(set, lent(same, sizeof same)) == (uint64_t)ranks);
    acp_sync();
    if (me == ranks - 1)
        acp_destroy_multiset(set);
}

void multisets(void)
{
    int on[] = { 0, ranks }, negative[] = { -1 };
    CHECK(acp_create_multiset(2, on, 3, 0).ga == ACP_GA_NULL && acp_create_multiset(1, negative, 3, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_multiset(1, on, 0, 0).ga == ACP_GA_NULL && acp_create_multiset(1, on, -1, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_multiset(0, on, 3, 0).ga == ACP_GA_NULL && acp_create_multiset(-1, on, 3, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_multiset(1, NULL, 3, 0).ga == ACP_GA_NULL && acp_create_multiset(1, on, 3, ranks).ga == ACP_GA_NULL);
    CHECK(acp_create_multiset(1, on, 2147483647, 0).ga == ACP_GA_NULL);
    calls();
    pairs();
    acp_sync();
    locals();
    together();
}
