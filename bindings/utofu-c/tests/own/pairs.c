/*
 * Commands of several processes for each other: a token by puts whose last word is polled in memory,
 * counters by atomics of all ranks, and random puts and gets compared with what they should have moved.
 */
#include "utofu_example.h"

enum { SIZE = 1 << 16, ROUNDS = 200 };

static uint8_t shared[SIZE], scratch[SIZE];
static struct {
    volatile uint64_t token, eight;
    volatile uint32_t four;
} words;

int main(void)
{
    struct rank me = this_rank(0);
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t id;
    utofu_stadd_t own, mine, at;
    must(utofu_create_vcq(2, 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, shared, sizeof shared, 0, &own));
    must(utofu_reg_mem(vcq, scratch, sizeof scratch, 0, &mine));
    must(utofu_reg_mem(vcq, (void *)&words, sizeof words, 0, &at));
    volatile struct card *cards = meet(me, id, own, at);
    int next = (me.rank + 1) % me.ranks;

    for (uint64_t round = 1; round <= 50; round++) {
        if (me.rank != 0 || round != 1)
            while (words.token < (me.rank == 0 ? round - 1 : round))
                ;
        must(utofu_put_piggyback8(vcq, cards[next].words[0], round, cards[next].words[2], 8, 0,
                                  UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL));
        next_completion(vcq);
    }
    meet(me, 0, 0, 0);

    for (int round = 0; round < ROUNDS; round++) {
        must(utofu_armw8(vcq, cards[0].words[0], UTOFU_ARMW_OP_ADD, 1, cards[0].words[2] + 8, 0,
                         UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
        next_notice(vcq);
        must(utofu_armw4(vcq, cards[0].words[0], UTOFU_ARMW_OP_ADD, 1, cards[0].words[2] + 16, 0, 0, NULL));
        if (me.rank == 0)
            __atomic_fetch_add(&words.eight, 1000000, __ATOMIC_SEQ_CST);
    }
    meet(me, 0, 0, 0);
    if (me.rank == 0)
        check(words.eight == (uint64_t)ROUNDS * (me.ranks + 1000000) && words.four == (uint32_t)(ROUNDS * me.ranks));

    /* Each rank writes its own part of the next rank's memory, and reads it back. */
    unsigned seed = 12345 + me.rank;
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = (seed = seed * 1103515245 + 12345) / 65536 % 5000;
        size_t offset = (seed = seed * 1103515245 + 12345) / 65536 % (SIZE / 2 - 5000);
        for (size_t n = 0; n < length; n++)
            scratch[n] = (uint8_t)(n * 7 + round);
        put(vcq, cards[next].words[0], mine, cards[next].words[1] + offset, length, 0,
            UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
        must(utofu_get(vcq, cards[next].words[0], mine + SIZE / 2, cards[next].words[1] + offset, length, 0,
                       UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
        struct utofu_mrq_notice notice;
        while ((notice = next_notice(vcq)).notice_type != UTOFU_MRQ_TYPE_LCL_GET)
            check(notice.notice_type == UTOFU_MRQ_TYPE_RMT_PUT);
        check(memcmp(scratch, scratch + SIZE / 2, length) == 0);
    }
    meet(me, 0, 0, 0);
    if (me.rank == 0)
        printf("pairs: %d ranks\n", me.ranks);
    return 0;
}
