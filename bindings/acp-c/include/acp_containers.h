/* Containers in global memory. Included by acp_middle.h.
 *
 * Sizes and positions of vectors and deques are in bytes. Functions that return nothing leave the
 * container as it was if they fail. Iterators of sets, multisets and maps at their end have the
 * element ACP_GA_NULL and the rank num_ranks. */
#ifndef ACP_CONTAINERS_H
#define ACP_CONTAINERS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Vectors: consecutive bytes in the heap of one rank ---- */

typedef struct {
    acp_ga_t ga;
} acp_vector_t;

typedef struct {
    acp_vector_t vector;
    int index;
} acp_vector_it_t;

/* Creates a vector of size bytes, all 0, in the heap of a rank; its ga is ACP_GA_NULL on failure. */
acp_vector_t acp_create_vector(size_t size, int rank);
void acp_destroy_vector(acp_vector_t vector);
void acp_clear_vector(acp_vector_t vector);
int acp_empty_vector(acp_vector_t vector); /* 1 empty, 0 not */
size_t acp_size_vector(acp_vector_t vector);
size_t acp_capacity_vector(acp_vector_t vector);
void acp_reserve_vector(acp_vector_t vector, size_t size);
void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2);
/* Replaces all bytes by those of another vector, or of a range of one. */
void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2);
void acp_assign_range_vector(acp_vector_t vector, acp_vector_it_t start, acp_vector_it_t end);
acp_ga_t acp_at_vector(acp_vector_t vector, int index); /* ACP_GA_NULL outside */
acp_vector_it_t acp_begin_vector(acp_vector_t vector);
acp_vector_it_t acp_end_vector(acp_vector_t vector);
/* Inserts bytes from global memory before a position; returns the position of the first. */
acp_vector_it_t acp_insert_vector(acp_vector_it_t it, const acp_ga_t ga, size_t size);
acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it, acp_vector_it_t start, acp_vector_it_t end);
/* Removes bytes, at most to the end; returns the position of the next. */
acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size);
acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end);
void acp_push_back_vector(acp_vector_t vector, const acp_ga_t ga, size_t size);
void acp_pop_back_vector(acp_vector_t vector, size_t size);
acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n);
acp_ga_t acp_dereference_vector_it(acp_vector_it_t it); /* ACP_GA_NULL outside */
int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last);


/* ---- Deques: bytes in a ring in the heap of one rank, which grow at both ends ---- */

typedef struct {
    acp_ga_t ga;
} acp_deque_t;

typedef struct {
    acp_deque_t deque;
    int index;
} acp_deque_it_t;

/* Creates a deque of size bytes, all 0, in the heap of a rank; its ga is ACP_GA_NULL on failure. */
acp_deque_t acp_create_deque(size_t size, int rank);
void acp_destroy_deque(acp_deque_t deque);
void acp_clear_deque(acp_deque_t deque);
int acp_empty_deque(acp_deque_t deque); /* 1 empty, 0 not */
size_t acp_size_deque(acp_deque_t deque);
size_t acp_capacity_deque(acp_deque_t deque);
void acp_reserve_deque(acp_deque_t deque, size_t size);
void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2);
/* Replaces all bytes by those of another deque, or of a range of one. */
void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2);
void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start, acp_deque_it_t end);
acp_ga_t acp_at_deque(acp_deque_t deque, int index); /* ACP_GA_NULL outside */
acp_deque_it_t acp_begin_deque(acp_deque_t deque);
acp_deque_it_t acp_end_deque(acp_deque_t deque);
/* Inserts bytes from global memory before a position; returns the position of the first. */
acp_deque_it_t acp_insert_deque(acp_deque_it_t it, const acp_ga_t ga, size_t size);
acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it, acp_deque_it_t start, acp_deque_it_t end);
/* Removes bytes, at most to the end; returns the position of the next. */
acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size);
acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end);
void acp_push_back_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_pop_back_deque(acp_deque_t deque, size_t size);
void acp_push_front_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_pop_front_deque(acp_deque_t deque, size_t size);
acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n);
/* The at most size bytes from a position on: one piece, or two if they wrap around. */
acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size);
int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last);

