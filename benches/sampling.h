/* Sampling of operations between ranks that are bound to cores, by the rules of `docs/evidence/performance.md`.
 *
 * Rank r runs on the core r modulo their number. Rank 0 prints a line for each sample: name, bytes, ns per operation, ns
 * of a bare flag one way right before, and 1 if no rank was switched out involuntarily and the flag took as long right
 * after, else 0: a hypervisor moves virtual CPUs nearer to each other or farther apart at any time. The slower rank's
 * time counts. The program that includes this sets all variables up to `samples`; `shared` begins as zeros. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RANKS = 4, LINE = 64, TRIES = 400, ROUND_TRIPS = 100 };

typedef struct {
    _Alignas(LINE) atomic_ullong word;
} Line;

/* Memory of all ranks, for what is not measured. */
typedef struct {
    Line arrived, decision, over, there, back, took[RANKS], switched[RANKS];
} Shared;

static Shared *shared;
static int me, ranks;
static double sample_ns;
static int samples;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

static void wait_for(atomic_ullong *word, unsigned long long least) {
    while (atomic_load_explicit(word, memory_order_acquire) < least)
        if (ranks > 2) sched_yield();
}

/* Binds this rank to its core, and reads the length and the number of samples. Returns whether that worked. */
static int prepare(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "SAMPLE_NS SAMPLES CORE... are needed\n");
        return 0;
    }
    sample_ns = atof(argv[1]);
    samples = atoi(argv[2]);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(atoi(argv[3 + me % (argc - 3)]), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
        perror("sched_setaffinity");
        return 0;
    }
    return 1;
}

/* All ranks arrive before one continues. */
static void meet(void) {
    static unsigned long long met;
    met += ranks;
    atomic_fetch_add(&shared->arrived.word, 1);
    wait_for(&shared->arrived.word, met);
}

static unsigned long long decide(unsigned long long value) {
    meet();
    if (me == 0) atomic_store(&shared->decision.word, value);
    meet();
    return atomic_load(&shared->decision.word);
}

/* Returns the ns of a flag one way between ranks 0 and 1. */
static double ping_pong(void) {
    static unsigned long long turn;
    double begun = 0;
    for (int i = -20; i < ROUND_TRIPS; i++) {
        if (i == 0) begun = now();
        turn++;
        if (me == 0) {
            atomic_store_explicit(&shared->there.word, turn, memory_order_release);
            wait_for(&shared->back.word, turn);
        } else if (me == 1) {
            wait_for(&shared->there.word, turn);
            atomic_store_explicit(&shared->back.word, turn, memory_order_release);
        }
    }
    return (now() - begun) / (2 * ROUND_TRIPS);
}

static unsigned long long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

typedef void Operation(long times, int bytes);

/* Returns the time of `times` repetitions; 0 at a rank that sleeps while rank 0 measures. */
static double turn(Operation *operation, long times, int bytes, int alone) {
    static unsigned long long turns;
    turns++;
    meet();
    if (alone && me == 1) {
        struct timespec nap = {0, 50000};
        while (atomic_load(&shared->over.word) < turns) nanosleep(&nap, NULL);
        return 0;
    }
    operation(times / 8 + 1, bytes);
    if (!alone) meet();
    double begun = now();
    operation(times, bytes);
    double took = now() - begun;
    if (me == 0) atomic_store(&shared->over.word, turns);
    return took;
}

/* Measures an operation, of which a repetition has `parts`. */
static void measure(const char *name, int bytes, double parts, int alone, Operation *operation) {
    long times = 1;
    for (int done = 0; !done;) {
        double took = turn(operation, times, bytes, alone);
        double next = took > sample_ns / 3 ? times * sample_ns / took : times * 4.0;
        unsigned long long decided = decide(((unsigned long long)(next < 1 ? 1 : next) << 1) | (took > sample_ns / 3));
        times = decided >> 1;
        done = decided & 1;
    }
    int clean = 0;
    for (int taken = 0; taken < TRIES && clean < samples; taken++) {
        meet();
        double flag = ping_pong();
        unsigned long long before = switches();
        double took = turn(operation, times, bytes, alone);
        atomic_store(&shared->switched[me].word, switches() - before);
        atomic_store(&shared->took[me].word, (unsigned long long)took);
        meet();
        double slowest = 0;
        int switched = 0;
        for (int rank = 0; rank < ranks; rank++) {
            double its = atomic_load(&shared->took[rank].word);
            if (its > slowest) slowest = its;
            switched |= atomic_load(&shared->switched[rank].word) != 0;
        }
        double after = ping_pong();
        int stayed = decide(after < flag * 1.3 && flag < after * 1.3);
        /* Ranks that share cores are switched out in every sample. */
        clean += ranks > 2 || (!switched && stayed);
        if (me == 0)
            printf("%s %d %.3f %.3f %d\n", name, bytes, slowest / times / parts, flag, !switched && stayed);
    }
    meet();
}
