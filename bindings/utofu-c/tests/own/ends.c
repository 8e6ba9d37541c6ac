/*
 * Ends of ranks while others wait: the number of the rank that is killed, and after how many microseconds.
 * The others send to each other until a call fails, wait for notices, or poll memory that nobody writes.
 */
#define _DEFAULT_SOURCE
#include "utofu_example.h"

#include <signal.h>
#include <unistd.h>

static uint8_t buffer[4096];

static void killed(int number)
{
    (void)number;
    kill(getpid(), SIGKILL);
}

int main(int count, char **words)
{
    struct rank me = this_rank(0);
    utofu_vcq_hdl_t vcq, session;
    utofu_vcq_id_t id, session_id;
    utofu_stadd_t own, session_own;
    check(count == 4);
    must(utofu_create_vcq(0, 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, buffer, sizeof buffer, 0, &own));
    must(utofu_create_vcq(0, UTOFU_VCQ_FLAG_SESSION_MODE, &session));
    must(utofu_query_vcq_id(session, &session_id));
    must(utofu_reg_mem_with_stag(session, buffer, sizeof buffer, 1, 0, &session_own));
    volatile struct card *cards = meet(me, id, own, session_id);
    int next = (me.rank + 1) % me.ranks;
    must(utofu_query_stadd(cards[next].words[2], 1, &session_own));
    if (me.rank == atoi(words[1])) {
        signal(SIGALRM, killed);
        ualarm(atoi(words[2]), 0);
    }
    if (strcmp(words[3], "memory") == 0) {
        volatile uint8_t *never = &buffer[4095];
        while (*never == 0)
            ;
    }
    for (uint64_t round = 0;; round++) {
        struct utofu_mrq_notice notice;
        void *data;
        const unsigned long flags = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
        int code = 0;
        if (strcmp(words[3], "sends") == 0) {
            code = utofu_put(vcq, cards[next].words[0], own, cards[next].words[1], 1 + round % 4000, 0, flags, NULL);
            if (code == 0 || code == UTOFU_ERR_BUSY) {
                utofu_put_piggyback8(vcq, cards[next].words[2], round, session_own, 8, 0,
                                     UTOFU_ONESIDED_FLAG_SPS(1), NULL);
                utofu_nop(session, 0, NULL);
                while ((code = utofu_poll_tcq(vcq, 0, &data)) == 0)
                    ;
            }
        }
        if (code == 0 || code == UTOFU_ERR_NOT_FOUND)
            while ((code = utofu_poll_mrq(vcq, 0, &notice)) == 0)
                ;
        if (code != UTOFU_ERR_NOT_FOUND && code != UTOFU_ERR_BUSY) {
            char reason[256] = "";
            utofu_get_last_error(reason);
            fprintf(stderr, "rank %d: %d, %s\n", me.rank, code, reason);
            return 3;
        }
    }
}
