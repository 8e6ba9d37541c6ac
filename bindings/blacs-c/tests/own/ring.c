/*
 * Passes matrices around a ring and sums them up; prints "ring: N processes". With the argument
 * "registered", the matrices are in the fabric's memory; with "wide", their columns are apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blacs_fmpl.h"

enum { ROWS = 300, COLUMNS = 200 };

static void fail(const char *what) {
    fprintf(stderr, "FAIL: %s\n", what);
    exit(9);
}

static double element(int process, int i, int j) { return process * 1e6 + j * 1e3 + i; }

int main(int argc, char **argv) {
    int registered = argc > 1 && strcmp(argv[1], "registered") == 0;
    int lda = argc > 1 && strcmp(argv[1], "wide") == 0 ? ROWS + 3 : ROWS;
    blacs_int me, all, context, rows, columns, row, column, sum;
    size_t bytes = sizeof(double) * lda * COLUMNS;
    double *sent, *got;
    int i, j, round;

    Cblacs_pinfo(&me, &all);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", 1, all);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    if (rows != 1 || columns != all || row != 0 || column != me) fail("gridinfo");

    sent = registered ? blacs_fmpl_alloc(bytes) : malloc(bytes);
    got = registered ? blacs_fmpl_alloc(bytes) : malloc(bytes);
    if (!sent || !got) fail("memory");
    for (round = 0; round < 3; round++) {
        for (j = 0; j < COLUMNS; j++)
            for (i = 0; i < lda; i++) {
                sent[j * lda + i] = element(me, i, j);
                got[j * lda + i] = -1;
            }
        /* All send before anybody receives. */
        Cdgesd2d(context, ROWS, COLUMNS, sent, lda, 0, (me + 1) % all);
        Cdgerv2d(context, ROWS, COLUMNS, got, lda, 0, (me + all - 1) % all);
        for (j = 0; j < COLUMNS; j++)
            for (i = 0; i < lda; i++) {
                double wanted = i < ROWS ? element((me + all - 1) % all, i, j) : -1;
                if (got[j * lda + i] != wanted) fail("an element");
            }
    }

    sum = me;
    Cigsum2d(context, "All", " ", 1, 1, &sum, 1, -1, -1);
    if (sum != all * (all - 1) / 2) fail("the sum");
    if (registered) {
        blacs_fmpl_free(sent);
        blacs_fmpl_free(got);
    } else {
        free(sent);
        free(got);
    }
    Cblacs_gridexit(context);
    if (me == 0) printf("ring: %d processes\n", (int)all);
    Cblacs_exit(0);
    return 0;
}
