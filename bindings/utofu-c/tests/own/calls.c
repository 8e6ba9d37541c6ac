/*
 * Queries, ids, allocation, registration, limits, gates, and the codes of wrong arguments. One process,
 * without a launcher.
 */
#include "same.h"

static void queries(void)
{
    utofu_tni_id_t *tnis;
    struct utofu_onesided_caps *caps;
    struct utofu_barrier_caps *barrier;
    size_t count;
    uint8_t coords[6];
    int major = 0, minor = -1;
    same(utofu_get_onesided_tnis(&tnis, &count), 0);
    same(count, 6);
    same(tnis[5], 5);
    free(tnis);
    same(utofu_get_barrier_tnis(&tnis, &count), 0);
    same(count, 6);
    free(tnis);
    same(utofu_query_onesided_caps(5, &caps), 0);
    same(caps->flags, UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE | UTOFU_ONESIDED_CAP_FLAG_ARMW);
    same(caps->armw_ops, 0x3f);
    same(caps->num_cmp_ids, 8);
    same(caps->num_reserved_stags, 256);
    same(caps->max_toq_desc_size, 64);
    same(caps->max_putget_size, 16777215);
    same(caps->max_piggyback_size, 32);
    same(caps->max_edata_size, 1);
    same(caps->max_mtu, 1920);
    same(utofu_query_barrier_caps(0, &barrier), 0);
    same(barrier->reduce_ops, 0x1fe);
    same(barrier->max_uint64_reduction, 6);
    same(barrier->max_double_reduction, 3);
    same(utofu_query_onesided_caps(6, &caps), UTOFU_ERR_INVALID_TNI_ID);
    same(utofu_query_onesided_caps(0, NULL), UTOFU_ERR_INVALID_POINTER);
    same(utofu_get_onesided_tnis(NULL, &count), UTOFU_ERR_INVALID_POINTER);
    utofu_query_tofu_version(&major, NULL);
    same(major, 3);
    utofu_query_utofu_version(&major, &minor);
    same(major, UTOFU_VERSION_MAJOR);
    same(minor, UTOFU_VERSION_MINOR);
    same(utofu_query_my_coords(coords), 0);
    same(coords[0] + coords[3] + coords[4] + coords[5], 0);
}

static void ids(void)
{
    uint8_t coords[6], path[3] = {1, 2, 1}, none[3] = {UTOFU_PATH_COORD_NULL, 0, 0}, wrong[3] = {0, 3, 0};
    utofu_tni_id_t tni;
    utofu_cq_id_t cq;
    uint16_t extra;
    utofu_path_id_t path_id;
    utofu_vcq_id_t other = id, component;
    utofu_vcq_hdl_t fixed, again;
    same(utofu_query_vcq_info(id, coords, &tni, &cq, &extra), 0);
    same(tni, 0);
    same(cq, 0);
    same(utofu_set_vcq_id_path(&other, path), 0);
    check(other != id);
    same(utofu_get_path_id(other, path, &path_id), 0);
    same(utofu_get_path_coords(id, path_id, coords), 0);
    same(memcmp(coords, path, 3), 0);
    same(utofu_set_vcq_id_path(&other, NULL), 0);
    check(other == id);
    same(utofu_set_vcq_id_path(&other, none), 0);
    same(utofu_set_vcq_id_path(&other, wrong), UTOFU_ERR_INVALID_PATH);
    same(utofu_get_path_coords(id, 255, path), UTOFU_ERR_INVALID_PATH_ID);
    same(utofu_query_vcq_info(12345, coords, &tni, &cq, &extra), UTOFU_ERR_INVALID_VCQ_ID);

    same(utofu_create_vcq_with_cmp_id(3, 2, 0, &fixed), 0);
    same(utofu_query_vcq_id(fixed, &other), 0);
    must(utofu_query_my_coords(coords));
    same(utofu_construct_vcq_id(coords, 3, 0, 2, &component), 0);
    check(component == other);
    same(utofu_create_vcq_with_cmp_id(3, 2, 0, &again), UTOFU_ERR_USED);
    same(utofu_create_vcq_with_cmp_id(3, 8, 0, &again), UTOFU_ERR_INVALID_CMP_ID);
    same(utofu_create_vcq_with_cmp_id(3, 3, UTOFU_VCQ_FLAG_SESSION_MODE, &again), UTOFU_ERR_NOT_SUPPORTED);
    same(utofu_free_vcq(fixed), 0);
    same(utofu_create_vcq_with_cmp_id(3, 2, 0, &again), 0);
    same(utofu_query_vcq_id(fixed, &other), UTOFU_ERR_INVALID_VCQ_HDL);
    same(utofu_free_vcq(fixed), UTOFU_ERR_INVALID_VCQ_HDL);
    same(utofu_free_vcq(again), 0);
    same(utofu_create_vcq(6, 0, &again), UTOFU_ERR_INVALID_TNI_ID);
    same(utofu_create_vcq(0, 8, &again), UTOFU_ERR_INVALID_FLAGS);
    same(utofu_create_vcq(0, 0, NULL), UTOFU_ERR_INVALID_POINTER);
    same(utofu_free_vcq(0), UTOFU_ERR_INVALID_VCQ_HDL);
}

