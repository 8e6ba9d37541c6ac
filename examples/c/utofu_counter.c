/*
 * A counter of rank 0, from which all ranks take numbers by fetch-and-add: each number goes to one rank. A
 * compare-and-swap loop adds to a second word.
 *
 *     onesided run -n 4 -- ./counter
 */
#include "utofu_example.h"

enum { NUMBERS = 500, TAG = 3 };

static struct {
    uint64_t next, sum;
    uint32_t done;
} counter;

/* Waits for the result of an atomic. */
static uint64_t result(utofu_vcq_hdl_t vcq)
{
    struct utofu_mrq_notice notice = next_notice(vcq);
    check(notice.notice_type == UTOFU_MRQ_TYPE_LCL_ARMW);
    return notice.rmt_value;
}

int main(void)
{
    struct rank me = this_rank(0);
    const unsigned long flags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t root;
    utofu_stadd_t at, own;

    must(utofu_create_vcq_with_cmp_id(0, 0, 0, &vcq));
    must(utofu_reg_mem_with_stag(vcq, &counter, sizeof counter, TAG, 0, &own));
    must(utofu_construct_vcq_id(coords_of(0), 0, 0, 0, &root));
    must(utofu_query_stadd(root, TAG, &at));
    meet(me, 0, 0, 0);

    uint64_t taken = 0, limit = (uint64_t)NUMBERS * me.ranks;
    for (;;) {
        must(utofu_armw8(vcq, root, UTOFU_ARMW_OP_ADD, 1, at + offsetof(__typeof__(counter), next), 0, flags, NULL));
        uint64_t number = result(vcq);
        if (number >= limit)
            break;
        taken += number;
    }
    /* Adds `taken` to the sum. */
    uint64_t seen = 0, before;
    for (;; seen = before) {
        must(utofu_cswap8(vcq, root, seen, seen + taken, at + offsetof(__typeof__(counter), sum), 0, flags, NULL));
        before = result(vcq);
        if (before == seen)
            break;
    }
    must(utofu_armw4(vcq, root, UTOFU_ARMW_OP_ADD, 1, at + offsetof(__typeof__(counter), done), 0, flags, NULL));
    result(vcq);
    if (me.rank == 0) {
        volatile uint32_t *done = &counter.done;
        while (*done < (uint32_t)me.ranks)
            pause_on(vcq);
        check(counter.sum == limit * (limit - 1) / 2);
        printf("counter: %d ranks took %llu numbers\n", me.ranks, (unsigned long long)limit);
    }
    return 0;
}
