/*
 * Commands of a VCQ for itself: what they move, their completions and notices, and the same as prepared
 * descriptors. One process, without a launcher.
 */
#include "same.h"

static void fill(int seed)
{
    for (size_t at = 0; at < sizeof from; at++)
        from[at] = (uint8_t)(at * 31 + seed);
    memset(to, 0xee, sizeof to);
}

static void puts_and_gets(void)
{
    struct utofu_mrq_notice notice;
    void *data;
    size_t count;
    fill(1);
    same(utofu_put(vcq, id, here, there, 1000, 200, TCQ | LOCAL | REMOTE, &count), 0);
    same(utofu_query_num_unread_tcq(vcq, &count), 0);
    same(count, 1);
    same(utofu_query_num_unread_mrq(vcq, &count), 0);
    same(count, 1);
    check(next_completion(vcq) == &count);
    for (int n = 0; n < 2; n++) {
        notice = next_notice(vcq);
        same(notice.edata, 200);
        check(notice.vcq_id == id && notice.rmt_stadd == there + 1000);
        check(notice.notice_type == UTOFU_MRQ_TYPE_LCL_PUT || notice.notice_type == UTOFU_MRQ_TYPE_RMT_PUT);
    }
    same(memcmp(from, to, 1000), 0);
    same(to[1000], 0xee);
    same(utofu_poll_tcq(vcq, 0, &data), UTOFU_ERR_NOT_FOUND);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);

    same(utofu_put(vcq, id, here, there, 0, 0, TCQ, NULL), 0);
    next_completion(vcq);
    /* Blocks are as many commands. */
    fill(2);
    same(utofu_put_stride(vcq, id, here, there, 8, 64, 5, 7, TCQ | REMOTE, &data), 0);
    for (int n = 0; n < 5; n++) {
        check(next_completion(vcq) == &data);
        check(next_notice(vcq).rmt_stadd == there + n * 64 + 8);
        same(memcmp(from + n * 64, to + n * 64, 8), 0);
        same(to[n * 64 + 8], 0xee);
    }
    fill(3);
    same(utofu_put_gap(vcq, id, here, there, 5000, 0, TCQ, 1920, 255, NULL), 0);
    same(utofu_put_stride_gap(vcq, id, here + 8192, there + 8192, 100, 200, 2, 0, TCQ, 0, 0, NULL), 0);
    for (int n = 0; n < 3; n++)
        next_completion(vcq);
    same(memcmp(from, to, 5000) | memcmp(from + 8192, to + 8192, 100) | memcmp(from + 8392, to + 8392, 100), 0);
    same(utofu_put_gap(vcq, id, here, there, 8, 0, TCQ, 1921, 0, NULL), UTOFU_ERR_INVALID_ARG);

    fill(4);
    same(utofu_get(vcq, id, there, here, 2000, 5, LOCAL | REMOTE, NULL), 0);
    for (int n = 0; n < 2; n++) {
        notice = next_notice(vcq);
        if (notice.notice_type == UTOFU_MRQ_TYPE_LCL_GET)
            check(notice.lcl_stadd == there + 2000);
        else
            check(notice.notice_type == UTOFU_MRQ_TYPE_RMT_GET && notice.rmt_stadd == here + 2000);
    }
    same(memcmp(from, to, 2000), 0);
    same(utofu_get_stride(vcq, id, there + 4096, here + 4096, 4, 16, 3, 0, LOCAL, NULL), 0);
    same(utofu_get_gap(vcq, id, there + 8192, here + 8192, 9, 0, LOCAL, 100, 1, NULL), 0);
    same(utofu_get_stride_gap(vcq, id, there + 9000, here + 9000, 9, 10, 2, 0, LOCAL, 100, 1, NULL), 0);
    for (int n = 0; n < 6; n++)
        same(next_notice(vcq).notice_type, UTOFU_MRQ_TYPE_LCL_GET);
    same(memcmp(from + 4128, to + 4128, 4) | memcmp(from + 8192, to + 8192, 9) | memcmp(from + 9010, to + 9010, 9), 0);

    char text[] = "carried in the descriptor";
    same(utofu_put_piggyback(vcq, id, text, there, sizeof text, 0, TCQ, NULL), 0);
    memset(text, 0, sizeof text);
    next_completion(vcq);
    same(strcmp((char *)to, "carried in the descriptor"), 0);
    same(utofu_nop(vcq, TCQ | LOCAL, &text), 0);
    check(next_completion(vcq) == text);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
    /* A delayed command starts with the next one. */
    fill(5);
    same(utofu_put(vcq, id, here, there, 8, 0, TCQ | UTOFU_ONESIDED_FLAG_DELAY_START, NULL), 0);
    same(utofu_poll_tcq(vcq, 0, &data), UTOFU_ERR_NOT_FOUND);
    same(to[0], 0xee);
    same(utofu_nop(vcq, TCQ, NULL), 0);
    next_completion(vcq);
    next_completion(vcq);
    same(to[0], from[0]);
}