/* What a TNI has: 64 normal VCQs, 7 exclusive or 3 session ones. */
static void allocation(void)
{
    static const struct {
        unsigned long flags;
        int count;
    } kinds[] = {{0, 64}, {UTOFU_VCQ_FLAG_EXCLUSIVE, 7}, {UTOFU_VCQ_FLAG_SESSION_MODE, 3}};
    for (int kind = 0; kind < 3; kind++) {
        utofu_vcq_hdl_t all[64], more;
        for (int n = 0; n < kinds[kind].count; n++)
            same(utofu_create_vcq(4, kinds[kind].flags, &all[n]), 0);
        same(utofu_create_vcq(4, kinds[kind].flags, &more), UTOFU_ERR_FULL);
        for (int n = 0; n < kinds[kind].count; n++)
            same(utofu_free_vcq(all[n]), 0);
    }
}

static void memory(void)
{
    utofu_stadd_t again, fixed;
    utofu_vcq_id_t other = id;
    same(utofu_reg_mem(vcq, from, sizeof from, 0, &again), 0);
    check(again == here);
    same(utofu_dereg_mem(vcq, again, 0), 0);
    same(utofu_reg_mem_with_stag(vcq, from + 16, 100, 9, 0, &fixed), 0);
    same(utofu_query_stadd(other, 9, &again), 0);
    check(again == fixed);
    same(utofu_reg_mem_with_stag(vcq, to, 100, 9, 0, &again), UTOFU_ERR_INVALID_STAG);
    same(utofu_reg_mem_with_stag(vcq, to, 100, 256, 0, &again), UTOFU_ERR_INVALID_STAG);
    same(utofu_query_stadd(other, 256, &again), UTOFU_ERR_INVALID_STAG);
    /* The first byte of a fixed tag is that of the buffer, wherever it starts. */
    memset(from, 0, 200);
    put(vcq, id, there, fixed, 1, 0, 0);
    same(utofu_put_piggyback8(vcq, id, 0x1122, fixed + 2, 2, 0, TCQ, NULL), 0);
    next_completion(vcq);
    same(from[18] | from[19] << 8, 0x1122);
    same(utofu_dereg_mem(vcq, fixed, 0), 0);
    same(utofu_dereg_mem(vcq, fixed, 0), UTOFU_ERR_INVALID_STADD);
    same(utofu_reg_mem(vcq, NULL, 100, 0, &again), UTOFU_ERR_INVALID_ADDRESS);
    same(utofu_reg_mem(vcq, (void *)8, 100, 0, &again), UTOFU_ERR_INVALID_ADDRESS);
    same(utofu_reg_mem(vcq, from, 0, 0, &again), UTOFU_ERR_INVALID_SIZE);
    same(utofu_reg_mem(vcq, from, 8, 2, &again), UTOFU_ERR_INVALID_FLAGS);
    same(utofu_reg_mem(vcq, from, 8, 0, NULL), UTOFU_ERR_INVALID_POINTER);
}

