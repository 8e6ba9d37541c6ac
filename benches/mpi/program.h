/* Shared by the programs that do the same as our examples: their start, their clock, and the report of a result.
 *
 *   program CORE,CORE... NUMBER...
 *
 * Rank r runs on the core r modulo their number. Rank 0 prints the time in the form of the examples, `123ns a step`;
 * a result that differs from that of a sequential computation ends the job with an error. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int me, ranks;
static long numbers[4];

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

__attribute__((unused)) static void *zeros(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %zu elements\n", count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/* Binds this rank to its core and reads `count` numbers. */
static void begin(int argc, char **argv, int count) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 + count) {
        fprintf(stderr, "a list of cores and %d numbers are needed\n", count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int cores[64], known = 0;
    for (char *rest = argv[1]; rest && known < 64; rest = strchr(rest, ',') ? strchr(rest, ',') + 1 : NULL)
        cores[known++] = atoi(rest);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[me % known], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int n = 0; n < count; n++) numbers[n] = atol(argv[2 + n]);
}

/* Reports the time of rank 0, once all ranks have found their results right. */
static void end(const char *unit, double ns, int is_right) {
    int all;
    MPI_Allreduce(&is_right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all) {
        if (!is_right) fprintf(stderr, "rank %d: the result differs from the sequential one\n", me);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (me == 0) printf("%.3fns a %s; the same as computed by one rank\n", ns, unit);
    MPI_Finalize();
}
