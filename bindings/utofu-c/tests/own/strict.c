/*
 * Uses that the real machine leaves undefined, each by name; strict mode reports them. One process.
 */
#include "utofu_example.h"

#include <pthread.h>

static const unsigned long TCQ = UTOFU_ONESIDED_FLAG_TCQ_NOTICE, LOCAL = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
static utofu_vcq_hdl_t vcq;
static char from[256], to[256];

static void *polls(void *argument)
{
    void *data;
    (void)argument;
    check(utofu_poll_tcq(vcq, 0, &data) == UTOFU_ERR_NOT_FOUND);
    check(utofu_poll_tcq(vcq, 0, &data) == UTOFU_ERR_NOT_FOUND);
    return NULL;
}

int main(int count, char **words)
{
    const char *use = count == 2 ? words[1] : "";
    utofu_vcq_id_t id;
    utofu_stadd_t here, there, again;
    void *data;
    must(utofu_create_vcq(0, strcmp(use, "safe") == 0 ? UTOFU_VCQ_FLAG_THREAD_SAFE : 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, from, sizeof from, 0, &here));
    must(utofu_reg_mem(vcq, to, sizeof to, 0, &there));
    if (strcmp(use, "unregistered-local") == 0) {
        must(utofu_put(vcq, id, here + 200, there, 100, 0, 0, NULL));
    } else if (strcmp(use, "unregistered-remote") == 0) {
        must(utofu_dereg_mem(vcq, there, 0));
        must(utofu_put(vcq, id, here, there, 100, 0, 0, NULL));
    } else if (strcmp(use, "reused-put") == 0) {
        must(utofu_put(vcq, id, here, there, 100, 0, TCQ, NULL));
        from[50]++;
        next_completion(vcq);
    } else if (strcmp(use, "reused-get") == 0) {
        must(utofu_get(vcq, id, there, here, 100, 0, LOCAL, NULL));
        to[50]++;
        next_notice(vcq);
    } else if (strcmp(use, "tag") == 0) {
        must(utofu_reg_mem_with_stag(vcq, from, 100, 5, 0, &again));
        check(utofu_reg_mem_with_stag(vcq, to, 100, 5, 0, &again) == UTOFU_ERR_INVALID_STAG);
    } else if (strcmp(use, "thread") == 0 || strcmp(use, "safe") == 0) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, polls, NULL) == 0);
        pthread_join(thread, NULL);
    } else {
        /* Correct uses, about which there is nothing to say. */
        for (int n = 0; n < 3; n++) {
            from[0]++;
            must(utofu_put(vcq, id, here, there, 100, 0, TCQ, &from[n]));
            check(next_completion(vcq) == &from[n]);
            must(utofu_get(vcq, id, here, there, 100, 0, LOCAL, NULL));
            next_notice(vcq);
            must(utofu_put_stride(vcq, id, here, there, 8, 16, 4, 0, TCQ, NULL));
            for (int block = 0; block < 4; block++)
                next_completion(vcq);
        }
        must(utofu_dereg_mem(vcq, here, 0));
        must(utofu_dereg_mem(vcq, there, 0));
    }
    check(utofu_poll_tcq(vcq, 0, &data) == UTOFU_ERR_NOT_FOUND);
    printf("strict: %s\n", use);
    return 0;
}
