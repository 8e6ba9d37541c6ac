/*
 * All twelve atomics on own words and on another process's, in registered memory and in starter
 * memory; words that several processes and the owner's own CPU change at the same time.
 */
#include <string.h>

#include "acp.h"
#include "check.h"
#include "exchange.h"

enum { TIMES = 2000 };

/* The word and the previous value are on one page with other data. */
static struct {
    uint64_t before[4], word, after[4], previous;
} own;

static uint32_t low(uint64_t word)
{
    uint32_t value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Sets the word at `at` to `value`. */
static void set(acp_ga_t from, acp_ga_t at, uint64_t value)
{
    own.before[0] = value;
    acp_complete(acp_copy(at, from, 8, ACP_HANDLE_NULL));
}

/* Checks that the word at `at` is `value`, and that the previous value is `previous`. */
static void holds(int line, acp_ga_t to, acp_ga_t at, uint64_t value, uint64_t previous, int width)
{
    acp_complete(acp_copy(to, at, 8, ACP_HANDLE_NULL));
    uint64_t word = own.after[0], was = width == 4 ? low(own.previous) : own.previous;
    if (word != value || was != previous) {
        fprintf(stderr, "FAIL: line %d: word %llx, previous %llx\n", line, (unsigned long long)word, (unsigned long long)was);
        check_failures++;
    }
}

#define ATOMIC(width, call, value, initial)                                     \
    do {                                                                        \
        set(from, at, initial);                                                 \
        own.previous = ~0ULL;                                                   \
        acp_handle_t handle = call;                                             \
        CHECK(handle > 0);                                                      \
        acp_complete(handle);                                                   \
        holds(__LINE__, to, at, value, width == 4 ? low(initial) : initial, width); \
    } while (0)

/* All atomics on the word at `at`. The upper half of a word shows whether 4 bytes stay 4 bytes. */
static void all_on(acp_atkey_t key, acp_ga_t at)
{
    const uint64_t initial = 0xf0f0f0f0000000ffULL, operand = 0x0ff0123400000f0fULL;
    const uint64_t upper = initial & 0xffffffff00000000ULL;
    const uint32_t small = 0x00000f0f;
    acp_ga_t from = acp_query_ga(key, &own.before[0]), to = acp_query_ga(key, &own.after[0]);
    acp_ga_t old = acp_query_ga(key, &own.previous);

    ATOMIC(4, acp_swap4(old, at, small, ACP_HANDLE_NULL), upper | small, initial);
    ATOMIC(4, acp_add4(old, at, small, ACP_HANDLE_NULL), upper | (0xffU + small), initial);
    ATOMIC(4, acp_add4(old, at, 0xffffffff, ACP_HANDLE_ALL), upper | 0xfe, initial);
    ATOMIC(4, acp_xor4(old, at, small, ACP_HANDLE_NULL), upper | (0xff ^ small), initial);
    ATOMIC(4, acp_or4(old, at, small, ACP_HANDLE_CONT), upper | (0xff | small), initial);
    ATOMIC(4, acp_and4(old, at, small, ACP_HANDLE_NULL), upper | (0xff & small), initial);
    ATOMIC(4, acp_cas4(old, at, 0xff, small, ACP_HANDLE_NULL), upper | small, initial);
    ATOMIC(4, acp_cas4(old, at, 0xfe, small, ACP_HANDLE_NULL), initial, initial);

    ATOMIC(8, acp_swap8(old, at, operand, ACP_HANDLE_NULL), operand, initial);
    ATOMIC(8, acp_add8(old, at, operand, ACP_HANDLE_NULL), initial + operand, initial);
    ATOMIC(8, acp_xor8(old, at, operand, ACP_HANDLE_ALL), initial ^ operand, initial);
    ATOMIC(8, acp_or8(old, at, operand, ACP_HANDLE_NULL), initial | operand, initial);
    ATOMIC(8, acp_and8(old, at, operand, ACP_HANDLE_NULL), initial & operand, initial);
    ATOMIC(8, acp_cas8(old, at, initial, operand, ACP_HANDLE_NULL), operand, initial);
    ATOMIC(8, acp_cas8(old, at, initial + 1, operand, ACP_HANDLE_CONT), initial, initial);
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    int me = acp_rank(), all = acp_procs();
    acp_atkey_t key = acp_register_memory(&own, sizeof own, 0);
    acp_ga_t word = acp_query_ga(key, &own.word);
    publish(word);
    acp_sync();

    /* One process at a time, so that no other changes the words. */
    for (int turn = 0; turn < all; turn++) {
        if (turn == me) {
            for (int rank = 0; rank < all; rank++) {
                all_on(key, published(key, &own.after[3], rank));
                all_on(key, acp_query_starter_ga(rank) + 64);
            }
        }
        acp_sync();
    }

    /* The owner of the word changes it by its CPU meanwhile. */
    own.word = 0;
    acp_sync();
    acp_ga_t of_first = published(key, &own.after[3], 0);
    acp_ga_t old = acp_query_ga(key, &own.previous);
    for (int i = 0; i < TIMES; i++) {
        CHECK(acp_add8(old, of_first, 1, ACP_HANDLE_NULL) > 0);
        CHECK(acp_add4(old, of_first + 4, 1, ACP_HANDLE_NULL) > 0);
        if (me == 0) {
            __sync_fetch_and_add(&own.word, 1);
        }
    }
    acp_complete(ACP_HANDLE_ALL);
    acp_sync();
    if (me == 0) {
        uint64_t times = (uint64_t)TIMES * (uint64_t)all;
        CHECK(own.word == times + TIMES + (times << 32));
    }
    CHECK(acp_finalize() == 0);
    return check_result("atomics");
}
