/* Segmented buffers. */
#include "middle.h"

enum { SIZE = 64, COUNT = 3, ROUNDS = 50 };

static char memory[COUNT][SIZE];

static char *segment(int64_t index)
{
    CHECK(index >= 0 && index < COUNT);
    return memory[index < 0 ? 0 : index];
}

static void source(void)
{
    acp_segbuf_t to = acp_create_src_segbuf(1, memory, SIZE, COUNT);
    CHECK(to != NULL && acp_free_segbuf(to) == -1);
    CHECK(acp_connect_segbuf(to) == 0 && acp_connect_segbuf(to) == 0);
    CHECK(acp_isconnected_segbuf(to) == 0);
    CHECK(acp_isacked_segbuf(to) == -1 && acp_ready_segbuf(to) == -1);
    for (int round = 0; round < ROUNDS; round++) {
        while (acp_isready_segbuf(to) == 1)
            ;
        CHECK(acp_query_segbuf_tail(to) == round % COUNT);
        memset(segment(acp_query_segbuf_tail(to)), round, SIZE);
        CHECK(acp_ack_segbuf(to) == 0);
    }
    while (acp_query_segbuf_sent(to) != ROUNDS % COUNT || acp_query_segbuf_head(to) != ROUNDS % COUNT)
        ;
    acp_sync();
    /* The destination takes none of these. */
    for (int n = 0; n < COUNT; n++) {
        memset(segment(acp_query_segbuf_tail(to)), 100 + n, SIZE);
        CHECK(acp_ack_segbuf(to) == 0);
    }
    CHECK(acp_isready_segbuf(to) == 1 && acp_ack_segbuf(to) == -1);
    CHECK(acp_disconnect_segbuf(to) == 0 && acp_disconnect_segbuf(to) == -1);
    CHECK(acp_ack_segbuf(to) == -1 && acp_isready_segbuf(to) == -1 && acp_connect_segbuf(to) == -1);
    CHECK(acp_query_segbuf_sent(to) == -1 && acp_query_segbuf_head(to) == -1 && acp_isconnected_segbuf(to) == -1);
    acp_sync();
    CHECK(acp_free_segbuf(to) == 0 && acp_free_segbuf(to) == -1 && acp_isready_segbuf(to) == -1);
}

static void destination(void)
{
    acp_segbuf_t from = acp_create_dst_segbuf(0, memory, SIZE, COUNT);
    CHECK(from != NULL);
    int connected;
    while ((connected = acp_isconnected_segbuf(from)) == 1)
        ;
    CHECK(connected == 0 && acp_connect_segbuf(from) == 0);
    CHECK(acp_isready_segbuf(from) == -1 && acp_ack_segbuf(from) == -1 && acp_query_segbuf_sent(from) == -1);
    for (int round = 0; round < ROUNDS; round++) {
        while (acp_isacked_segbuf(from) == 1)
            ;
        CHECK(acp_query_segbuf_head(from) == round % COUNT && acp_query_segbuf_tail(from) >= 0);
        char *taken = segment(acp_query_segbuf_head(from));
        CHECK(taken[0] == round && taken[SIZE - 1] == round);
        CHECK(acp_ready_segbuf(from) == 0);
    }
    CHECK(acp_isacked_segbuf(from) == 1 && acp_ready_segbuf(from) == -1);
    acp_sync();
    acp_sync();
    /* The source has disconnected after it has sent these. */
    for (int n = 0; n < COUNT; n++) {
        while (acp_isacked_segbuf(from) == 1)
            ;
        CHECK(acp_isconnected_segbuf(from) == 0);
        CHECK(segment(acp_query_segbuf_head(from))[5] == 100 + n);
        CHECK(acp_ready_segbuf(from) == 0);
    }
    CHECK(acp_isacked_segbuf(from) == -1 && acp_isconnected_segbuf(from) == -1);
    CHECK(acp_disconnect_segbuf(from) == 0);
    CHECK(acp_free_segbuf(from) == 0 && acp_free_segbuf(from) == -1);
}

void segments(void)
{
    int peer = (me + 1) % ranks;
    CHECK(acp_create_src_segbuf(me, memory, SIZE, COUNT) == NULL);
    CHECK(acp_create_dst_segbuf(ranks, memory, SIZE, COUNT) == NULL);
    CHECK(acp_create_src_segbuf(-1, memory, SIZE, COUNT) == NULL);
    CHECK(acp_create_src_segbuf(peer, NULL, SIZE, COUNT) == NULL);
    CHECK(acp_create_dst_segbuf(peer, memory, 0, COUNT) == NULL);
    CHECK(acp_create_src_segbuf(peer, memory, SIZE, 0) == NULL);
    CHECK(acp_create_dst_segbuf(peer, memory, (size_t)-1, COUNT) == NULL);
    if (me == 0)
        source();
    else if (me == 1)
        destination();
    else {
        acp_sync();
        acp_sync();
    }
}
