/*
 * How fast do two processes talk? A matrix goes from process 0 to process 1 and back, many times;
 * half of a round trip is what one message costs. Run it with two processes:
 *
 *     onesided run -n 2 ./pingpong
 *
 * All processes of the job run this same program. The BLACS arrange them in a grid and name them by
 * row and column; here the grid is one row.
 */
#include <stdio.h>
#include <stdlib.h>

#include "blacs.h"

enum { LARGEST = 4 * 1024 * 1024, BATCHES = 5 };

int main(void) {
    blacs_int me, processes, grid, rows, cols, myrow, mycol;

    /* Who am I, and how many are we? Then a grid of one row and two columns out of all of us. */
    Cblacs_pinfo(&me, &processes);
    if (processes < 2) {
        fprintf(stderr, "pingpong needs two processes\n");
        Cblacs_exit(0);
        return 1;
    }
    Cblacs_get(-1, BLACS_SYSTEM, &grid);
    Cblacs_gridinit(&grid, "Row", 1, 2);

    /* Processes that found no place in the grid have nothing to do. */
    Cblacs_gridinfo(grid, &rows, &cols, &myrow, &mycol);
    if (myrow < 0) {
        Cblacs_exit(0);
        return 0;
    }

    double *matrix = calloc(LARGEST, 1);
    if (matrix == NULL) Cblacs_abort(grid, 1); /* ends all processes, not only this one */
    if (mycol == 0) printf("%10s %15s %15s\n", "bytes", "microseconds", "MB/s");

    for (blacs_int bytes = 8; bytes <= LARGEST; bytes *= 2) {
        /* A column of doubles: m rows, one column, no gap between columns (lda == m). */
        blacs_int m = bytes / 8;
        int rounds = bytes < 65536 ? 1000 : 20;
        double best = 1e9;
        for (int batch = 0; batch < BATCHES; batch++) {
            /* Nobody starts the clock before both are here. */
            Cblacs_barrier(grid, "All");
            double start = Cdwalltime00();
            for (int k = 0; k < rounds; k++) {
                if (mycol == 0) {
                    /* The send returns when the matrix may be changed, not when it has arrived. */
                    Cdgesd2d(grid, m, 1, matrix, m, 0, 1);
                    Cdgerv2d(grid, m, 1, matrix, m, 0, 1);
                } else {
                    Cdgerv2d(grid, m, 1, matrix, m, 0, 0);
                    Cdgesd2d(grid, m, 1, matrix, m, 0, 0);
                }
            }
            double one_way = (Cdwalltime00() - start) / rounds / 2;
            if (one_way < best) best = one_way;
        }
        if (mycol == 0) printf("%10d %15.2f %15.1f\n", (int)bytes, best * 1e6, bytes / best / 1e6);
    }

    free(matrix);
    Cblacs_gridexit(grid);
    Cblacs_exit(0);
    return 0;
}
