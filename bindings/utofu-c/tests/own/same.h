/*
 * A VCQ of this process with two registered buffers, and comparisons that name what differs.
 */
#ifndef SAME_H
#define SAME_H

#include "utofu_example.h"

#define same(left, right) equal((long long)(left), (long long)(right), #left, __LINE__)

static inline void equal(long long left, long long right, const char *what, int line)
{
    if (left != right) {
        char reason[256] = "";
        utofu_get_last_error(reason);
        fprintf(stderr, "line %d: %s is %lld (%#llx), not %lld; %s\n", line, what, left, left, right, reason);
        exit(1);
    }
}

static const unsigned long TCQ = UTOFU_ONESIDED_FLAG_TCQ_NOTICE, LOCAL = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
                           REMOTE = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

/* A VCQ, its id, and two registered buffers. */
static utofu_vcq_hdl_t vcq;
static utofu_vcq_id_t id;
static uint8_t from[65536], to[65536];
static utofu_stadd_t here, there;

/* Creates the VCQ, and registers its buffers. */
static inline void begin(void)
{
    must(utofu_create_vcq(0, 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, from, sizeof from, 0, &here));
    must(utofu_reg_mem(vcq, to, sizeof to, 0, &there));
}

#endif
