/*
 * Many grids at once, on four processes.
 *
 *   grids alive COUNT   makes COUNT grids; uses the first, a middle and the last one; exits every second one,
 *                       makes as many again, and uses some of all
 *   grids used COUNT    makes COUNT grids and uses each, in all scopes; then uses some once more
 *
 * Prints "grids: well", and how long making one took at first and in the end.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blacs_fmpl.h"

enum { ALL = 4, MOST = 1 << 16, SAMPLE = 100 };

static blacs_int me, all, contexts[MOST];
static double spent[MOST];

static void check(const char *what, blacs_int context, double have, double want) {
    if (have == want) return;
    fprintf(stderr, "FAIL process %d, context %d: %s is %g, not %g\n", (int)me, (int)context, what, have, want);
    exit(3);
}

/* Grids of all shapes, the same ones at all processes. */
static void make(int at) {
    static const blacs_int rows[] = {2, 1, 4, 2};
    struct timespec then, now;
    blacs_int r = rows[at % 4];
    clock_gettime(CLOCK_MONOTONIC, &then);
    Cblacs_get(-1, 0, &contexts[at]);
    Cblacs_gridinit(&contexts[at], at % 4 == 3 ? "c" : "r", r, ALL / r);
    clock_gettime(CLOCK_MONOTONIC, &now);
    spent[at] = (double)(now.tv_sec - then.tv_sec) * 1e9 + (double)(now.tv_nsec - then.tv_nsec);
}

/* A message to the next process, which all send first; a broadcast and a sum in each scope. */
static void use(int at) {
    static const char *const scopes[] = {"r", "c", "a"};
    blacs_int context = contexts[at], rows, columns, row, column;
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    blacs_int place = row * columns + column, next = (place + 1) % ALL, before = (place + ALL - 1) % ALL;
    double mine[3] = {at, place, 7}, theirs[3] = {0};
    Cdgesd2d(context, 3, 1, mine, 3, next / columns, next % columns);
    Cdgerv2d(context, 3, 1, theirs, 3, before / columns, before % columns);
    check("the grid of a message", context, theirs[0], at);
    check("its sender", context, theirs[1], before);
    for (int k = 0; k < 3; k++) {
        double value = 100.0 * at + k;
        int root = k == 0 ? column == 0 : k == 1 ? row == 0 : place == 0;
        int members = k == 0 ? columns : k == 1 ? rows : ALL;
        if (root) {
            Cdgebs2d(context, scopes[k], " ", 1, 1, &value, 1);
        } else {
            value = -1;
            Cdgebr2d(context, scopes[k], " ", 1, 1, &value, 1, k == 0 ? row : 0, k == 1 ? column : 0);
        }
        check("a broadcast", context, value, 100.0 * at + k);
        Cdgsum2d(context, scopes[k], " ", 1, 1, &value, 1, -1, -1);
        check("a sum", context, value, members * (100.0 * at + k));
    }
}

static double mean(int from) {
    double sum = 0;
    for (int k = from; k < from + SAMPLE; k++) sum += spent[k];
    return sum / SAMPLE;
}

int main(int argc, char **argv) {
    int count = argc > 2 ? atoi(argv[2]) : 0, is_used = argc > 1 && strcmp(argv[1], "used") == 0;
    if (count < SAMPLE || count > MOST) return 2;
    Cblacs_pinfo(&me, &all);
    if (all != ALL) return 2;
    for (int k = 0; k < count; k++) {
        make(k);
        check("a context", contexts[k], contexts[k], k);
        if (is_used) use(k);
    }
    double first = mean(0), last = mean(count - SAMPLE);
    const int some[] = {0, count / 2, count - 1};
    for (int k = 0; k < 3; k++) use(some[k]);
    if (is_used) {
        for (int k = 0; k < count; k += 13) use(k);
    } else {
        for (int k = 1; k < count; k += 2) Cblacs_gridexit(contexts[k]);
        for (int k = 1; k < count; k += 2) {
            make(k);
            check("a context that is used again", contexts[k], contexts[k], k);
        }
        for (int k = 0; k < count; k += 61) use(k);
    }
    for (int k = 0; k < 3; k++) use(some[k]);
    if (me == 0) printf("grids: well, %d; ns for one of the first %d: %.0f, of the last: %.0f\n", count, SAMPLE, first, last);
    Cblacs_exit(0);
    return 0;
}
