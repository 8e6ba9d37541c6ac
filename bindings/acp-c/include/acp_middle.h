/* The middle layer of ACP 3.0: channels, segmented buffers, work spaces, the ranks' heaps, and (in
 * acp_containers.h) containers. Included by acp.h, which defines the types of global addresses.
 * The guide is docs/learn/acp-c-middle.md. */
#ifndef ACP_MIDDLE_H
#define ACP_MIDDLE_H

#ifndef ACP_GA_NULL
#error "include acp.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Channels: messages in order from one rank to another ---- */

/* Handles are numbers in the form of pointers, and are not to be followed. NULL is none. */
typedef struct chitem *acp_ch_t;
typedef struct chreqitem *acp_request_t;

/* Creates this rank's end without waiting for the other. The n-th channel that the sender creates
 * for the receiver is connected with the n-th that the receiver creates for the sender. NULL unless
 * the ranks exist and differ and the caller is one of them. */
acp_ch_t acp_create_ch(int sender, int receiver);
/* Sends a message, or receives one: a longer one is cut, a shorter one changes only its own bytes.
 * The buffer is the library's until the request has been waited for. NULL at the wrong end. */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size);
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size);
/* Closes this end after all earlier requests. Both ends have to be freed. */
acp_request_t acp_nbfree_ch(acp_ch_t ch);
int acp_free_ch(acp_ch_t ch); /* 0, or -1 */
/* Waits, and frees the request. Returns the bytes received, 0 for other requests,
 * (size_t)-1 on failure. */
size_t acp_wait_ch(acp_request_t request);
/* Waits for all of count requests; sizes (if not NULL) gets the result of each. 0, or -1 if any
 * failed. */
int acp_waitall_ch(acp_request_t *requests, int count, size_t *sizes);
/* As the calls above, followed by acp_wait_ch: 0, or -1. */
int acp_send_ch(acp_ch_t ch, void *buf, size_t size);
int acp_recv_ch(acp_ch_t ch, void *buf, size_t size);

/* ---- Segmented buffers: messages in place, in a ring of segments on both sides ---- */

typedef struct segbufitem *acp_segbuf_t;

/* Creates this rank's side on memory of the program: segnum segments of segsize bytes. NULL if that
 * is impossible. The n-th source for a rank belongs to the n-th destination there. */
acp_segbuf_t acp_create_src_segbuf(int dst_rank, void *buf, size_t segsize, size_t segnum);
acp_segbuf_t acp_create_dst_segbuf(int src_rank, void *buf, size_t segsize, size_t segnum);
/* Waits until both sides are connected: 0, or -1. */
int acp_connect_segbuf(acp_segbuf_t segbuf);
int acp_isconnected_segbuf(acp_segbuf_t segbuf); /* 0 connected, 1 not yet, -1 not any longer */
/* Source: hands over the segment at the tail: 0, or -1 if none is free. */
int acp_ack_segbuf(acp_segbuf_t segbuf);
int acp_isready_segbuf(acp_segbuf_t segbuf); /* 0 a segment is free, 1 none is, -1 not connected */
/* Destination: gives the segment at the head back: 0, or -1 if there is none. */
int acp_ready_segbuf(acp_segbuf_t segbuf);
int acp_isacked_segbuf(acp_segbuf_t segbuf); /* 0 a segment has arrived, 1 none has, -1 not connected */
/* The segments at the head and the tail, and (source only) the first that may not have arrived:
 * indices below segnum; -1 if not connected. */
int64_t acp_query_segbuf_head(acp_segbuf_t segbuf);
int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf);
int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf);
/* Disconnects without waiting: 0, or -1. */
int acp_disconnect_segbuf(acp_segbuf_t segbuf);
/* Waits until the other side has disconnected as well, and frees this one: 0, or -1 if it was not
 * disconnected. */
int acp_free_segbuf(volatile acp_segbuf_t segbuf);

/* ---- Work spaces: one array of bytes over all ranks ---- */

typedef struct acp_wsditem acp_wsditem;
typedef acp_wsditem *acp_wsd_t;

#define ACP_WSD_NULL ((acp_wsd_t)(-1))

/* Sets the first rank and the bytes per rank of work spaces created later; all ranks pass the same.
 * The default is rank 0 and 1 MiB. */
int acp_setparams_ws(size_t proc_start, size_t size_default); /* always 0 */
/* Collective. ACP_WSD_NULL on all ranks if it fails on one. All bytes are 0. */
acp_wsd_t acp_create_ws(size_t size);
/* Frees this rank's part, so no other rank may use it any longer. */
void acp_destroy_ws(acp_wsd_t wsd);
/* Copies from the work space at an offset to global memory of any rank, or back: 0, or 1. */
int acp_read_ws(acp_wsd_t wsd, acp_ga_t ga, size_t size, size_t offset);
int acp_write_ws(acp_wsd_t wsd, const acp_ga_t ga, size_t size, size_t offset);

