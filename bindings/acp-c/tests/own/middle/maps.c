/* Maps. */
#include "middle.h"

/* Returns whether a map has these keys, one for each letter, by calls and by its iterator. */
static int holds(acp_map_t map, const char *letters)
{
    size_t size = 0, seen[128] = { 0 };
    acp_map_it_t it = acp_begin_map(map), end = acp_end_map(map);
    for (; it.rank != end.rank; it = acp_increment_map_it(it), size++) {
        char letter = 0;
        acp_element_t key = acp_dereference_map_it(it).first;
        if (size > 100 || it.elem == ACP_GA_NULL || key.size != 1)
            return 0;
        get(&letter, key.ga, 1);
        seen[letter & 127]++;
    }
    if (it.elem != ACP_GA_NULL || size != strlen(letters) || acp_size_map(map) != size)
        return 0;
    if (acp_empty_map(map) != (size == 0))
        return 0;
    for (size_t n = 0; n < size; n++) {
        if (seen[letters[n] & 127] != 1 || acp_find_map(map, lent(&letters[n], 1)).elem == ACP_GA_NULL)
            return 0;
    }
    return 1;
}

/* Returns the number of this rank's keys, by the local iterator and by the local calls. */
static size_t local(acp_map_t map)
{
    size_t count = 0;
    acp_map_it_t end = acp_end_local_map(map);
    for (acp_map_it_t it = acp_begin_local_map(map); it.elem != end.elem; it = acp_increment_map_it(it)) {
        CHECK(it.elem != ACP_GA_NULL && acp_query_rank(it.elem) == me);
        if (it.elem == ACP_GA_NULL)
            return 0;
        count++;
    }
    CHECK(acp_size_local_map(map) == count && acp_empty_local_map(map) == (count == 0));
    return count;
}

static acp_map_t map_of(const char *letters, int slots)
{
    int on[] = { ranks - 1, 0 };
    acp_map_t map = acp_create_map(2, on, slots, me);
    for (; *letters != 0; letters++) {
        char letter[2] = { *letters, 0 };
        CHECK(acp_insert_map(map, pair(letter, letter)) == 1);
    }
    return map;
}

static void calls(void)
{
    acp_map_t map = map_of("abc", 3);
    CHECK(map.ga != ACP_GA_NULL && map.num_ranks == 2 && map.num_slots == 3);
    CHECK(holds(map, "abc"));
    CHECK(acp_insert_map(map, pair("b", "v")) == 0);
    CHECK(holds(map, "abc"));
    /* The key has kept its value, which is cut if there is less room. */
    acp_pair_t found = pair("b", "????");
    CHECK(acp_retrieve_map(map, found) == 1 && is_text(found.second, "b???"));
    CHECK(acp_insert_map(map, pair("d", "a value")) == 1);
    found = pair("d", "????");
    CHECK(acp_retrieve_map(map, found) == 7 && is_text(found.second, "a va"));
    found = pair("x", "????");
    CHECK(acp_retrieve_map(map, found) == 0 && is_text(found.second, "????"));
    found.first = text("d");
    found.second.ga = 12345;
    CHECK(acp_retrieve_map(map, found) == 0);
    found = acp_dereference_map_it(acp_find_map(map, text("d")));
    CHECK(is_text(found.first, "d") && is_text(found.second, "a value"));
    acp_remove_map(map, text("d"));
    /* A value without bytes. */
    CHECK(acp_insert_map(map, pair("e", "")) == 1);
    CHECK(acp_retrieve_map(map, pair("e", "?")) == 0 && acp_find_map(map, text("e")).elem != ACP_GA_NULL);
    acp_remove_map(map, text("e"));
    acp_remove_map(map, text("a"));
    acp_remove_map(map, text("x"));
    CHECK(holds(map, "bc"));
    acp_map_it_t end = acp_end_map(map);
    CHECK(end.elem == ACP_GA_NULL && end.rank == 2 && end.slot == 0);
    CHECK(acp_find_map(map, text("a")).rank == 2 && acp_increment_map_it(end).rank == 2);
    CHECK(acp_dereference_map_it(end).second.ga == ACP_GA_NULL);
    /* An element that was removed, and slots that do not exist. */
    acp_map_it_t gone = acp_find_map(map, text("b"));
    acp_remove_map(map, text("b"));
    CHECK(acp_increment_map_it(gone).elem == ACP_GA_NULL);
    CHECK(acp_dereference_map_it(gone).first.ga == ACP_GA_NULL);
    gone.slot = 99;
    CHECK(acp_increment_map_it(gone).elem == ACP_GA_NULL);
    gone.rank = -1;
    CHECK(acp_dereference_map_it(gone).first.size == 0);
    /* Keys that do not exist, or have no bytes. */
    acp_element_t nowhere = { 12345, 8 }, empty = text("");
    CHECK(acp_find_map(map, nowhere).elem == ACP_GA_NULL && acp_find_map(map, empty).elem == ACP_GA_NULL);
    acp_pair_t bad = { nowhere, text("v") };
    CHECK(acp_insert_map(map, bad) == 0 && acp_insert_map(map, pair("", "v")) == 0);
    bad.first = text("k");
    bad.second = nowhere;
    CHECK(acp_insert_map(map, bad) == 0 && acp_retrieve_map(map, pair("", "v")) == 0);
    acp_remove_map(map, nowhere);
    CHECK(holds(map, "c"));
    acp_clear_map(map);
    CHECK(holds(map, ""));
    acp_destroy_map(map);
}

