/*
 * Reductions by barrier gates: 1, 2 or 4 ranks. The gates of all ranks form a graph, recursive doubling, in
 * which signals travel without a CPU.
 *
 *     onesided run -n 4 -- ./gates
 */
#include "utofu_example.h"

enum { MOST_GATES = 8, ROUNDS = 50 };

static utofu_vbg_id_t gates[MOST_GATES];
/* What the others' gates are: the ids of each rank's first three. */
static volatile struct card *cards;

static struct utofu_vbg_setting unwired(utofu_vbg_id_t gate)
{
    struct utofu_vbg_setting wires;
    memset(&wires, 0xff, sizeof wires);
    wires.vbg_id = gate;
    return wires;
}

/* A start gate, and one relay gate for each step, whose partner is the rank that differs in one bit. */
static void doubling(struct rank me, int steps)
{
    struct utofu_vbg_setting wires[MOST_GATES];
    for (int gate = 0; gate <= steps; gate++) {
        wires[gate] = unwired(gates[gate]);
        if (gate > 0)
            wires[gate].src_lcl_vbg_id = gates[gate - 1];
        if (gate < steps)
            wires[gate].dst_lcl_vbg_id = gates[gate + 1];
        /* Gate n signals the partner of step n; that of step n - 1 signals it. */
        if (gate < steps)
            wires[gate].dst_rmt_vbg_id = cards[me.rank ^ 1 << gate].words[gate + 1];
        if (gate > 0)
            wires[gate].src_rmt_vbg_id = cards[me.rank ^ 1 << (gate - 1)].words[gate - 1];
    }
    /* The last relay gate ends the operation at the start gate. */
    wires[steps].dst_lcl_vbg_id = gates[0];
    wires[0].src_lcl_vbg_id = gates[steps];
    must(utofu_set_vbg(wires, steps + 1));
}

/* Polls until an operation is complete. */
static void complete(int code)
{
    if (code != UTOFU_ERR_NOT_COMPLETED)
        must(code);
}

static uint64_t sum_of(uint64_t value)
{
    int code;
    must(utofu_reduce_uint64(gates[0], UTOFU_REDUCE_OP_SUM, &value, 1, 0));
    do
        complete(code = utofu_poll_reduce_uint64(gates[0], 0, &value));
    while (code == UTOFU_ERR_NOT_COMPLETED);
    return value;
}

int main(void)
{
    struct rank me = this_rank(0);
    int steps = 0, code;
    while (1 << steps < me.ranks)
        steps++;
    check(1 << steps == me.ranks && steps < 3);
    must(utofu_alloc_vbg(0, 1 + steps, 0, gates));
    cards = meet(me, gates[0], gates[1], gates[2]);
    if (steps > 0)
        doubling(me, steps);
    /* No rank starts before all have set their wires. */
    meet(me, 0, 0, 0);
    if (steps == 0) {
        printf("gates: 1 rank\n");
        return 0;
    }

    for (int round = 0; round < ROUNDS; round++)
        check(sum_of(me.rank + round) == (uint64_t)(me.ranks * (me.ranks - 1) / 2 + me.ranks * round));
    must(utofu_barrier(gates[0], 0));
    while ((code = utofu_poll_barrier(gates[0], 0)) == UTOFU_ERR_NOT_COMPLETED)
        ;
    must(code);

    /* The exact sum does not depend on the order: 1e300 and -1e300 leave the ones. */
    double value[2] = {me.rank == 0 ? 1e300 : me.rank == 1 ? -1e300 : 1, 0.1};
    must(utofu_reduce_double(gates[0], UTOFU_REDUCE_OP_BFPSUM, value, 2, 0));
    while ((code = utofu_poll_reduce_double(gates[0], 0, value)) == UTOFU_ERR_NOT_COMPLETED)
        ;
    must(code);
    check(value[0] == me.ranks - 2);

    /* The rank with the largest value. */
    uint64_t largest[2] = {(uint64_t)(me.rank * 7 % 5), (uint64_t)me.rank};
    must(utofu_reduce_uint64(gates[0], UTOFU_REDUCE_OP_MAXLOC, largest, 2, 0));
    while ((code = utofu_poll_reduce_uint64(gates[0], 0, largest)) == UTOFU_ERR_NOT_COMPLETED)
        ;
    must(code);
    for (uint64_t rank = 0; rank < (uint64_t)me.ranks; rank++)
        check(rank * 7 % 5 < largest[0] || (rank * 7 % 5 == largest[0] && rank >= largest[1]));
    /* All have the result before any frees its gates. */
    check(sum_of(1) == (uint64_t)me.ranks);
    if (me.rank == 0)
        printf("gates: %d ranks, %d rounds\n", me.ranks, ROUNDS);
    return 0;
}
