/*
 * Ways in which jobs end; the argument selects one. Three processes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "acp.h"
#include "check.h"
#include "exchange.h"

static uint64_t words[512];

static void *killer(void *microseconds)
{
    usleep(*(useconds_t *)microseconds);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Copies and adds between all processes, and meets them, until that fails. */
static int busy(void)
{
    int me = acp_rank(), all = acp_procs();
    acp_atkey_t key = acp_register_memory(words, sizeof words, 0);
    publish(acp_query_ga(key, words));
    if (acp_sync() != 0) {
        return 3;
    }
    for (;;) {
        for (int rank = 0; rank < all; rank++) {
            acp_ga_t there = published(key, &words[0], rank);
            acp_copy(there + 1024, acp_query_ga(key, words) + 1024, 1024, ACP_HANDLE_NULL);
            acp_add8(acp_query_ga(key, &words[1]), there + 64 + 8 * (acp_ga_t)me, 1, ACP_HANDLE_CONT);
        }
        acp_complete(ACP_HANDLE_ALL);
        acp_atkey_t more = acp_register_memory(words, 1024, 0);
        acp_unregister_memory(more);
        if (acp_sync() != 0) {
            return 3;
        }
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    useconds_t delay = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    /* The launcher's variable names the rank before acp_init does. */
    const char *job = getenv("ONESIDED_JOB");
    if (strcmp(way, "random") == 0 && job != NULL && strstr(job, "rank=1 ") != NULL) {
        pthread_t thread;
        pthread_create(&thread, NULL, killer, &delay);
    }
    if (acp_init(&argc, &argv) != 0) {
        return 4;
    }
    int me = acp_rank();
    if (strcmp(way, "random") == 0) {
        return busy();
    }
    if (strcmp(way, "killed") == 0) {
        if (me == 1) {
            kill(getpid(), SIGKILL);
        }
        int met = acp_sync();
        printf("survivor: %d\n", met);
        return met == -1 ? 3 : 0;
    }
    if (strcmp(way, "spin") == 0) {
        if (me == 1) {
            kill(getpid(), SIGKILL);
        }
        volatile uint64_t *starter = acp_query_address(acp_query_starter_ga(me));
        while (starter[0] == 0) {
        }
    }
    if (strcmp(way, "abort") == 0) {
        if (me == 2) {
            acp_abort("the reason for the end");
        }
        acp_sync();
        pause();
    }
    if (strcmp(way, "exit") == 0) {
        printf("leaves: %d\n", me);
        return 0;
    }
    return 5;
}