static void limits(void)
{
    void *data;
    /* 2011 completions are unfinished as long as they are not polled. */
    for (int n = 0; n < 2011; n++)
        same(utofu_put(vcq, id, here, there, 8, 0, TCQ, NULL), 0);
    same(utofu_put(vcq, id, here, there, 8, 0, TCQ, NULL), UTOFU_ERR_BUSY);
    next_completion(vcq);
    same(utofu_put(vcq, id, here, there, 8, 0, TCQ, NULL), 0);
    same(utofu_put(vcq, id, here, there, 8, 0, TCQ, NULL), UTOFU_ERR_BUSY);
    for (int n = 0; n < 2011; n++)
        next_completion(vcq);
    same(utofu_poll_tcq(vcq, 0, &data), UTOFU_ERR_NOT_FOUND);
    /* Delayed commands fill the TOQ for good. */
    int posted = 0, code;
    while ((code = utofu_nop(vcq, UTOFU_ONESIDED_FLAG_DELAY_START, NULL)) == 0)
        posted++;
    same(code, UTOFU_ERR_BUSY);
    check(posted > 2000);
    must(utofu_free_vcq(vcq));
    begin();
    /* A full MRQ makes its senders wait. */
    posted = 0;
    while ((code = utofu_put(vcq, id, here, there, 8, 0, REMOTE, NULL)) == 0)
        posted++;
    same(code, UTOFU_ERR_BUSY);
    check(posted > 8000);
    for (int n = 0; n < posted; n++)
        next_notice(vcq);
    same(utofu_put(vcq, id, here, there, 8, 0, REMOTE, NULL), 0);
    next_notice(vcq);

    same(utofu_put(vcq, id, here, there, 1 << 24, 0, 0, NULL), UTOFU_ERR_INVALID_SIZE);
    same(utofu_put(vcq, id, here, there, 8, 256, 0, NULL), UTOFU_ERR_INVALID_EDATA);
    same(utofu_put(vcq, id, here, there, 8, 0, 1 << 4, NULL), UTOFU_ERR_INVALID_FLAGS);
    same(utofu_put(vcq, id, here, there, 8, 0, UTOFU_ONESIDED_FLAG_PATH(6), NULL), UTOFU_ERR_INVALID_PATH_ID);
    same(utofu_put(vcq, 99, here, there, 8, 0, 0, NULL), UTOFU_ERR_INVALID_VCQ_ID);
    same(utofu_put(vcq, id | 1ull << 34, here, there, 8, 0, 0, NULL), UTOFU_ERR_INVALID_VCQ_ID);
    same(utofu_put(vcq + 1, id, here, there, 8, 0, 0, NULL), UTOFU_ERR_INVALID_VCQ_HDL);
    same(utofu_put_stride(vcq, id, here, there, 8, 8, 0, 0, 0, NULL), UTOFU_ERR_INVALID_NUMBER);
    same(utofu_put_piggyback(vcq, id, from, there, 33, 0, 0, NULL), UTOFU_ERR_INVALID_SIZE);
    same(utofu_put_piggyback(vcq, id, NULL, there, 3, 0, 0, NULL), UTOFU_ERR_INVALID_POINTER);
    same(utofu_put_piggyback8(vcq, id, 0, there, 9, 0, 0, NULL), UTOFU_ERR_INVALID_SIZE);
    same(utofu_poll_tcq(vcq, 1, &data), UTOFU_ERR_INVALID_FLAGS);
    same(utofu_poll_tcq(vcq, 0, NULL), UTOFU_ERR_INVALID_POINTER);
}

