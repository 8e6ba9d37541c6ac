/*
 * What the uTofu examples share: their rank, waits, and the exchange of ids. A program
 * of the machine gets rank and number of ranks from MPI or from its job's description.
 */
#ifndef UTOFU_EXAMPLE_H
#define UTOFU_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utofu.h>

/* Ends the process if a call fails. The library exports this name, the header does not have it. */
extern void utofu_get_last_error(const char *message);

#define check(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))
#define must(call) expect(call, #call, __LINE__)

static inline void failed(const char *what, int line)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}

static inline void expect(int code, const char *call, int line)
{
    char reason[256] = "";
    if (code == UTOFU_SUCCESS)
        return;
    utofu_get_last_error(reason);
    fprintf(stderr, "line %d: %s: %d, %s\n", line, call, code, reason);
    exit(1);
}

struct rank {
    int rank, ranks;
};

/* A number among variables of which a launcher sets one. */
static inline int variable(const char *const names[], int otherwise)
{
    for (; *names; names++)
        if (getenv(*names))
            return atoi(getenv(*names));
    return otherwise;
}

/* The rank of this process. `onesided run` names it in ONESIDED_JOB. */
static inline struct rank this_rank(int ranks)
{
    const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    const char *const ranks_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    struct rank me = {variable(rank_names, 0), variable(ranks_names, 1)};
    const char *job = getenv("ONESIDED_JOB");
    if (job) {
        me.rank = atoi(strstr(job, " rank=") + 6);
        me.ranks = atoi(strstr(job, " ranks=") + 7);
    }
    if (ranks != 0 && me.ranks != ranks)
        failed("wrong number of ranks", me.ranks);
    return me;
}

/* The coordinates of a rank: twelve nodes on a ring through A, B and C. */
static inline uint8_t *coords_of(int rank)
{
    static const uint8_t walk[12][3] = {{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 2, 1}, {0, 1, 1}, {0, 0, 1},
                                        {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {1, 2, 0}, {1, 1, 0}, {1, 0, 0}};
    static uint8_t coords[6];
    memset(coords, 0, sizeof coords);
    coords[0] = (uint8_t)(rank / 12);
    memcpy(coords + 3, walk[rank % 12], 3);
    return coords;
}

/* Polls for a completion. */
static inline void *next_completion(utofu_vcq_hdl_t vcq)
{
    void *data;
    int code;
    while ((code = utofu_poll_tcq(vcq, 0, &data)) == UTOFU_ERR_NOT_FOUND)
        ;
    must(code);
    return data;
}

/* Polls for a notice. */
static inline struct utofu_mrq_notice next_notice(utofu_vcq_hdl_t vcq)
{
    struct utofu_mrq_notice notice;
    int code;
    while ((code = utofu_poll_mrq(vcq, 0, &notice)) == UTOFU_ERR_NOT_FOUND)
        ;
    must(code);
    return notice;
}

/*
 * The body of a loop that looks at memory. No notice is due; the poll reports a rank that was lost, and takes
 * time where time is virtual.
 */
static inline void pause_on(utofu_vcq_hdl_t vcq)
{
    struct utofu_mrq_notice none;
    check(utofu_poll_mrq(vcq, 0, &none) == UTOFU_ERR_NOT_FOUND);
}

/* Puts bytes and waits until their buffer may be used again; polls the TCQ while the TOQ is full. */
static inline void put(utofu_vcq_hdl_t vcq, utofu_vcq_id_t to, utofu_stadd_t local, utofu_stadd_t remote,
                       size_t length, uint64_t edata, unsigned long flags)
{
    int code;
    flags |= UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
    while ((code = utofu_put(vcq, to, local, remote, length, edata, flags, NULL)) == UTOFU_ERR_BUSY) {
        void *data;
        int polled = utofu_poll_tcq(vcq, 0, &data);
        if (polled != UTOFU_ERR_NOT_FOUND)
            must(polled);
    }
    must(code);
    next_completion(vcq);
}

/* What the ranks say of themselves when they meet. */
enum { MOST_RANKS = 64, MEETING_TNI = 5, MEETING_TAG = 255, MEETING_COMPONENT = 7 };

struct card {
    uint64_t words[3];
    /* How often the rank has called `meet`; written last. */
    uint64_t here;
};

/*
 * Waits until all ranks have called it as often; then each has the others' words, which stay the same in
 * all calls. It uses a VCQ with a component id and a fixed tag, which need no communication. A rank that is
 * not there yet is tried again.
 */
static inline volatile struct card *meet(struct rank me, uint64_t first, uint64_t second, uint64_t third)
{
    static volatile struct card cards[MOST_RANKS];
    static struct card card;
    static utofu_vcq_hdl_t vcq;
    if (card.here++ == 0) {
        utofu_stadd_t own;
        check(me.ranks <= MOST_RANKS);
        card.words[0] = first;
        card.words[1] = second;
        card.words[2] = third;
        must(utofu_create_vcq_with_cmp_id(MEETING_TNI, MEETING_COMPONENT, 0, &vcq));
        must(utofu_reg_mem_with_stag(vcq, (void *)cards, sizeof cards, MEETING_TAG, 0, &own));
    }
    for (int rank = 0; rank < me.ranks; rank++) {
        const unsigned long flags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
        utofu_vcq_id_t peer;
        utofu_stadd_t theirs;
        int code;
        must(utofu_construct_vcq_id(coords_of(rank), MEETING_TNI, 0, MEETING_COMPONENT, &peer));
        must(utofu_query_stadd(peer, MEETING_TAG, &theirs));
        theirs += (uint64_t)me.rank * sizeof card;
        do {
            struct utofu_mrq_notice notice;
            must(utofu_put_piggyback(vcq, peer, &card, theirs, sizeof card, 0, flags, NULL));
            while ((code = utofu_poll_mrq(vcq, 0, &notice)) == UTOFU_ERR_NOT_FOUND)
                ;
        } while (code == UTOFU_ERR_MRQ_PEER || code == UTOFU_ERR_MRQ_RMT_STADD);
        must(code);
    }
    for (int rank = 0; rank < me.ranks; rank++)
        while (cards[rank].here < card.here)
            pause_on(vcq);
    return cards;
}

#endif
