/*
 * Everything that is wrong gives a code, and the library works afterwards. Two processes.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "acp.h"
#include "check.h"

static uint64_t words[64];
static const char constant[] = "constant";

/* All functions of a library that does not run. */
static void refuses_everything(void)
{
    CHECK(acp_rank() == -1 && acp_procs() == -1 && acp_colors() == -1 && acp_sync() == -1 && acp_reset(0) == -1);
    CHECK(acp_finalize() == -1 && acp_query_starter_ga(0) == ACP_GA_NULL && acp_query_rank(1ULL << 43) == -1);
    CHECK(acp_register_memory(words, sizeof words, 0) == ACP_ATKEY_NULL && acp_unregister_memory(1) == -1);
    CHECK(acp_query_ga(1, words) == ACP_GA_NULL && acp_query_address(1) == NULL && acp_query_color(1ULL << 43) == -1);
    CHECK(acp_copy(1, 1, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL && acp_inquire(ACP_HANDLE_ALL) == 0);
    CHECK(acp_add8(1, 1, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL && acp_cas4(1, 1, 1, 1, ACP_HANDLE_ALL) == ACP_HANDLE_NULL);
    acp_complete(ACP_HANDLE_ALL);
    acp_complete(7);
}

static void wrong_arguments(void)
{
    int me = acp_rank(), all = acp_procs(), other = (me + 1) % all;
    acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    acp_ga_t own = acp_query_ga(key, words), there = acp_query_starter_ga(other);
    CHECK(key != ACP_ATKEY_NULL && own != ACP_GA_NULL && there != ACP_GA_NULL);
    CHECK(acp_init(NULL, NULL) == -1);

    CHECK(acp_query_starter_ga(-1) == ACP_GA_NULL && acp_query_starter_ga(all) == ACP_GA_NULL);
    CHECK(acp_query_rank(ACP_GA_NULL) == -1 && acp_query_color(ACP_GA_NULL) == -1 && acp_query_rank(~0ULL) == -1);
    CHECK(acp_query_rank(there) == other && acp_query_color(there) == 0 && (all == 1 || acp_query_address(there) == NULL));
    CHECK(acp_query_address(ACP_GA_NULL) == NULL && acp_query_address(~0ULL) == NULL);
    CHECK(acp_query_address(own + sizeof words) == NULL && acp_query_address(own + 8) == words + 1);

    CHECK(acp_query_ga(key, words + 64) == ACP_GA_NULL && acp_query_ga(key, (char *)words - 1) == ACP_GA_NULL);
    CHECK(acp_query_ga(key, NULL) == ACP_GA_NULL && acp_query_ga(ACP_ATKEY_NULL, words) == ACP_GA_NULL);
    CHECK(acp_query_ga(key + 8, words) == ACP_GA_NULL && acp_query_ga(~0ULL, words) == ACP_GA_NULL);
    CHECK(acp_query_ga(acp_query_starter_ga(me), words) == ACP_GA_NULL);

    CHECK(acp_register_memory(NULL, 8, 0) == ACP_ATKEY_NULL && acp_register_memory(words, 0, 0) == ACP_ATKEY_NULL);
    CHECK(acp_register_memory(words, 8, -1) == ACP_ATKEY_NULL && acp_register_memory(words, 8, acp_colors()) == ACP_ATKEY_NULL);
    CHECK(acp_register_memory((void *)4096, 8, 0) == ACP_ATKEY_NULL);
    CHECK(acp_register_memory(words, SIZE_MAX, 0) == ACP_ATKEY_NULL);
    CHECK(acp_register_memory(acp_query_address(acp_query_starter_ga(me)), 8, 0) == ACP_ATKEY_NULL);
    void *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(acp_register_memory(shared, 8, 0) == ACP_ATKEY_NULL);
    munmap(shared, 8192);
    CHECK(acp_unregister_memory(ACP_ATKEY_NULL) == -1 && acp_unregister_memory(key + 1) == -1);
    CHECK(acp_unregister_memory(~0ULL) == -1 && acp_unregister_memory(acp_query_starter_ga(me)) == -1);

    const acp_ga_t wrong[] = { ACP_GA_NULL, 1, ~0ULL, own + sizeof words, own + (1ULL << 34), there + (200ULL << 33) };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(acp_copy(wrong[i], own, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
        CHECK(acp_copy(own, wrong[i], 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
        CHECK(acp_add8(own, wrong[i], 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
        CHECK(acp_cas4(wrong[i], own, 1, 2, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    }
    CHECK(acp_copy(there, own, sizeof words + 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(acp_copy(own, there, SIZE_MAX, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(acp_copy(own, there + 10240, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(acp_add8(own, there + 4, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL && acp_add8(own + 4, there, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(acp_swap4(own, there + 2, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL && acp_swap4(own + 1, there, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    if (all > 1) {
        CHECK(acp_or8(there, own, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL); /* dst is not own memory */
    }

    /* A region that has ended. */
    CHECK(acp_unregister_memory(key) == 0 && acp_unregister_memory(key) == -1);
    CHECK(acp_query_ga(key, words) == ACP_GA_NULL && acp_query_address(own) == NULL);
    CHECK(acp_copy(own, there, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);

    acp_sync();
    /* All regions that there are, and again after they have ended. */
    for (int round = 0; round < 2; round++) {
        acp_atkey_t keys[300];
        int count = 0;
        while (count < 300 && (keys[count] = acp_register_memory(words, sizeof words, 0)) != ACP_ATKEY_NULL) {
            count++;
        }
        CHECK(count == 253);
        while (count > 0) {
            CHECK(acp_unregister_memory(keys[--count]) == 0);
        }
    }

    /* Memory that is only readable can be read by others. */
    key = acp_register_memory((void *)(uintptr_t)constant, sizeof constant, 0);
    acp_atkey_t key_words = acp_register_memory(words, sizeof words, 0);
    if (key != ACP_ATKEY_NULL) {
        acp_complete(acp_copy(acp_query_ga(key_words, words), acp_query_ga(key, (void *)(uintptr_t)constant), sizeof constant, ACP_HANDLE_NULL));
        CHECK(strcmp((char *)words, constant) == 0);
    }
}

int main(int argc, char **argv)
{
    refuses_everything();
    for (int life = 0; life < 2; life++) {
        CHECK(acp_init(&argc, &argv) == 0);
        uint64_t *starter = acp_query_address(acp_query_starter_ga(acp_rank()));
        CHECK(starter != NULL && starter[0] == 0);
        wrong_arguments();
        starter[0] = 1;
        CHECK(acp_sync() == 0 && acp_finalize() == 0);
        refuses_everything();
    }
    return check_result("errors");
}