/* Errors of commands arrive where they were asked for, and otherwise once, at the next poll. */
static void errors(void)
{
    struct utofu_mrq_notice notice;
    utofu_stadd_t gone = 0x7777ull << 40, readable;
    void *data = NULL;
    same(utofu_put(vcq, id, gone, there, 8, 0, TCQ, &data), 0);
    same(utofu_poll_tcq(vcq, 0, &data), UTOFU_ERR_TCQ_STADD);
    check(data == &data);
    same(utofu_put(vcq, id, here + sizeof from, there, 1, 0, TCQ, NULL), 0);
    same(utofu_poll_tcq(vcq, 0, &data), UTOFU_ERR_TCQ_LENGTH);
    same(utofu_put(vcq, id, here, gone, 8, 9, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_STADD);
    same(notice.edata, 9);
    same(utofu_put(vcq, id, here, there + sizeof to - 4, 8, 0, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_LENGTH);
    same(utofu_reg_mem(vcq, to, 64, UTOFU_REG_MEM_FLAG_READ_ONLY, &readable), 0);
    same(utofu_put(vcq, id, here, readable, 8, 0, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_MEMORY);
    same(utofu_get(vcq, id, here, readable, 8, 0, LOCAL, NULL), 0);
    next_notice(vcq);
    same(utofu_dereg_mem(vcq, readable, 0), 0);
    same(utofu_get(vcq, id, here, readable, 8, 0, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_STADD);
    uint8_t coords[6] = {0};
    utofu_vcq_id_t closed;
    must(utofu_construct_vcq_id(coords, 2, 0, 1, &closed));
    same(utofu_put(vcq, closed, here, there, 8, 0, LOCAL, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_PEER);
    utofu_vcq_hdl_t second;
    must(utofu_create_vcq(2, 0, &second));
    must(utofu_query_vcq_id(second, &closed));
    same(utofu_put(vcq, closed, here, gone, 8, 0, 0, NULL), 0);
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_MRQ_RMT_STADD);
    must(utofu_free_vcq(second));
    same(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
    char reason[256] = "";
    utofu_get_last_error(reason);
    check(strstr(reason, "no memory registered under") != NULL);
}

static void gates(void)
{
    utofu_vbg_id_t gate[2], many[40];
    struct utofu_vbg_setting wires[2];
    uint8_t coords[6];
    utofu_tni_id_t tni;
    utofu_bg_id_t bg;
    uint16_t extra;
    uint64_t value[6] = {1, 2, 3, 4, 5, 6};
    double number[3] = {1, 2, 3};
    same(utofu_alloc_vbg(0, 2, 0, gate), 0);
    same(utofu_query_vbg_info(gate[1], coords, &tni, &bg, &extra), 0);
    same(tni, 0);
    same(utofu_alloc_vbg(0, 34, 0, many), UTOFU_ERR_FULL);
    same(utofu_alloc_vbg(9, 1, 0, many), UTOFU_ERR_INVALID_TNI_ID);
    same(utofu_alloc_vbg(0, 0, 0, many), UTOFU_ERR_INVALID_NUMBER);
    /* A start gate that signals a relay gate, which signals it. */
    memset(wires, 0xff, sizeof wires);
    wires[0].vbg_id = wires[1].src_lcl_vbg_id = wires[1].dst_lcl_vbg_id = gate[0];
    wires[1].vbg_id = wires[0].src_lcl_vbg_id = wires[0].dst_lcl_vbg_id = gate[1];
    same(utofu_barrier(gate[0], 0), UTOFU_ERR_INVALID_VBG_ID);
    same(utofu_set_vbg(wires, 2), 0);
    same(utofu_barrier(gate[0], 0), 0);
    same(utofu_poll_barrier(gate[0], 0), 0);
    same(utofu_poll_barrier(gate[0], 0), UTOFU_ERR_NOT_PROCESSED);
    for (int op = UTOFU_REDUCE_OP_BAND; op <= UTOFU_REDUCE_OP_SUM; op++) {
        same(utofu_reduce_uint64(gate[0], op, value, 6, 0), 0);
        memset(value, 0, sizeof value);
        same(utofu_poll_reduce_uint64(gate[0], 0, value), 0);
        for (int n = 0; n < 6; n++)
            same(value[n], n + 1);
    }
    same(utofu_reduce_double(gate[0], UTOFU_REDUCE_OP_BFPSUM, number, 3, 0), 0);
    same(utofu_poll_reduce_double(gate[0], 0, number), 0);
    check(number[0] == 1 && number[2] == 3);
    same(utofu_reduce_double(gate[0], UTOFU_REDUCE_OP_MAX, number, 3, 0), 0);
    same(utofu_poll_reduce_double(gate[0], 0, number), 0);
    same(utofu_reduce_double(gate[0], UTOFU_REDUCE_OP_SUM, number, 3, 0), UTOFU_ERR_INVALID_OP);
    same(utofu_reduce_uint64(gate[0], UTOFU_REDUCE_OP_SUM, value, 7, 0), UTOFU_ERR_INVALID_NUMBER);
    same(utofu_reduce_uint64(gate[0], 99, value, 1, 0), UTOFU_ERR_INVALID_OP);
    same(utofu_reduce_uint64(gate[0], UTOFU_REDUCE_OP_MAXLOC, value, 3, 0), UTOFU_ERR_INVALID_NUMBER);
    same(utofu_reduce_uint64(UTOFU_VBG_ID_NULL, UTOFU_REDUCE_OP_SUM, value, 1, 0), UTOFU_ERR_INVALID_VBG_ID);
    same(utofu_free_vbg(gate, 2), 0);
    same(utofu_barrier(gate[0], 0), UTOFU_ERR_INVALID_VBG_ID);
}

int main(void)
{
    queries();
    begin();
    ids();
    allocation();
    memory();
    errors();
    limits();
    gates();
    must(utofu_free_vcq(vcq));
    printf("calls: all\n");
    return 0;
}