static void pairs(void)
{
    acp_map_t one = map_of("abc", 3), other = map_of("cde", 2);
    acp_merge_map(one, other);
    CHECK(holds(one, "abcde") && holds(other, "cde"));
    acp_assign_map(other, one);
    CHECK(holds(other, "abcde"));
    acp_remove_map(other, text("a"));
    acp_swap_map(one, other);
    CHECK(holds(one, "bcde") && holds(other, "abcde"));
    acp_clear_map(one);
    CHECK(acp_insert_map(one, pair("x", "v")) == 1);
    acp_move_map(one, other);
    CHECK(holds(one, "xabcde") && holds(other, ""));
    acp_move_map(one, one);
    acp_merge_map(other, one);
    CHECK(holds(one, "xabcde") && holds(other, "xabcde"));
    acp_destroy_map(one);
    acp_destroy_map(other);
}

/* The local forms, on all ranks, have the effect of the others. */
static void locals(void)
{
    acp_map_t both[2];
    if (me == 0) {
        both[0] = map_of("abcdefgh", 4);
        both[1] = map_of("gh", 4);
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
    acp_merge_local_map(both[1], both[0]);
    acp_sync();
    CHECK(holds(both[1], "abcdefgh"));
    if (me == 0)
        acp_clear_map(both[0]);
    acp_sync();
    acp_assign_local_map(both[0], both[1]);
    acp_sync();
    CHECK(holds(both[0], "abcdefgh"));
    if (me == 0)
        acp_clear_map(both[1]);
    acp_sync();
    acp_move_local_map(both[1], both[0]);
    acp_sync();
    CHECK(holds(both[0], "") && holds(both[1], "abcdefgh"));
    acp_sync();
    acp_clear_local_map(both[1]);
    CHECK(local(both[1]) == 0);
    acp_sync();
    CHECK(holds(both[1], ""));
    acp_sync();
    if (me == 0) {
        acp_destroy_map(both[0]);
        acp_destroy_map(both[1]);
    }
}

/* All ranks change one map at the same time. */
static void together(void)
{
    enum { COUNT = 30 };
    acp_map_t map;
    if (me == 0)
        map = map_of("", 7);
    share(&map, sizeof map, 0);
    for (int n = 0; n < COUNT; n++) {
        int own[2] = { me, n }, same[2] = { -1, n };
        acp_pair_t added = { lent(own, sizeof own), text("own") };
        CHECK(acp_insert_map(map, added) == 1);
        added.first = lent(same, sizeof same);
        acp_insert_map(map, added);
    }
    acp_sync();
    CHECK(acp_size_map(map) == (size_t)(ranks + 1) * COUNT);
    acp_sync();
    if (me == ranks - 1)
        acp_destroy_map(map);
}

void maps(void)
{
    int on[] = { 0, ranks }, negative[] = { -1 };
    CHECK(acp_create_map(2, on, 3, 0).ga == ACP_GA_NULL && acp_create_map(1, negative, 3, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_map(1, on, 0, 0).ga == ACP_GA_NULL && acp_create_map(1, on, -1, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_map(0, on, 3, 0).ga == ACP_GA_NULL && acp_create_map(-1, on, 3, 0).ga == ACP_GA_NULL);
    CHECK(acp_create_map(1, NULL, 3, 0).ga == ACP_GA_NULL && acp_create_map(1, on, 3, ranks).ga == ACP_GA_NULL);
    CHECK(acp_create_map(1, on, 2147483647, 0).ga == ACP_GA_NULL);
    calls();
    pairs();
    acp_sync();
    locals();
    together();
}
