/*
 * Every communication routine of the C interface in every precision, against serial loops, on
 * several grids of a job of four processes. With the argument "full" it runs every combination of
 * shape, column distance and topology instead of every topology with some of the rest.
 *
 * Prints a line FAIL for each failure and TABLE <routine> <checks> <failures> at the end.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"

int main(int argc, char **argv) {
    static const int grids[][2] = {{1, 1}, {2, 2}, {1, 4}, {4, 1}, {3, 1}};
    int full = argc > 1 && strcmp(argv[1], "full") == 0;
    blacs_int me, processes;
    double start;
    Cblacs_pinfo(&me, &processes);
    if (processes != 4) {
        if (me == 0) fprintf(stderr, "run this with 4 processes\n");
        Cblacs_exit(0);
        return 2;
    }
    start = Cdwalltime00();
    for (int k = 0; k < 5; k++) {
        struct grid g;
        if (!grid_open(&g, k, k % 2 == 0 ? "Row" : "c", grids[k][0], grids[k][1])) continue;
        for (const char *precision = "isdcz"; *precision != '\0'; precision++) {
            check_points(&g, *precision, full);
            check_broadcasts(&g, *precision, full);
            check_combines(&g, *precision, full);
        }
        grid_close(&g);
    }
    int code = report();
    if (me == 0) printf("TIME %.2f s\n", Cdwalltime00() - start);
    fflush(stdout);
    Cblacs_exit(0);
    return code;
}