static void atomics(void)
{
    static const enum utofu_armw_op ops[] = {UTOFU_ARMW_OP_SWAP, UTOFU_ARMW_OP_ADD, UTOFU_ARMW_OP_XOR,
                                             UTOFU_ARMW_OP_AND, UTOFU_ARMW_OP_OR};
    static const uint64_t results[] = {12, 1012, 996, 8, 1004};
    uint64_t *word = (uint64_t *)(void *)to;
    for (int op = 0; op < 5; op++) {
        word[0] = word[1] = 1000;
        same(utofu_armw8(vcq, id, ops[op], 12, there, 3, LOCAL | TCQ, NULL), 0);
        struct utofu_mrq_notice notice = next_notice(vcq);
        same(notice.notice_type, UTOFU_MRQ_TYPE_LCL_ARMW);
        same(notice.rmt_value, 1000);
        check(notice.rmt_stadd == there);
        same(word[0], results[op]);
        same(utofu_armw4(vcq, id, ops[op], 12, there + 8, 3, REMOTE | TCQ, NULL), 0);
        notice = next_notice(vcq);
        same(notice.notice_type, UTOFU_MRQ_TYPE_RMT_ARMW);
        check(notice.rmt_stadd == there + 8);
        same(word[1], results[op]);
        next_completion(vcq);
        next_completion(vcq);
    }
    word[0] = 5;
    same(utofu_cswap8(vcq, id, 4, 9, there, 0, LOCAL, NULL), 0);
    same(next_notice(vcq).rmt_value, 5);
    same(word[0], 5);
    same(utofu_cswap8(vcq, id, 5, 9, there, 0, LOCAL, NULL), 0);
    same(next_notice(vcq).rmt_value, 5);
    same(word[0], 9);
    same(utofu_cswap4(vcq, id, 9, 77, there, 0, LOCAL, NULL), 0);
    same(next_notice(vcq).rmt_value, 9);
    same(word[0], 77);
    same(utofu_armw8(vcq, id, 6, 1, there, 0, 0, NULL), UTOFU_ERR_INVALID_OP);
    struct utofu_mrq_notice notice;
    same(utofu_armw8(vcq, id, UTOFU_ARMW_OP_ADD, 1, there + 4, 0, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_STADD);
}

static void descriptors(void)
{
    uint64_t desc[64];
    size_t size, all = 0;
    char *at = (char *)desc;
    fill(6);
    uint64_t *word = (uint64_t *)(void *)(to + 32768);
    *word = 5;
    same(utofu_prepare_put(vcq, id, here, there, 100, 1, TCQ, at, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_prepare_put_gap(vcq, id, here + 100, there + 100, 28, 1, TCQ, 64, 1, at + all, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_prepare_put_stride(vcq, id, here + 128, there + 128, 8, 16, 3, 1, TCQ, at + all, &size), 0);
    same(size, 96);
    all += size;
    same(utofu_prepare_put_piggyback(vcq, id, "12345", there + 1024, 5, 1, TCQ, at + all, &size), 0);
    same(size, 64);
    all += size;
    same(utofu_prepare_put_piggyback8(vcq, id, 0x42, there + 1100, 1, 1, TCQ, at + all, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_prepare_get(vcq, id, there + 2048, here + 2048, 64, 1, TCQ, at + all, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_prepare_armw8(vcq, id, UTOFU_ARMW_OP_ADD, 2, there + 32768, 1, TCQ, at + all, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_prepare_cswap8(vcq, id, 7, 1ull << 40, there + 32768, 1, TCQ, at + all, &size), 0);
    same(size, 64);
    all += size;
    same(utofu_prepare_nop(vcq, TCQ, at + all, &size), 0);
    same(size, 32);
    all += size;
    same(utofu_post_toq(vcq, desc, all, at), 0);
    for (int n = 0; n < 11; n++)
        check(next_completion(vcq) == at);
    same(memcmp(from, to, 136) | memcmp(from + 144, to + 144, 8) | memcmp(from + 2048, to + 2048, 64), 0);
    same(to[136], 0xee);
    same(memcmp(to + 1024, "12345", 5), 0);
    same(to[1100], 0x42);
    same(*word, 1ull << 40);
    same(utofu_prepare_cswap4(vcq, id, 0, 1, there, 1, 0, desc, &size), 0);
    same(size, 32);
    same(utofu_prepare_armw4(vcq, id, UTOFU_ARMW_OP_OR, 1, there, 1, 0, desc, &size), 0);
    same(size, 32);
    same(utofu_prepare_get_gap(vcq, id, there, here, 8, 1, 0, 0, 0, desc, &size), 0);
    same(size, 32);
    same(utofu_prepare_get_stride(vcq, id, there, here, 8, 16, 4, 1, 0, desc, &size), 0);
    same(size, 128);
    same(utofu_prepare_get_stride_gap(vcq, id, there, here, 8, 16, 4, 1, 0, 0, 0, desc, &size), 0);
    same(size, 128);
    same(utofu_prepare_put_stride_gap(vcq, id, here, there, 8, 16, 4, 1, 0, 0, 0, desc, &size), 0);
    same(size, 128);
    memset(desc, 0x5a, 32);
    same(utofu_post_toq(vcq, desc, 32, NULL), UTOFU_ERR_INVALID_DESC);
    same(utofu_post_toq(vcq, desc, 31, NULL), UTOFU_ERR_INVALID_SIZE);
    same(utofu_prepare_nop(vcq, 0, NULL, &size), UTOFU_ERR_INVALID_POINTER);
}

int main(void)
{
    begin();
    puts_and_gets();
    atomics();
    descriptors();
    must(utofu_free_vcq(vcq));
    printf("transfers: all\n");
    return 0;
}
