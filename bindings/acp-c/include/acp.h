/*
 * ACP 3.0 (Advanced Communication Primitives) over shared memory: libacp.
 *
 * A job has processes with ranks from 0 on. Every process runs `main` and calls acp_init first and
 * acp_finalize last. Each byte of registered memory of any process has a 64-bit global address (GA);
 * adding n to it gives the address of the byte n bytes further on in the same region. Any process may
 * copy between, and change, any two global addresses.
 *
 * Failures are return values: -1, a null address, key, pointer or handle. The reason is on standard
 * error if the environment variable ONESIDED_VERBOSE is set. Any thread may call, also at the same
 * time, except that collective functions (acp_init, acp_sync, acp_reset, acp_finalize) are called by
 * one thread of each process at a time, in the same order by all processes.
 */
#ifndef ONESIDED_ACP_H
#define ONESIDED_ACP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----- processes ----- */

/*
 * Initializes. Collective: returns once all processes have called it; all starter memory is zero then.
 * Takes words that start with `--acp-`, and their values, out of the command line; a wrong one ends
 * the process with a message. Both pointers may be null. 0, or -1: called before, no job, no memory.
 */
int acp_init(int *argc, char ***argv);

/*
 * Completes all copies and atomics of this process, waits until all processes have called it, and
 * ends all registrations. 0, or -1 if something of that failed; the library is finalized in either
 * case, and acp_init may be called again. Collective.
 */
int acp_finalize(void);

/*
 * Completes all copies and atomics, ends all registrations, zeroes starter memory, and continues as
 * process `rank`. The ranks given by all processes must be a permutation, otherwise -1 in all of
 * them, and the ranks stay as they were. Collective.
 */
int acp_reset(int rank);

/* Writes a text to standard error, and ends all processes of the job with exit code 1. */
void acp_abort(const char *text);

/* Waits until all processes have called it. It completes no copies. 0, or -1 if one is lost. Collective. */
int acp_sync(void);

/* This process's rank, the number of processes, and the number of colours; -1 if not initialized. */
int acp_rank(void);
int acp_procs(void);
int acp_colors(void);

/* ----- global addresses ----- */

typedef uint64_t acp_atkey_t; /* a registration */
typedef uint64_t acp_ga_t;    /* a global address */

#define ACP_ATKEY_NULL ((acp_atkey_t)0)
#define ACP_GA_NULL ((acp_ga_t)0)

/* The address of a process's starter memory, which exists from the start (`--acp-size-smem` bytes). */
acp_ga_t acp_query_starter_ga(int rank);

/*
 * Registers memory of the program: its variables, blocks of malloc, the stack. It has to stay mapped
 * until it is unregistered. A colour, from 0 to acp_colors() - 1, is a path through the network. Null:
 * no memory at the address, memory that other mappings share, starter memory, no such colour, more
 * than 253 regions or more than 8 GiB.
 */
acp_atkey_t acp_register_memory(void *address, size_t size, int color);

/* Ends a registration; operations on its addresses fail from then on. 0, or -1: no such key. */
int acp_unregister_memory(acp_atkey_t key);

/* The global address of a byte of registered memory of this process; null if it is not in that region. */
acp_ga_t acp_query_ga(acp_atkey_t key, void *address);

/* The address in this process; null for addresses of other processes and outside of regions. */
void *acp_query_address(acp_ga_t ga);

/* The process and the colour of an address; -1 for ACP_GA_NULL and what is not an address of the job. */
int acp_query_rank(acp_ga_t ga);
int acp_query_color(acp_ga_t ga);

/* ----- copies and atomics ----- */

typedef int64_t acp_handle_t; /* the number of an operation, counted from 1 in each process */

#define ACP_HANDLE_NULL ((acp_handle_t)0)
#define ACP_HANDLE_ALL ((acp_handle_t)-1)
#define ACP_HANDLE_CONT ((acp_handle_t)-2)

/*
 * The functions below start an operation and return its handle, or ACP_HANDLE_NULL if it was not
 * started: an address outside of regions, a misaligned word, a lost process. They wait only if 4096
 * operations are incomplete.
 *
 * `order` is what an operation waits for before it starts: nothing (ACP_HANDLE_NULL); an operation and
 * all earlier ones of this process (its handle); all earlier ones (ACP_HANDLE_ALL); the same, but a
 * copy between the same two processes as the previous operation follows it without waiting
 * (ACP_HANDLE_CONT). A handle of a complete operation, or of one that was never started, is nothing.
 * Copies from one process to another become visible in the order in which they were started.
 */

/* Copies bytes between any two addresses. */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/*
 * Atomics change the word at `src`, of any process, and store its previous value at `dst`, which is in
 * this process's own memory. Both are aligned to the word's size. acp_cas stores the new value only if
 * the word is equal to the old one.
 */
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval, acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval, acp_handle_t order);
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/*
 * Waits until an operation and all earlier ones of this process are complete: their data is visible.
 * ACP_HANDLE_ALL and ACP_HANDLE_CONT stand for all operations. Returns at once for ACP_HANDLE_NULL and
 * operations that are complete or were never started. If a process is lost that it waits for, it ends
 * this one with a message.
 */
void acp_complete(acp_handle_t handle);

/* 1 if one of the operations that acp_complete would wait for is incomplete, otherwise 0. */
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif

#include "acp_middle.h"

#endif
