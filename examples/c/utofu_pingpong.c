/*
 * Two ranks send a message back and forth. Each registers its buffer under a fixed tag of a VCQ with a
 * component id, so a rank knows its peer's VCQ id and STADD without communication.
 *
 *     cc utofu_pingpong.c -I bindings/utofu-c/include -L target/release -ltofucom -o pingpong
 *     onesided run -n 2 -- ./pingpong
 */
#include "utofu_example.h"

enum { ROUNDS = 1000, BYTES = 64, TAG = 7, COMPONENT = 1 };

static char sent[BYTES], received[BYTES];

int main(void)
{
    struct rank me = this_rank(2);
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t peer;
    utofu_stadd_t local, remote, own;

    must(utofu_create_vcq_with_cmp_id(0, COMPONENT, 0, &vcq));
    must(utofu_reg_mem(vcq, sent, sizeof sent, 0, &local));
    must(utofu_reg_mem_with_stag(vcq, received, sizeof received, TAG, 0, &own));
    uint8_t *coords = coords_of(1 - me.rank);
    must(utofu_construct_vcq_id(coords, 0, 0, COMPONENT, &peer));
    must(utofu_set_vcq_id_path(&peer, NULL));
    must(utofu_query_stadd(peer, TAG, &remote));
    meet(me, 0, 0, 0);

    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == me.rank) {
            memset(sent, round % 100, sizeof sent);
            put(vcq, peer, local, remote, sizeof sent, round % 256, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
        } else {
            struct utofu_mrq_notice notice = next_notice(vcq);
            check(notice.notice_type == UTOFU_MRQ_TYPE_RMT_PUT && notice.vcq_id == peer);
            check(notice.edata == (uint64_t)(round % 256) && notice.rmt_stadd == own + sizeof received);
            check(received[0] == round % 100 && received[BYTES - 1] == round % 100);
        }
    }
    must(utofu_dereg_mem(vcq, local, 0));
    must(utofu_free_vcq(vcq));
    if (me.rank == 0)
        printf("pingpong: %d messages\n", ROUNDS);
    return 0;
}
