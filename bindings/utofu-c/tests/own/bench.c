/*
 * The cost of calls, in nanoseconds: the median of batches. One process, whose first VCQ addresses its
 * second.
 */
#define _POSIX_C_SOURCE 199309L
#include "utofu_example.h"

#include <time.h>

enum { BATCHES = 201, CALLS = 1000 };

static utofu_vcq_hdl_t vcq, other;
static utofu_vcq_id_t to;
static uint8_t from[4096], into[4096];
static utofu_stadd_t here, there;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* A put, its notice at the target, and its completion. */
static void put_and_notice(size_t length)
{
    struct utofu_mrq_notice notice;
    void *data;
    check(utofu_put(vcq, to, here, there, length, 1,
                    UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, NULL) == 0);
    check(utofu_poll_mrq(other, 0, &notice) == 0);
    check(utofu_poll_tcq(vcq, 0, &data) == 0);
}

/* An atomic and its result. */
static void fetch_and_add(size_t length)
{
    struct utofu_mrq_notice notice;
    (void)length;
    check(utofu_armw8(vcq, to, UTOFU_ARMW_OP_ADD, 1, there, 1, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL) == 0);
    check(utofu_poll_mrq(vcq, 0, &notice) == 0);
}

static void measure(const char *what, void (*call)(size_t), size_t length)
{
    static double times[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int n = 0; n < CALLS; n++)
            call(length);
        times[batch] = (now() - start) / CALLS;
    }
    qsort(times, BATCHES, sizeof times[0], compare);
    printf("%s %.1f\n", what, times[BATCHES / 2]);
}

int main(void)
{
    must(utofu_create_vcq(0, 0, &vcq));
    must(utofu_create_vcq(1, 0, &other));
    must(utofu_query_vcq_id(other, &to));
    must(utofu_reg_mem(vcq, from, sizeof from, 0, &here));
    must(utofu_reg_mem(other, into, sizeof into, 0, &there));
    measure("put8", put_and_notice, 8);
    measure("put64", put_and_notice, 64);
    measure("put4096", put_and_notice, 4096);
    measure("add", fetch_and_add, 0);
    return 0;
}
