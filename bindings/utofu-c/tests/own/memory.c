/*
 * Registration of all kinds of memory that a program has. Two ranks; each puts to and gets from the
 * other's memory, and both see what the program itself reads and writes there.
 */
#define _DEFAULT_SOURCE
#include "utofu_example.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static utofu_vcq_hdl_t vcq;
static utofu_vcq_id_t peer;
static struct rank me;
static int tag = 1;

static char initialised[10000] = "initialised data";
static char zeroed[10000];
static const char constant[5000] = "read only";

/* Registers memory of both ranks under the same tag, and moves bytes both ways. */
static void moves(const char *what, char *at, size_t length, int writable)
{
    static char scratch[1 << 16];
    utofu_stadd_t own, theirs, mine;
    check(length <= sizeof scratch);
    must(utofu_reg_mem_with_stag(vcq, at, length, tag, 0, &own));
    must(utofu_reg_mem(vcq, scratch, sizeof scratch, 0, &mine));
    must(utofu_query_stadd(peer, tag, &theirs));
    tag++;
    char before = at[0], last = at[length - 1];
    if (writable) {
        at[0] = (char)(40 + me.rank);
        at[length - 1] = (char)(50 + me.rank);
    }
    meet(me, 0, 0, 0);
    must(utofu_get(vcq, peer, mine, theirs, length, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL));
    next_notice(vcq);
    check(scratch[0] == (writable ? 40 + 1 - me.rank : before));
    check(scratch[length - 1] == (writable ? 50 + 1 - me.rank : last));
    meet(me, 0, 0, 0);
    if (writable) {
        memset(scratch, 60 + me.rank, length);
        put(vcq, peer, mine, theirs, length, 0, 0);
        meet(me, 0, 0, 0);
        for (size_t n = 0; n < length; n++)
            if (at[n] != 60 + 1 - me.rank)
                failed(what, (int)n);
    }
    must(utofu_dereg_mem(vcq, own, 0));
    must(utofu_dereg_mem(vcq, mine, 0));
    meet(me, 0, 0, 0);
}

/* Writes to neighbours of registered memory all the time: no write may be lost. */
struct neighbour {
    volatile uint64_t count;
    char page[4096];
    volatile int stop;
};

static void *writes(void *argument)
{
    struct neighbour *neighbour = argument;
    uint64_t count = 0;
    while (!neighbour->stop) {
        neighbour->count++;
        count++;
        if (neighbour->count != count)
            failed("a write was lost", 0);
    }
    return NULL;
}

static void beside_a_thread(void)
{
    pthread_t thread;
    utofu_stadd_t at;
    for (int n = 0; n < 20; n++) {
        /* A page that was not registered before: the writer's word and the buffer are both on it. */
        struct neighbour *neighbour = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(neighbour != MAP_FAILED);
        check(pthread_create(&thread, NULL, writes, neighbour) == 0);
        while (neighbour->count < 1000)
            ;
        must(utofu_reg_mem(vcq, neighbour->page, 1 << 15, 0, &at));
        must(utofu_dereg_mem(vcq, at, 0));
        uint64_t before = neighbour->count;
        while (neighbour->count < before + 1000)
            ;
        neighbour->stop = 1;
        pthread_join(thread, NULL);
        munmap(neighbour, 1 << 16);
    }
}

/* A block that was registered grows and moves like any other; a new one at its address is new memory. */
static void grows(void)
{
    utofu_stadd_t first, second;
    for (int n = 0; n < 10; n++) {
        char *one = malloc(200000), *other = malloc(200000);
        memset(one, 1, 200000);
        memset(other, 2, 200000);
        must(utofu_reg_mem(vcq, one, 200000, 0, &first));
        must(utofu_reg_mem(vcq, other, 200000, 0, &second));
        must(utofu_dereg_mem(vcq, second, 0));
        other = realloc(other, 600000);
        memset(other + 200000, 3, 400000);
        for (int at = 0; at < 200000; at++)
            check(one[at] == 1 && other[at] == 2);
        must(utofu_reg_mem(vcq, other, 600000, 0, &second));
        for (int at = 0; at < 600000; at++)
            check(other[at] == (at < 200000 ? 2 : 3));
        must(utofu_dereg_mem(vcq, first, 0));
        must(utofu_dereg_mem(vcq, second, 0));
        free(one);
        free(other);
    }
}

int main(void)
{
    utofu_stadd_t at;
    me = this_rank(2);
    must(utofu_create_vcq_with_cmp_id(0, 0, 0, &vcq));
    must(utofu_construct_vcq_id(coords_of(1 - me.rank), 0, 0, 0, &peer));
    meet(me, 0, 0, 0);
    char local[9000], *small = malloc(100), *large = malloc(1 << 20);
    memset(local, 1, sizeof local);
    memset(small, 2, 100);
    memset(large, 3, 1 << 20);
    moves("initialised data", initialised, sizeof initialised, 1);
    moves("zeroed data", zeroed, sizeof zeroed, 1);
    moves("constants", (char *)constant, sizeof constant, 0);
    moves("the stack", local, sizeof local, 1);
    moves("a small block", small, 100, 1);
    moves("a large block", large + 12345, 1 << 16, 1);
    /* Many neighbours on the same pages. */
    for (int n = 0; n < 20; n++)
        moves("a small block", malloc(40 + n), 40 + n, 1);
    /* A program that maps memory away and back has other memory there. */
    for (int n = 0; n < 3; n++) {
        char *mapped = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(mapped != MAP_FAILED && mapped[0] == 0 && mapped[1 << 16] == 0);
        moves("mapped memory", mapped, 1 << 16, 1);
        munmap(mapped, 1 << 17);
    }
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(utofu_reg_mem(vcq, shared, 4096, 0, &at) == UTOFU_ERR_NOT_SUPPORTED);
    check(utofu_reg_mem(vcq, (void *)(uintptr_t)main, 16, 0, &at) == UTOFU_ERR_NOT_SUPPORTED);
    grows();
    beside_a_thread();
    meet(me, 0, 0, 0);
    if (me.rank == 0)
        printf("memory: all\n");
    return 0;
}
