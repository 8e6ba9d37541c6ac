/*
 * What communication costs, in nanoseconds: the least of several batches, each the mean of many
 * operations. Four processes; of those, two take part in the figures of messages.
 *
 * Prints a line "bench <figure> ns <value>" for each figure:
 *   dgesd2d-<bytes>         one way, half of a round trip; lda == m
 *   dgesd2d-<bytes>-lda     the same matrix with columns 8 elements further apart
 *   dgesd2d-<bytes>-answered  one way, and back an empty matrix
 *   dgsum2d-8192-all, -one  sum of 1024 doubles, wanted by all or by one
 *   dgebs2d-1048576         broadcast of 1 MiB until the last process has it and the root knows
 *   barrier                 of all four
 */
#include <stdio.h>
#include <stdlib.h>

#include "blacs_fmpl.h"

enum { BATCHES = 15, LARGEST = 131072, COLUMNS = 64 };

static blacs_int grid, me;
static double *a;

static void figure(const char *name, double seconds) {
    if (me == 0) printf("bench %s ns %.1f\n", name, seconds * 1e9);
    fflush(stdout);
}

/* A matrix of `count` doubles goes to process 1 and back, `rounds` times a batch. */
static void message(const char *name, int count, int rounds, int apart) {
    int n = count < COLUMNS ? 1 : COLUMNS, m = count / n, lda = m + apart;
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        Cblacs_barrier(grid, "a");
        double start = Cdwalltime00();
        for (int k = 0; k < rounds; k++) {
            if (me == 0) Cdgesd2d(grid, m, n, a, lda, 0, 1);
            if (me == 0) Cdgerv2d(grid, m, n, a, lda, 0, 1);
            if (me == 1) Cdgerv2d(grid, m, n, a, lda, 0, 0);
            if (me == 1) Cdgesd2d(grid, m, n, a, lda, 0, 0);
        }
        double taken = (Cdwalltime00() - start) / rounds / 2;
        if (taken < least) least = taken;
    }
    figure(name, least);
}

/* A matrix of `count` doubles goes to process 1, which answers with an empty one. */
static void answered(const char *name, int count, int rounds) {
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        Cblacs_barrier(grid, "a");
        double start = Cdwalltime00();
        for (int k = 0; k < rounds; k++) {
            if (me == 0) Cdgesd2d(grid, count, 1, a, count, 0, 1);
            if (me == 0) Cdgerv2d(grid, 0, 0, a, 1, 0, 1);
            if (me == 1) Cdgerv2d(grid, count, 1, a, count, 0, 0);
            if (me == 1) Cdgesd2d(grid, 0, 0, a, 1, 0, 0);
        }
        double taken = (Cdwalltime00() - start) / rounds;
        if (taken < least) least = taken;
    }
    figure(name, least);
}

static void sum(const char *name, int destination, int rounds) {
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int k = 0; k < 1024; k++) a[k] = 0; /* so that no sum overflows */
        Cblacs_barrier(grid, "a");
        double start = Cdwalltime00();
        for (int k = 0; k < rounds; k++)
            Cdgsum2d(grid, "a", " ", 1024, 1, a, 1024, destination, destination);
        /* Those whose part is done early wait for the one that has the result. */
        Cblacs_barrier(grid, "a");
        double taken = (Cdwalltime00() - start) / rounds;
        if (taken < least) least = taken;
    }
    figure(name, least);
}

/* Every process tells the root that it has the data; the root begins anew when all have. */
static void broadcast(const char *name, int rounds) {
    double least = 1e9, word = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
        Cblacs_barrier(grid, "a");
        double start = Cdwalltime00();
        for (int k = 0; k < rounds; k++) {
            if (me == 0) Cdgebs2d(grid, "a", " ", LARGEST / COLUMNS, COLUMNS, a, LARGEST / COLUMNS);
            else
                Cdgebr2d(grid, "a", " ", LARGEST / COLUMNS, COLUMNS, a, LARGEST / COLUMNS, 0, 0);
            if (me != 0) Cdgesd2d(grid, 1, 1, &word, 1, 0, 0);
            for (int from = 1; me == 0 && from < 4; from++)
                Cdgerv2d(grid, 1, 1, &word, 1, 0, from);
        }
        double taken = (Cdwalltime00() - start) / rounds;
        if (taken < least) least = taken;
    }
    figure(name, least);
}

static void barrier(const char *name, int rounds) {
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        Cblacs_barrier(grid, "a");
        double start = Cdwalltime00();
        for (int k = 0; k < rounds; k++) Cblacs_barrier(grid, "a");
        double taken = (Cdwalltime00() - start) / rounds;
        if (taken < least) least = taken;
    }
    figure(name, least);
}

int main(void) {
    blacs_int processes;
    Cblacs_pinfo(&me, &processes);
    if (processes != 4 && processes != 2) {
        if (me == 0) fprintf(stderr, "run this with 4 processes, or 2 for messages only\n");
        Cblacs_exit(0);
        return 2;
    }
    Cblacs_get(-1, BLACS_SYSTEM, &grid);
    Cblacs_gridinit(&grid, "r", 1, processes);
#ifdef ZERO_COPY
    a = blacs_fmpl_alloc((LARGEST + 8 * COLUMNS) * sizeof *a);
#else
    a = malloc((LARGEST + 8 * COLUMNS) * sizeof *a);
#endif
    if (a == NULL) Cblacs_abort(grid, 2);
    for (int k = 0; k < LARGEST + 8 * COLUMNS; k++) a[k] = k; /* so that all pages are there */

    message("dgesd2d-8", 1, 1000, 0);
    message("dgesd2d-65536", 8192, 100, 0);
    message("dgesd2d-65536-lda", 8192, 100, 8);
    message("dgesd2d-1048576", LARGEST, 10, 0);
    message("dgesd2d-1048576-lda", LARGEST, 10, 8);
    answered("dgesd2d-65536-answered", 8192, 100);
    answered("dgesd2d-1048576-answered", LARGEST, 10);
    if (processes == 4) {
        sum("dgsum2d-8192-all", -1, 100);
        sum("dgsum2d-8192-one", 0, 100);
        broadcast("dgebs2d-1048576", 5);
        barrier("barrier", 100);
    }
#ifdef ZERO_COPY
    blacs_fmpl_free(a);
#else
    free(a);
#endif
    Cblacs_exit(0);
    return 0;
}
