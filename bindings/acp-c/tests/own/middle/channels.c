/* Channels. */
#include "middle.h"
#include <stdlib.h>

enum { MOST = 100000 };

static unsigned char sent[MOST], received[MOST];

static void fill(size_t size, int seed)
{
    for (size_t n = 0; n < size; n++)
        sent[n] = (unsigned char)(n * 7 + (size_t)seed);
}

/* Rank 0 sends messages of all sizes, which rank 1 sends back. */
static void echo(void)
{
    static const size_t sizes[] = { 0, 1, 7, 2048, 2049, 16384, MOST };
    acp_ch_t there = acp_create_ch(0, 1), back = acp_create_ch(1, 0);
    CHECK(there != NULL && back != NULL);
    for (int n = 0; n < 7; n++) {
        fill(sizes[n], n);
        memset(received, 0, sizeof received);
        if (me == 0) {
            acp_request_t request = acp_nbsend_ch(there, sent, sizes[n]);
            CHECK(acp_wait_ch(acp_nbrecv_ch(back, received, MOST)) == sizes[n]);
            CHECK(acp_wait_ch(request) == 0);
            CHECK(memcmp(sent, received, sizes[n]) == 0);
        } else {
            CHECK(acp_wait_ch(acp_nbrecv_ch(there, received, MOST)) == sizes[n]);
            CHECK(acp_wait_ch(acp_nbsend_ch(back, received, sizes[n])) == 0);
        }
    }
    /* A buffer that is too short, and one that is too long. */
    fill(5000, 77);
    if (me == 0) {
        CHECK(acp_send_ch(there, sent, 5000) == 0);
        CHECK(acp_send_ch(there, sent, 3) == 0);
    } else {
        memset(received, 9, sizeof received);
        CHECK(acp_wait_ch(acp_nbrecv_ch(there, received, 4000)) == 4000);
        CHECK(memcmp(sent, received, 4000) == 0 && received[4000] == 9);
        memset(received, 9, sizeof received);
        CHECK(acp_recv_ch(there, received, 100) == 0);
        CHECK(memcmp(sent, received, 3) == 0 && received[3] == 9);
    }
    /* The wrong end, memory that cannot exist, and a channel that is being freed. */
    acp_ch_t mine = me == 0 ? there : back, other = me == 0 ? back : there;
    CHECK(acp_nbsend_ch(other, sent, 1) == NULL);
    CHECK(acp_nbrecv_ch(mine, received, 1) == NULL);
    CHECK(acp_nbsend_ch(mine, NULL, 1) == NULL);
    CHECK(acp_nbrecv_ch(other, received, (size_t)-1) == NULL);
    acp_request_t frees[2] = { acp_nbfree_ch(there), acp_nbfree_ch(back) };
    CHECK(acp_nbsend_ch(mine, sent, 1) == NULL && acp_nbrecv_ch(other, received, 1) == NULL);
    size_t sizes_of[2] = { 5, 5 };
    CHECK(acp_waitall_ch(frees, 2, sizes_of) == 0 && sizes_of[0] == 0 && sizes_of[1] == 0);
    CHECK(acp_waitall_ch(frees, 2, sizes_of) == -1 && sizes_of[1] == (size_t)-1);
    CHECK(acp_waitall_ch(frees, 0, NULL) == 0 && acp_waitall_ch(NULL, 1, NULL) == -1);
    CHECK(acp_wait_ch(frees[0]) == (size_t)-1);
    CHECK(acp_free_ch(there) == -1 && acp_nbfree_ch(back) == NULL);
}

/* Several channels of one pair, used in another order than they were created in. */
static void several(void)
{
    enum { COUNT = 3 };
    acp_ch_t channel[COUNT];
    acp_request_t requests[2 * COUNT];
    int numbers[2 * COUNT] = { 0 };
    for (int n = 0; n < COUNT; n++)
        channel[n] = acp_create_ch(1, 0);
    for (int n = 0; n < 2 * COUNT; n++) {
        int of = COUNT - 1 - n % COUNT;
        if (me == 1)
            numbers[n] = 10 * of + n / COUNT;
        requests[n] = me == 1 ? acp_nbsend_ch(channel[of], &numbers[n], sizeof(int))
                              : acp_nbrecv_ch(channel[of], &numbers[n], sizeof(int));
    }
    size_t sizes[2 * COUNT];
    CHECK(acp_waitall_ch(requests, 2 * COUNT, sizes) == 0);
    for (int n = 0; n < 2 * COUNT; n++) {
        CHECK(numbers[n] == 10 * (COUNT - 1 - n % COUNT) + n / COUNT);
        CHECK(sizes[n] == (me == 1 ? 0 : sizeof(int)));
    }
    for (int n = 0; n < COUNT; n++)
        CHECK(acp_free_ch(channel[n]) == 0);
}

/* All ranks send to the next one. The sender has queued messages and its end before the receiver
 * creates its own. */
static void around(void)
{
    enum { COUNT = 40 };
    acp_ch_t to = acp_create_ch(me, (me + 1) % ranks);
    acp_request_t requests[COUNT];
    for (int n = 0; n < COUNT; n++) {
        int word = 1000 * me + n;
        requests[n] = acp_nbsend_ch(to, &word, sizeof word);
    }
    acp_request_t freed = acp_nbfree_ch(to);
    acp_sync();
    int before = (me + ranks - 1) % ranks;
    acp_ch_t from = acp_create_ch(before, me);
    for (int n = 0; n < COUNT; n++) {
        int word = -1;
        CHECK(acp_wait_ch(acp_nbrecv_ch(from, &word, sizeof word)) == sizeof word && word == 1000 * before + n);
    }
    /* The sender has disconnected. */
    int none = 0;
    CHECK(acp_wait_ch(acp_nbrecv_ch(from, &none, sizeof none)) == (size_t)-1);
    CHECK(acp_waitall_ch(requests, COUNT, NULL) == 0);
    CHECK(acp_free_ch(from) == 0);
    CHECK(acp_wait_ch(freed) == 0);
}

void channels(void)
{
    CHECK(acp_create_ch(me, me) == NULL && acp_create_ch(me, ranks) == NULL && acp_create_ch(-1, me) == NULL);
    CHECK(ranks < 3 || acp_create_ch((me + 1) % ranks, (me + 2) % ranks) == NULL);
    if (me < 2) {
        echo();
        several();
    }
    acp_sync();
    around();
}