/* ---- Lists: doubly linked elements of any size, each in the heap of any rank ---- */

typedef struct {
    acp_ga_t ga;
} acp_list_t;

/* The end of a list has the element list.ga. An iterator with elem ACP_GA_NULL is a failure. */
typedef struct {
    acp_list_t list;
    acp_ga_t elem;
} acp_list_it_t;

acp_list_t acp_create_list(int rank); /* ga is ACP_GA_NULL on failure */
void acp_destroy_list(acp_list_t list);
void acp_clear_list(acp_list_t list);
int acp_empty_list(acp_list_t list); /* 1 empty, 0 not */
size_t acp_size_list(acp_list_t list);
void acp_swap_list(acp_list_t list1, acp_list_t list2);
/* Replaces all elements by copies of those of another list, or of a range of one. */
void acp_assign_list(acp_list_t list1, acp_list_t list2);
void acp_assign_range_list(acp_list_t list, acp_list_it_t start, acp_list_it_t end);
acp_list_it_t acp_begin_list(acp_list_t list);
acp_list_it_t acp_end_list(acp_list_t list);
/* Inserts a copy before a position, in the heap of a rank; a range keeps the ranks of its elements.
 * Returns the position of the first. */
acp_list_it_t acp_insert_list(acp_list_it_t it, const acp_element_t elem, int rank);
acp_list_it_t acp_insert_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
/* Returns the position of the next element. */
acp_list_it_t acp_erase_list(acp_list_it_t it);
acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end);
void acp_push_back_list(acp_list_t list, const acp_element_t elem, int rank);
void acp_push_front_list(acp_list_t list, const acp_element_t elem, int rank);
void acp_pop_back_list(acp_list_t list);
void acp_pop_front_list(acp_list_t list);
/* Sorts, and merges a sorted list into another; elements keep their place in memory, and equal ones
 * their order. comp returns less than, equal to or more than 0, and may call any function of this
 * library that leaves the lists alone. */
void acp_sort_list(acp_list_t list, int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
void acp_merge_list(acp_list_t list1, acp_list_t list2,
                    int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
void acp_reverse_list(acp_list_t list);
void acp_unique_list(acp_list_t list);
void acp_remove_list(acp_list_t list, const acp_element_t elem);
/* Moves an element, or a range, to before a position of this list or another. */
void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2);
void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
/* Steps stop at the first element and at the end. */
acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n);
acp_list_it_t acp_increment_list_it(acp_list_it_t it);
acp_list_it_t acp_decrement_list_it(acp_list_it_t it);
acp_element_t acp_dereference_list_it(acp_list_it_t it);
int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last); /* 0 if last does not follow */

/* ---- Sets of keys in the memory of several ranks ---- */

typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_set_t;

typedef struct {
    acp_set_t set;
    int rank;
    int slot;
    acp_ga_t elem;
} acp_set_it_t;

/* Creates a set on num_ranks ranks with num_slots slots each, whose directory is at rank; its ga is
 * ACP_GA_NULL on failure. */
