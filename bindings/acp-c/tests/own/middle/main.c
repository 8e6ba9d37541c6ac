/* Tests all functions of the middle layer. Runs as 2 or more ranks; prints a line for each failure,
 * and ends with code 1 if there was one. */
#include "middle.h"
#include <stdlib.h>

int me, ranks;
static int failures;

/* Bounce memory in the starter memory, and the ring of lent memory in the heap. */
enum { BOUNCE = 2048, BOUNCE_SIZE = 2048, SHARED = 1024, LENT_SIZE = 8192 };
static acp_ga_t lent_at;
static size_t lent_next;

void check(int holds, const char *text, const char *file, int line)
{
    if (!holds) {
        failures++;
        printf("FAIL: rank %d of %d: %s:%d: %s\n", me, ranks, file, line, text);
        fflush(stdout);
    }
}

static char *bounce(acp_ga_t *ga)
{
    *ga = acp_query_starter_ga(me) + BOUNCE;
    return acp_query_address(*ga);
}

void put(acp_ga_t to, const void *from, size_t size)
{
    acp_ga_t ga;
    char *memory = bounce(&ga);
    for (size_t done = 0; done < size; done += BOUNCE_SIZE) {
        size_t part = size - done < BOUNCE_SIZE ? size - done : BOUNCE_SIZE;
        memcpy(memory, (const char *)from + done, part);
        acp_complete(acp_copy(to + done, ga, part, ACP_HANDLE_NULL));
    }
}

void get(void *to, acp_ga_t from, size_t size)
{
    acp_ga_t ga;
    char *memory = bounce(&ga);
    for (size_t done = 0; done < size; done += BOUNCE_SIZE) {
        size_t part = size - done < BOUNCE_SIZE ? size - done : BOUNCE_SIZE;
        acp_complete(acp_copy(ga, from + done, part, ACP_HANDLE_NULL));
        memcpy((char *)to + done, memory, part);
    }
}

void share(void *bytes, size_t size, int root)
{
    acp_ga_t at = acp_query_starter_ga(root) + SHARED;
    if (me == root)
        put(at, bytes, size);
    acp_sync();
    get(bytes, at, size);
    acp_sync();
}

acp_element_t lent(const void *bytes, size_t size)
{
    if (lent_next + size > LENT_SIZE)
        lent_next = 0;
    acp_element_t element = { lent_at + lent_next, size };
    put(element.ga, bytes, size);
    lent_next += (size + 7) / 8 * 8;
    return element;
}

acp_element_t text(const char *text)
{
    return lent(text, strlen(text));
}

acp_pair_t pair(const char *key, const char *value)
{
    acp_pair_t pair = { text(key), text(value) };
    return pair;
}

int is_text(acp_element_t element, const char *text)
{
    char bytes[256];
    if (element.size != strlen(text) || element.size > sizeof bytes)
        return 0;
    get(bytes, element.ga, element.size);
    return memcmp(bytes, text, element.size) == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        { "channels", channels }, { "segments", segments }, { "heaps", heaps }, { "vectors", vectors },
        { "deques", deques },     { "lists", lists },       { "sets", sets },   { "multisets", multisets },
        { "maps", maps },         { "spaces", spaces },     { "wrong", wrong },
    };
    wrong();
    if (acp_init(&argc, &argv) != 0)
        return 2;
    me = acp_rank();
    ranks = acp_procs();
    lent_at = acp_malloc(LENT_SIZE, me);
    CHECK(lent_at != ACP_GA_NULL);
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        if (argc > 1 && strcmp(argv[1], parts[n].name) != 0)
            continue;
        parts[n].run();
        acp_sync();
    }
    acp_free(lent_at);
    /* A reset ends all of it, and it begins again with other ranks. */
    int next = (me + 1) % ranks, word = 0;
    acp_ch_t channel = acp_create_ch(me, next);
    acp_segbuf_t segbuf = acp_create_src_segbuf(next, &word, sizeof word, 1);
    acp_request_t request = acp_nbsend_ch(channel, &word, sizeof word);
    acp_wsd_t space = acp_create_ws(64);
    CHECK(channel != NULL && segbuf != NULL && request != NULL && space != ACP_WSD_NULL);
    CHECK(acp_reset(next) == 0 && acp_rank() == next);
    me = next;
    CHECK(acp_nbsend_ch(channel, &word, sizeof word) == NULL && acp_wait_ch(request) == (size_t)-1);
    CHECK(acp_isconnected_segbuf(segbuf) == -1 && acp_write_ws(space, acp_query_starter_ga(me), 1, 0) == 1);
    lent_at = acp_malloc(LENT_SIZE, me);
    lent_next = 0;
    for (size_t n = 0; n < sizeof parts / sizeof *parts && argc == 1; n++) {
        parts[n].run();
        acp_sync();
    }
    /* What is left is freed by acp_finalize. */
    acp_create_ws(64);
    acp_nbsend_ch(acp_create_ch(me, (me + 1) % ranks), &word, sizeof word);
    CHECK(acp_finalize() == 0);
    if (me == 0 && failures == 0)
        printf("middle: %d ranks\n", ranks);
    ranks = 0;
    wrong();
    return failures > 0;
}
