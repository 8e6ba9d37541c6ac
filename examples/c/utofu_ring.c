/*
 * A pipeline around a ring, run by session queues. Rank 0 puts blocks to rank 1, one after another. All
 * other ranks have filled a session queue before: each block that arrives advances its session offset by
 * one slot, which releases the put that forwards it. No CPU but that of rank 0 takes part, and nothing
 * but SPS gives credit. The last rank forwards to rank 0, which receives a notice for each block.
 *
 *     onesided run -n 4 -- ./ring
 */
#include "utofu_example.h"

enum { BLOCKS = 16, BLOCK = 4096, ROUNDS = 20 };

static uint8_t buffer[BLOCKS * BLOCK];

int main(void)
{
    struct rank me = this_rank(0);
    int next = (me.rank + 1) % me.ranks;
    unsigned long mode = me.rank == 0 ? 0 : UTOFU_VCQ_FLAG_SESSION_MODE;
    /* Rank 0 is the target of the last rank, which gives notices instead of credit. */
    unsigned long flags = next == 0 ? UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE : UTOFU_ONESIDED_FLAG_SPS(1);
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t id;
    utofu_stadd_t own;

    must(utofu_create_vcq(1, mode, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, buffer, sizeof buffer, 0, &own));
    volatile struct card *cards = meet(me, id, own, 0);
    utofu_vcq_id_t to = cards[next].words[0];
    utofu_stadd_t there = cards[next].words[1];

    if (me.rank != 0) {
        /* All rounds at once: one command of many blocks, and one for the last of them, which reports. */
        for (int round = 0; round < ROUNDS; round++) {
            size_t last = (BLOCKS - 1) * BLOCK;
            must(utofu_put_stride(vcq, to, own, there, BLOCK, BLOCK, BLOCKS - 1, round, flags, NULL));
            must(utofu_put(vcq, to, own + last, there + last, BLOCK, round, flags | UTOFU_ONESIDED_FLAG_TCQ_NOTICE,
                           &buffer[round]));
        }
        for (int round = 0; round < ROUNDS; round++)
            check(next_completion(vcq) == &buffer[round]);
    } else {
        for (int round = 0; round < ROUNDS; round++) {
            for (int block = 0; block < BLOCKS; block++) {
                memset(buffer + block * BLOCK, round * BLOCKS + block, BLOCK);
                must(utofu_put(vcq, to, own + block * BLOCK, there + block * BLOCK, BLOCK, round, flags, NULL));
            }
            /* The blocks have passed all ranks when they are back. */
            for (int block = 0; block < BLOCKS; block++)
                check(next_notice(vcq).edata == (uint64_t)round);
            for (int block = 0; block < BLOCKS; block++)
                check(buffer[block * BLOCK + BLOCK - 1] == (uint8_t)(round * BLOCKS + block));
        }
        printf("ring: %d ranks, %d blocks\n", me.ranks, ROUNDS * BLOCKS);
    }
    return 0;
}