acp_set_t acp_create_set(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_set(acp_set_t set);
void acp_clear_set(acp_set_t set);
int acp_empty_set(acp_set_t set); /* 1 empty, 0 not */
int acp_empty_local_set(acp_set_t set);
size_t acp_size_set(acp_set_t set);
size_t acp_size_local_set(acp_set_t set);
int acp_insert_set(acp_set_t set, acp_element_t key); /* 1 new, 0 present or failure */
void acp_remove_set(acp_set_t set, acp_element_t key);
acp_set_it_t acp_find_set(acp_set_t set, acp_element_t key); /* the end if absent */
/* Assigning copies, merging adds and moving takes the elements of set2; the local forms are
 * restricted to those in this rank's memory. */
void acp_assign_set(acp_set_t set1, acp_set_t set2);
void acp_assign_local_set(acp_set_t set1, acp_set_t set2);
void acp_merge_set(acp_set_t set1, acp_set_t set2);
void acp_merge_local_set(acp_set_t set1, acp_set_t set2);
void acp_move_set(acp_set_t set1, acp_set_t set2);
void acp_move_local_set(acp_set_t set1, acp_set_t set2);
void acp_swap_set(acp_set_t set1, acp_set_t set2);
acp_set_it_t acp_begin_set(acp_set_t set);
acp_set_it_t acp_end_set(acp_set_t set);
acp_set_it_t acp_begin_local_set(acp_set_t set);
acp_set_it_t acp_end_local_set(acp_set_t set);
acp_set_it_t acp_increment_set_it(acp_set_it_t it);
acp_element_t acp_dereference_set_it(acp_set_it_t it);

/* ---- Multisets: sets with a count for each key ---- */

typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_multiset_t;

typedef struct {
    acp_multiset_t set;
    int rank;
    int slot;
    acp_ga_t elem;
} acp_multiset_it_t;

/* Creates a multiset on num_ranks ranks with num_slots slots each, whose directory is at rank; its ga is
 * ACP_GA_NULL on failure. */
acp_multiset_t acp_create_multiset(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_multiset(acp_multiset_t set);
void acp_clear_multiset(acp_multiset_t set);
int acp_empty_multiset(acp_multiset_t set); /* 1 empty, 0 not */
int acp_empty_local_multiset(acp_multiset_t set);
size_t acp_size_multiset(acp_multiset_t set);
size_t acp_size_local_multiset(acp_multiset_t set);
/* Adds one to the count of a key: 1, or 0 on failure. */
int acp_insert_multiset(acp_multiset_t set, acp_element_t key);
/* Takes one from the count of a key, or all of it. */
void acp_remove_multiset(acp_multiset_t set, acp_element_t key);
void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key);
uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key); /* the count, 0 if absent */
acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key); /* the end if absent */
/* Assigning copies, merging adds and moving takes the elements of set2; the local forms are
 * restricted to those in this rank's memory. */
void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_merge_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2);
acp_multiset_it_t acp_begin_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_multiset(acp_multiset_t set);
acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it);
acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it);

/* ---- Maps from keys to values in the memory of several ranks ---- */

typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_map_t;

typedef struct {
    acp_map_t map;
    int rank;
    int slot;
    acp_ga_t elem;
} acp_map_it_t;

typedef struct {
    acp_map_it_t it;
    int success;
} acp_map_ib_t;

/* Creates a map on num_ranks ranks with num_slots slots each, whose directory is at rank; its ga is
 * ACP_GA_NULL on failure. */
acp_map_t acp_create_map(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_map(acp_map_t map);
void acp_clear_map(acp_map_t map);
void acp_clear_local_map(acp_map_t map);
int acp_empty_map(acp_map_t map); /* 1 empty, 0 not */
int acp_empty_local_map(acp_map_t map);
size_t acp_size_map(acp_map_t map);
size_t acp_size_local_map(acp_map_t map);
/* 1 if the key is new; 0 on failure, or if it is present, and keeps its value. */
int acp_insert_map(acp_map_t map, acp_pair_t pair);
void acp_remove_map(acp_map_t map, acp_element_t key);
/* Copies the value of the key pair.first to pair.second, at most its size. Returns the size of the
 * whole value, 0 if the key is absent. */
size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair);
acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key); /* the end if absent */
/* Assigning copies, merging adds and moving takes the elements of map2; the local forms are
 * restricted to those in this rank's memory. */
void acp_assign_map(acp_map_t map1, acp_map_t map2);
void acp_assign_local_map(acp_map_t map1, acp_map_t map2);
void acp_merge_map(acp_map_t map1, acp_map_t map2);
void acp_merge_local_map(acp_map_t map1, acp_map_t map2);
void acp_move_map(acp_map_t map1, acp_map_t map2);
void acp_move_local_map(acp_map_t map1, acp_map_t map2);
void acp_swap_map(acp_map_t map1, acp_map_t map2);
acp_map_it_t acp_begin_map(acp_map_t map);
acp_map_it_t acp_end_map(acp_map_t map);
acp_map_it_t acp_begin_local_map(acp_map_t map);
acp_map_it_t acp_end_local_map(acp_map_t map);
acp_map_it_t acp_increment_map_it(acp_map_it_t it);
acp_pair_t acp_dereference_map_it(acp_map_it_t it);

#ifdef __cplusplus
}
#endif

#endif
