/*
 * All kinds of memory of a program are registered, by two processes that write to each other's.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "acp.h"
#include "check.h"
#include "exchange.h"

enum { KINDS = 6, LARGE = 3 << 20 };

static uint64_t zeros[700];
static uint64_t initialised[3] = { 1, 2, 3 };
static uint64_t word;

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    int me = acp_rank(), other = (me + 1) % acp_procs();
    uint64_t local[5] = { 5, 6, 7, 8, 9 };
    uint64_t *small = malloc(5 * sizeof *small), *large = malloc(LARGE);
    uint64_t *mapped = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(small, 1, 5 * sizeof *small);
    memset(large, 2, LARGE);
    uint64_t *memory[KINDS] = { zeros, initialised, local, small, large, mapped };
    size_t sizes[KINDS] = { sizeof zeros, sizeof initialised, sizeof local, 5 * sizeof *small, LARGE, LARGE };

    acp_atkey_t key_word = acp_register_memory(&word, sizeof word, 0);
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t first = memory[kind][0], last = memory[kind][sizes[kind] / 8 - 1];
        acp_atkey_t key = acp_register_memory(memory[kind], sizes[kind], 0);
        CHECK(key != ACP_ATKEY_NULL);
        CHECK(memory[kind][0] == first && memory[kind][sizes[kind] / 8 - 1] == last);
        publish(acp_query_ga(key, memory[kind]));
        acp_sync();
        acp_ga_t there = published(key_word, &word, other);
        acp_ga_t last_there = there + sizes[kind] - 8;
        acp_complete(acp_add8(acp_query_ga(key_word, &word), last_there, 1000, ACP_HANDLE_NULL));
        CHECK(word == (memory[kind] == mapped ? 0 : last));
        acp_sync();
        CHECK(memory[kind][sizes[kind] / 8 - 1] == last + 1000);
        /* What the owner writes afterwards, others see. */
        memory[kind][0] = 77;
        acp_sync();
        acp_complete(acp_copy(acp_query_ga(key_word, &word), there, 8, ACP_HANDLE_NULL));
        CHECK(word == 77);
        acp_sync();
        CHECK(acp_unregister_memory(key) == 0);
        acp_sync();
    }
    free(small);
    free(large);
    munmap(mapped, LARGE);
    CHECK(acp_finalize() == 0);
    return check_result("memory");
}
