/*
 * The time of a call and its completion, in nanoseconds: the least of several batches, each the mean
 * of many calls. Two processes, of which the second waits. Prints a line "bench <figure> ns <value>"
 * for each figure.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "acp.h"
#include "check.h"
#include "exchange.h"

enum { BATCHES = 15, TIMES = 100000 };

static uint64_t words[64];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define FIGURE(name, call)                                 \
    do {                                                   \
        double least = 1e18;                               \
        for (int batch = 0; batch < BATCHES; batch++) {    \
            double start = now();                          \
            for (int i = 0; i < TIMES; i++) {              \
                acp_complete(call);                        \
            }                                              \
            double taken = (now() - start) / TIMES;        \
            least = taken < least ? taken : least;         \
        }                                                  \
        printf("bench %s ns %.1f\n", name, least);         \
    } while (0)

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    publish(acp_query_ga(key, words));
    acp_sync();
    if (acp_rank() == 0) {
        acp_ga_t own = acp_query_ga(key, words), there = published(key, words, acp_procs() - 1);
        FIGURE("add4-local", acp_add4(own, own + 64, 1, ACP_HANDLE_NULL));
        FIGURE("add4-remote", acp_add4(own, there + 64, 1, ACP_HANDLE_NULL));
        FIGURE("put-8", acp_copy(there + 64, own, 8, ACP_HANDLE_NULL));
        FIGURE("get-8", acp_copy(own, there + 64, 8, ACP_HANDLE_NULL));
        FIGURE("put-8-starter", acp_copy(acp_query_starter_ga(acp_procs() - 1), own, 8, ACP_HANDLE_NULL));
    }
    acp_sync();
    CHECK(acp_finalize() == 0);
    return check_failures;
}
