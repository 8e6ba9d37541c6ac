/*
 * Copies between all pairs of processes, also by a third one; sizes from 0 on; chains that wait for
 * each other by all kinds of order; copies of one pair that become visible in order. Three processes.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "acp.h"
#include "check.h"
#include "exchange.h"

enum { BYTES = 20000, ROUNDS = 300, PAYLOAD = 1500 };

static unsigned char data[BYTES];
static uint64_t word;

static void fill(int seed)
{
    for (int i = 0; i < BYTES; i++) {
        data[i] = (unsigned char)(seed * 31 + i * 7 + i / 251);
    }
}

static int is_filled(int seed, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (data[i] != (unsigned char)(seed * 31 + i * 7 + i / 251)) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    int me = acp_rank(), all = acp_procs();
    acp_atkey_t key = acp_register_memory(data, sizeof data, 0);
    acp_atkey_t key_word = acp_register_memory(&word, sizeof word, acp_colors() - 1);
    publish(acp_query_ga(key, data));
    CHECK(acp_query_color(acp_query_ga(key_word, &word)) == acp_colors() - 1);
    acp_sync();
    acp_ga_t at[8];
    for (int rank = 0; rank < all; rank++) {
        at[rank] = published(key_word, &word, rank);
    }

    /* Each process copies from each to each, one after the other. */
    const size_t sizes[] = { 0, 3, 8, 65, BYTES };
    for (int by = 0; by < all; by++) {
        for (int from = 0; from < all; from++) {
            for (int to = 0; to < all; to++) {
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                    int size = (int)sizes[s];
                    fill(me);
                    acp_sync();
                    if (me == by) {
                        acp_handle_t copy = acp_copy(at[to], at[from], sizes[s], ACP_HANDLE_NULL);
                        CHECK(copy > 0);
                        acp_complete(copy);
                        CHECK(acp_inquire(copy) == 0);
                    }
                    acp_sync();
                    if (me == to) {
                        CHECK(is_filled(from, 0, size) && is_filled(to, size, size + 100 < BYTES ? size + 100 : size));
                    }
                }
            }
        }
    }
    acp_sync();

    /* A word goes around all processes, and each hop waits for the previous one. */
    if (me == all - 1) {
        acp_handle_t hop = ACP_HANDLE_NULL;
        for (int round = 0; round < ROUNDS; round++) {
            const acp_handle_t orders[] = { hop, ACP_HANDLE_ALL, ACP_HANDLE_CONT };
            for (int rank = 0; rank < all; rank++) {
                hop = acp_copy(at[(rank + 1) % all], at[rank], 8, rank == 0 ? hop : orders[round % 3]);
                CHECK(hop > 0);
            }
            hop = acp_add8(acp_query_ga(key_word, &word), at[0], 1, orders[round % 3] == hop ? hop : ACP_HANDLE_ALL);
        }
        acp_complete(hop);
        CHECK(acp_inquire(ACP_HANDLE_ALL) == 0 && acp_inquire(ACP_HANDLE_CONT) == 0);
        /* Handles of complete, never started and impossible operations are waits for nothing. */
        const acp_handle_t nothing[] = { 1, hop, hop + 1000000, INT64_MAX, -3, INT64_MIN, ACP_HANDLE_NULL };
        for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
            acp_complete(nothing[i]);
            CHECK(acp_inquire(nothing[i]) == 0);
            acp_handle_t next = acp_copy(at[me], at[me], 8, nothing[i]);
            CHECK(next > 0);
            acp_complete(next);
        }
    }
    acp_sync();

    /* Process 0 sends payload and then a counter, without an order; process 1 answers by the counter. */
    memset(data, 0, sizeof data);
    word = 0;
    volatile unsigned char *counter = data + 2 * PAYLOAD;
    acp_sync();
    if (me < 2) {
        for (int round = 1; round <= ROUNDS; round++) {
            if (me == 0) {
                memset(data, round, PAYLOAD);
                data[2 * PAYLOAD + 8] = (unsigned char)round;
                CHECK(acp_copy(at[1], at[0], PAYLOAD, ACP_HANDLE_NULL) > 0);
                CHECK(acp_copy(at[1] + 2 * PAYLOAD, at[0] + 2 * PAYLOAD + 8, 1, ACP_HANDLE_NULL) > 0);
            }
            while (*counter != (unsigned char)round) {
                sched_yield();
            }
            if (me == 1) {
                for (int i = 0; i < PAYLOAD; i++) {
                    CHECK(data[i] == (unsigned char)round);
                }
                acp_copy(at[0] + 2 * PAYLOAD, at[1] + 2 * PAYLOAD, 1, ACP_HANDLE_NULL);
            }
        }
    }

    /* Source and destination overlap: each byte was at the source before, or was written by the copy. */
    acp_sync();
    fill(1);
    acp_complete(acp_copy(at[me] + 1, at[me], 1000, ACP_HANDLE_NULL));
    CHECK(data[0] == (unsigned char)31 && is_filled(1, 1001, BYTES));
    CHECK(acp_finalize() == 0);
    return check_result("copies");
}
