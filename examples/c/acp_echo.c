/* Channel echo with ACP: rank 0 sends messages of growing length to every other rank, which sends
 * each back. Channels need no buffers of the program and no addresses: both ends create them.
 *
 *     cc acp_echo.c -o acp_echo $(pkg-config --cflags --libs acp)
 *     onesided run -n 3 -- ./acp_echo */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static char sent[MOST], received[MOST];

static void fail(const char *what)
{
    acp_abort(what);
    exit(1);
}

/* Sends messages to a rank, and receives them again. Returns their number. */
static int send_to(int rank)
{
    acp_ch_t there = acp_create_ch(0, rank), back = acp_create_ch(rank, 0);
    if (there == NULL || back == NULL)
        fail("no channel");
    int count = 0;
    for (size_t size = 1; size <= MOST; size *= 4, count++) {
        memset(sent, 'a' + count, size);
        /* The receive is posted first, and completes while this rank waits for either request. */
        acp_request_t receiving = acp_nbrecv_ch(back, received, MOST);
        acp_request_t sending = acp_nbsend_ch(there, sent, size);
        if (acp_wait_ch(sending) == (size_t)-1 || acp_wait_ch(receiving) != size)
            fail("a message is lost");
        if (memcmp(sent, received, size) != 0)
            fail("a message has changed");
    }
    /* An empty message is the last one. */
    acp_wait_ch(acp_nbsend_ch(there, sent, 0));
    if (acp_free_ch(there) != 0 || acp_free_ch(back) != 0)
        fail("a channel is not freed");
    return count;
}

/* Returns the messages of rank 0. */
static void echo(int rank)
{
    acp_ch_t there = acp_create_ch(0, rank), back = acp_create_ch(rank, 0);
    for (;;) {
        size_t size = acp_wait_ch(acp_nbrecv_ch(there, received, MOST));
        if (size == (size_t)-1)
            fail("rank 0 is lost");
        if (size == 0)
            break;
        acp_wait_ch(acp_nbsend_ch(back, received, size));
    }
    if (acp_free_ch(there) != 0 || acp_free_ch(back) != 0)
        fail("a channel is not freed");
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) != 0)
        return 1;
    if (acp_rank() == 0) {
        for (int rank = 1; rank < acp_procs(); rank++)
            printf("rank %d has echoed %d messages\n", rank, send_to(rank));
    } else {
        echo(acp_rank());
    }
    return acp_finalize() != 0;
}