/* ---- The ranks' heaps ---- */

/* Allocates in the heap of any rank; ACP_GA_NULL if there is no room or no such rank. */
acp_ga_t acp_malloc(size_t size, int rank);
void acp_free(acp_ga_t ga);

/* ---- Operands of containers ---- */

/* Bytes in global memory of any rank: their address and number. */
typedef struct {
    acp_ga_t ga;
    size_t size;
} acp_element_t;

/* Two elements: the key and value of a map, or the pieces of a range that wraps around. */
typedef struct {
    acp_element_t first;
    acp_element_t second;
} acp_pair_t;

#ifdef __cplusplus
}
#endif

#include "acp_containers.h"

/* Forms with the type as first argument, such as acp_push_back(vector, v, ga, size). */
#define acp_advance(type, ...) acp_advance_##type(__VA_ARGS__)
#define acp_assign(type, ...) acp_assign_##type(__VA_ARGS__)
#define acp_assign_local(type, ...) acp_assign_local_##type(__VA_ARGS__)
#define acp_assign_range(type, ...) acp_assign_range_##type(__VA_ARGS__)
#define acp_at(type, ...) acp_at_##type(__VA_ARGS__)
#define acp_begin(type, ...) acp_begin_##type(__VA_ARGS__)
#define acp_begin_local(type, ...) acp_begin_local_##type(__VA_ARGS__)
#define acp_capacity(type, ...) acp_capacity_##type(__VA_ARGS__)
#define acp_clear(type, ...) acp_clear_##type(__VA_ARGS__)
#define acp_clear_local(type, ...) acp_clear_local_##type(__VA_ARGS__)
#define acp_create(type, ...) acp_create_##type(__VA_ARGS__)
#define acp_decrement(type, ...) acp_decrement_##type(__VA_ARGS__)
#define acp_dereference(type, ...) acp_dereference_##type(__VA_ARGS__)
#define acp_destroy(type, ...) acp_destroy_##type(__VA_ARGS__)
#define acp_distance(type, ...) acp_distance_##type(__VA_ARGS__)
#define acp_empty(type, ...) acp_empty_##type(__VA_ARGS__)
#define acp_empty_local(type, ...) acp_empty_local_##type(__VA_ARGS__)
#define acp_end(type, ...) acp_end_##type(__VA_ARGS__)
#define acp_end_local(type, ...) acp_end_local_##type(__VA_ARGS__)
#define acp_erase(type, ...) acp_erase_##type(__VA_ARGS__)
#define acp_erase_range(type, ...) acp_erase_range_##type(__VA_ARGS__)
#define acp_find(type, ...) acp_find_##type(__VA_ARGS__)
#define acp_increment(type, ...) acp_increment_##type(__VA_ARGS__)
#define acp_insert(type, ...) acp_insert_##type(__VA_ARGS__)
#define acp_insert_range(type, ...) acp_insert_range_##type(__VA_ARGS__)
#define acp_merge(type, ...) acp_merge_##type(__VA_ARGS__)
#define acp_merge_local(type, ...) acp_merge_local_##type(__VA_ARGS__)
#define acp_move(type, ...) acp_move_##type(__VA_ARGS__)
#define acp_move_local(type, ...) acp_move_local_##type(__VA_ARGS__)
#define acp_pop_back(type, ...) acp_pop_back_##type(__VA_ARGS__)
#define acp_pop_front(type, ...) acp_pop_front_##type(__VA_ARGS__)
#define acp_push_back(type, ...) acp_push_back_##type(__VA_ARGS__)
#define acp_push_front(type, ...) acp_push_front_##type(__VA_ARGS__)
#define acp_remove(type, ...) acp_remove_##type(__VA_ARGS__)
#define acp_remove_all(type, ...) acp_remove_all_##type(__VA_ARGS__)
#define acp_reserve(type, ...) acp_reserve_##type(__VA_ARGS__)
#define acp_retrieve(type, ...) acp_retrieve_##type(__VA_ARGS__)
#define acp_reverse(type, ...) acp_reverse_##type(__VA_ARGS__)
#define acp_size(type, ...) acp_size_##type(__VA_ARGS__)
#define acp_size_local(type, ...) acp_size_local_##type(__VA_ARGS__)
#define acp_sort(type, ...) acp_sort_##type(__VA_ARGS__)
#define acp_splice(type, ...) acp_splice_##type(__VA_ARGS__)
#define acp_splice_range(type, ...) acp_splice_range_##type(__VA_ARGS__)
#define acp_swap(type, ...) acp_swap_##type(__VA_ARGS__)
#define acp_unique(type, ...) acp_unique_##type(__VA_ARGS__)

#endif
