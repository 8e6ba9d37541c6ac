/*
 * Session mode: what starts when, measured one thing at a time. One process: a normal VCQ gives credit to
 * session VCQs.
 */
#include "utofu_example.h"

static const unsigned long TCQ = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;

static utofu_vcq_hdl_t normal;
static uint64_t words[64];
static utofu_stadd_t own;

/* A session VCQ with the same memory. */
struct session {
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t id;
    utofu_stadd_t words;
};

static struct session session(void)
{
    struct session made;
    must(utofu_create_vcq(1, UTOFU_VCQ_FLAG_SESSION_MODE, &made.vcq));
    must(utofu_query_vcq_id(made.vcq, &made.id));
    must(utofu_reg_mem(made.vcq, words, sizeof words, 0, &made.words));
    return made;
}

static void close(struct session it)
{
    must(utofu_free_vcq(it.vcq));
}

/* Completions that have arrived. */
static int completed(struct session it)
{
    void *data;
    int count = 0, code;
    while ((code = utofu_poll_tcq(it.vcq, 0, &data)) == UTOFU_SUCCESS)
        count++;
    check(code == UTOFU_ERR_NOT_FOUND);
    return count;
}

/* Puts `length` bytes that advance the session offset by `sps`. */
static void credit(struct session it, int sps, size_t length)
{
    must(utofu_put(normal, it.id, own, it.words + 256, length, 0, UTOFU_ONESIDED_FLAG_SPS(sps), NULL));
}

static void nops(struct session it, int count)
{
    for (int n = 0; n < count; n++)
        must(utofu_nop(it.vcq, TCQ, NULL));
}

int main(void)
{
    void *data;
    must(utofu_create_vcq(0, 0, &normal));
    must(utofu_reg_mem(normal, words, sizeof words, 0, &own));

    /* Nothing runs before there is credit; each slot of credit starts one command of one slot. */
    struct session it = session();
    nops(it, 4);
    check(completed(it) == 0);
    credit(it, 1, 8);
    check(completed(it) == 1);
    credit(it, 0, 8);
    check(completed(it) == 0);
    credit(it, 2, 8);
    check(completed(it) == 2);
    /* Credit is kept for commands that are posted later; a put of no bytes gives it too. */
    credit(it, 15, 0);
    check(completed(it) == 1);
    nops(it, 20);
    check(completed(it) == 14);
    close(it);

    /* Piggyback puts and 8-byte compare-and-swap take two slots, whatever they carry. */
    it = session();
    must(utofu_put_piggyback(it.vcq, it.id, words, it.words, 4, 0, TCQ, NULL));
    must(utofu_cswap8(it.vcq, it.id, 0, 0, it.words, 0, TCQ, NULL));
    must(utofu_put_piggyback8(it.vcq, it.id, 1, it.words, 8, 0, TCQ, NULL));
    must(utofu_cswap4(it.vcq, it.id, 0, 0, it.words, 0, TCQ, NULL));
    credit(it, 1, 8);
    check(completed(it) == 0);
    credit(it, 1, 8);
    check(completed(it) == 1);
    credit(it, 3, 8);
    check(completed(it) == 2);
    credit(it, 1, 8);
    check(completed(it) == 1);
    close(it);

    /* Only puts advance: of any length once, of n blocks n times. */
    it = session();
    nops(it, 12);
    unsigned long one = UTOFU_ONESIDED_FLAG_SPS(1);
    must(utofu_get(normal, it.id, own, it.words, 8, 0, one, NULL));
    must(utofu_armw8(normal, it.id, UTOFU_ARMW_OP_ADD, 0, it.words, 0, one, NULL));
    must(utofu_nop(normal, one, NULL));
    check(completed(it) == 0);
    must(utofu_put(normal, it.id, own, it.words, sizeof words, 0, one, NULL));
    check(completed(it) == 1);
    must(utofu_put_stride(normal, it.id, own, it.words, 8, 16, 4, 0, one, NULL));
    check(completed(it) == 4);
    must(utofu_put_piggyback(normal, it.id, words, it.words, 32, 0, one, NULL));
    must(utofu_put_piggyback8(normal, it.id, 0, it.words, 8, 0, one, NULL));
    check(completed(it) == 2);
    /* One to a VCQ that is not in session mode is harmless. */
    utofu_vcq_id_t id;
    must(utofu_query_vcq_id(normal, &id));
    must(utofu_put(normal, id, own, own + 8, 8, 0, one | TCQ, NULL));
    next_completion(normal);
    close(it);

    /* A put to its own VCQ: 2 slots of credit, less 1, plus 4. */
    it = session();
    must(utofu_put(it.vcq, it.id, it.words, it.words + 8, 8, 0, TCQ | UTOFU_ONESIDED_FLAG_SPS(4), NULL));
    nops(it, 8);
    credit(it, 2, 8);
    check(completed(it) == 6);
    close(it);

    /* The bytes are there before the credit: a released command forwards what has just arrived. */
    it = session();
    for (int n = 0; n < 8; n++) {
        words[1] = 0;
        words[0] = 1000 + n;
        must(utofu_put(it.vcq, it.id, it.words + 32 * 8, it.words + 8, 8, 0, TCQ, NULL));
        credit(it, 1, 8);
        check(words[1] == (uint64_t)(1000 + n));
    }
    check(completed(it) == 8);
    close(it);

    /* A full ring is busy. Credit more than a ring ahead wraps around: 400 times 15 slots leave 1904. */
    it = session();
    int posted = 0, code;
    while ((code = utofu_nop(it.vcq, 0, NULL)) == UTOFU_SUCCESS)
        posted++;
    check(code == UTOFU_ERR_BUSY && posted > 2000 && posted < 2048);
    close(it);
    it = session();
    for (int n = 0; n < 400; n++)
        credit(it, 15, 0);
    nops(it, 1900);
    check(completed(it) == 1900);
    nops(it, 50);
    check(completed(it) == 4);
    close(it);

    /* Prepared descriptors start together, with credit that is there. */
    it = session();
    uint64_t desc[40];
    size_t size, all = 0;
    for (int n = 0; n < 4; n++) {
        must(utofu_prepare_put(it.vcq, it.id, it.words, it.words + 8 * n, 8, 0, TCQ, (char *)desc + all, &size));
        all += size;
    }
    credit(it, 3, 8);
    must(utofu_post_toq(it.vcq, desc, all, &data));
    for (int n = 0; n < 3; n++)
        check(next_completion(it.vcq) == &data);
    check(completed(it) == 0);
    credit(it, 1, 8);
    check(completed(it) == 1);
    close(it);
    printf("session: all\n");
    return 0;
}
