/*
 * Makes exactly one mistake, named by its argument; errors.txt says what a library should do.
 * Prints "survived" once if the library returned from the mistaken call, and FAIL if it returned
 * but left something behind that it should not have. Four processes; without an argument, or with
 * one that it does not know, it ends with code 2.
 *
 * Unless the mistake is one of all processes, process 0 makes it while the others wait for a
 * message, so that a library that stops only the process at fault is found out.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blacs_fmpl.h"

static blacs_int me, waiting, grid, exited;

/* One call to a routine of that name, with data for 3x2 elements unless it says otherwise. */
struct call {
    blacs_int context;
    const char *scope, *top;
    int row, col;
    blacs_int m, n, lda;
};

/* What routines get: six elements, and behind them what is not theirs. */
static double a[6 + 30];

/* At the end of the process, which a mistake may be. */
static void look_behind(void) {
    for (int k = 6; k < 36; k++)
        if (a[k] != -55) {
            printf("FAIL element %d behind the array was written\n", k - 6);
            return;
        }
}

static int perform(const char *routine, struct call c) {
    blacs_int ra[6], ca[6], value = 1, other, m = c.m, n = c.n, lda = c.lda;
    if (strcmp(routine, "gesd2d") == 0) Cdgesd2d(c.context, m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "gerv2d") == 0) Cdgerv2d(c.context, m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "trsd2d") == 0)
        Cdtrsd2d(c.context, "u", "n", m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "trrv2d") == 0)
        Cdtrrv2d(c.context, "u", "n", m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "gebs2d") == 0) Cdgebs2d(c.context, c.scope, c.top, m, n, a, lda);
    else if (strcmp(routine, "gebr2d") == 0)
        Cdgebr2d(c.context, c.scope, c.top, m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "trbs2d") == 0)
        Cdtrbs2d(c.context, c.scope, c.top, "u", "n", m, n, a, lda);
    else if (strcmp(routine, "trbr2d") == 0)
        Cdtrbr2d(c.context, c.scope, c.top, "u", "n", m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "gsum2d") == 0)
        Cdgsum2d(c.context, c.scope, c.top, m, n, a, lda, c.row, c.col);
    else if (strcmp(routine, "gamx2d") == 0)
        Cdgamx2d(c.context, c.scope, c.top, m, n, a, lda, ra, ca, 3, c.row, c.col);
    else if (strcmp(routine, "gamn2d") == 0)
        Cdgamn2d(c.context, c.scope, c.top, m, n, a, lda, ra, ca, 3, c.row, c.col);
    else if (strcmp(routine, "barrier") == 0) Cblacs_barrier(c.context, c.scope);
    else if (strcmp(routine, "gridexit") == 0) Cblacs_gridexit(c.context);
    else if (strcmp(routine, "pnum") == 0) Cblacs_pnum(c.context, 0, 0);
    else if (strcmp(routine, "pcoord") == 0) Cblacs_pcoord(c.context, 0, &value, &other);
    else if (strcmp(routine, "get") == 0) Cblacs_get(c.context, BLACS_RINGS_BS, &value);
    else if (strcmp(routine, "set") == 0) Cblacs_set(c.context, BLACS_RINGS_BS, &value);
    else return 0;
    return 1;
}

/* Mistakes of process 0 that a routine's name ends: "context-exited-gesd2d", "scope-barrier". */
static int mistaken_argument(const char *name) {
    static const char *const kinds[] = {"context-never-", "context-exited-", "context-minus-",
                                        "scope-",         "top-",            "outside-",
                                        "negative-",      "rows-",           "columns-",
                                        "wrapped-",       "leading-",        "column-"};
    for (int k = 0; k < 12; k++) {
        /* The sender of a broadcast is the caller itself, its receiver names another process. */
        struct call c = {grid, "a", " ", 0, 1, 3, 2, 3};
        size_t length = strlen(kinds[k]);
        if (strncmp(name, kinds[k], length) != 0) continue;
        if (k == 0) c.context = 99;
        if (k == 1) c.context = exited;
        if (k == 2) c.context = -1;
        if (k == 3) c.scope = "x";
        if (k == 4) c.top = "?";
        if (k == 5) c.row = 2;
        if (k == 6) c.col = -1;
        if (k == 7) c.m = -1;
        if (k == 8) c.n = -2;
        /* 2^31 + 3 rows, in 32 bits. */
        if (k == 9) c.m = INT_MIN + 3;
        if (k == 10) c.lda = 2;
        /* A single column needs no distance to the next one. */
        if (k == 11) c.n = 1, c.lda = 1, c.row = c.col = 0;
        if (!perform(name + length, c)) return 0;
        if (k == 11) Cdgerv2d(grid, 3, 1, a, 3, 0, 0);
        if (k == 11 && (a[0] != 1 || a[2] != 3)) printf("FAIL the column arrived otherwise\n");
        return 1;
    }
    return 0;
}

/* Mistakes of process 0 in settings; a value that is refused must stay what it was. */
static int mistaken_setting(const char *name) {
    static const struct {
        const char *name;
        int what, value, before;
    } table[] = {{"set-system", 0, 3, -1},    {"set-ids", 1, 3, -1},      {"set-level", 2, 3, -1},
                 {"set-context", 10, 3, -1},  {"set-unknown", 77, 3, -1}, {"set-rings-bs", 11, 0, 1},
                 {"set-branches-bs", 12, 0, 1}, {"set-rings-co", 13, 0, 1},
                 {"set-branches-co", 14, -2, 1}};
    blacs_int value = 4711;
    if (strcmp(name, "get-unknown") == 0) {
        Cblacs_get(grid, 77, &value);
        if (value != 4711) printf("FAIL the value became %d\n", (int)value);
        return 1;
    }
    for (unsigned k = 0; k < sizeof table / sizeof table[0]; k++) {
        if (strcmp(name, table[k].name) != 0) continue;
        value = table[k].value;
        Cblacs_set(grid, table[k].what, &value);
        if (table[k].before < 0) return 1;
        Cblacs_get(grid, table[k].what, &value);
        if (value != table[k].before) printf("FAIL the setting became %d\n", (int)value);
        return 1;
    }
    return 0;
}

/*
 * Letters of a trapezoid and of an order that mean nothing. The name is "uplo-", "diag-" or "order-",
 * then the routine; the right letters stand in the calls of the others.
 */
static int mistaken_letter(const char *name) {
    const char *routine = strchr(name, '-');
    const char *uplo[2] = {"l", "l"}, *diag[2] = {"n", "n"};
    double got[6] = {-1, -1, -1, -1, -1, -1};
    blacs_int context, row, col, others;
    int order = strcmp(name, "order-gridinit") == 0, receiver, broadcast, sender = 0;
    if (order) {
        Cblacs_get(-1, BLACS_SYSTEM, &context);
        Cblacs_gridinit(&context, me == 0 ? "x" : "r", 2, 2);
        Cblacs_gridinfo(context, &others, &others, &row, &col);
        if (row != me / 2 || col != me % 2) printf("FAIL not in the order of rows\n");
        return 1;
    }
    if (!routine || (strncmp(name, "uplo-", 5) != 0 && strncmp(name, "diag-", 5) != 0)) return 0;
    routine++;
    receiver = strcmp(routine, "trrv2d") == 0 || strcmp(routine, "trbr2d") == 0;
    broadcast = strncmp(routine, "trb", 3) == 0;
    (name[0] == 'u' ? uplo : diag)[receiver] = "x";
    if (me == sender && broadcast) Cdtrbs2d(grid, "a", " ", uplo[0], diag[0], 3, 2, a, 3);
    if (me == sender && !broadcast)
        for (int to = 1; to < 4; to++) Cdtrsd2d(grid, uplo[0], diag[0], 3, 2, a, 3, to / 2, to % 2);
    if (me != sender && broadcast)
        Cdtrbr2d(grid, "a", " ", uplo[1], diag[1], 3, 2, got, 3, 0, 0);
    if (me != sender && !broadcast) Cdtrrv2d(grid, uplo[1], diag[1], 3, 2, got, 3, 0, 0);
    for (int k = 0; me != sender && k < 6; k++)
        if (got[k] != (k == 3 ? -1 : a[k])) printf("FAIL element %d is %g\n", k, got[k]);
    return 1;
}

/* Sender and receiver disagree about the number of elements. */
static int mistaken_shape(const char *name) {
    double a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    int longer = strcmp(name, "message-longer") == 0;
    if (!longer && strcmp(name, "message-shorter") != 0) return 0;
    int sent = longer ? 3 : 2, got = longer ? 2 : 3;
    if (me == 1) Cdgesd2d(grid, sent, sent, a, sent, 0, 0);
    if (me == 0) Cdgerv2d(grid, got, got, a, got, 0, 1);
    return 1;
}

static int mistaken_grid(const char *name) {
    static const struct {
        const char *name;
        int rows, cols;
    } table[] = {{"grid-large", 5, 1}, {"grid-no-rows", 0, 2}, {"grid-no-columns", 2, 0},
                 {"grid-negative", -1, 2}, {"grid-negative-both", -1, -2}};
    static const struct {
        const char *name;
        blacs_int map[6];
        int rows;
    } maps[] = {{"map-large", {0, 1, 2, 3, 0, 1}, 6}, {"map-outside", {0, 1, 9, 2}, 4},
                {"map-negative", {0, -1, 1, 2}, 4}, {"map-twice", {0, 1, 1, 2}, 4},
                {"map-empty", {0}, 0}};
    blacs_int context, map[6];
    Cblacs_get(-1, BLACS_SYSTEM, &context);
    for (int k = 0; k < 5; k++) {
        if (strcmp(name, table[k].name) == 0) {
            Cblacs_gridinit(&context, "r", table[k].rows, table[k].cols);
            return 1;
        }
        if (strcmp(name, maps[k].name) == 0) {
            memcpy(map, maps[k].map, sizeof map);
            Cblacs_gridmap(&context, map, 6, maps[k].rows, 1);
            return 1;
        }
    }
    return 0;
}

/* A leading dimension of RA and CA below m: nothing may be written beyond ldia * n. */
static int mistaken_places(const char *name) {
    double a[6] = {1, 2, 3, 4, 5, 6};
    blacs_int ra[12], ca[12];
    if (strcmp(name, "places-small") != 0) return 0;
    for (int k = 0; k < 12; k++) ra[k] = ca[k] = -55;
    Cdgamx2d(grid, "a", " ", 3, 2, a, 3, ra, ca, 2, -1, -1);
    for (int k = 4; k < 12; k++)
        if (ra[k] != -55 || ca[k] != -55) {
            printf("FAIL place %d beyond ldia * n was written\n", k);
            break;
        }
    return 1;
}

/* Process 2 gives up while the others receive, stand at a barrier, or are busy elsewhere. */
static int giving_up(const char *name) {
    struct timespec busy = {60, 0};
    blacs_int value;
    if (strncmp(name, "abort-", 6) != 0) return 0;
    if (me == 2) {
        struct timespec moment = {0, 200000000};
        nanosleep(&moment, NULL);
        Cblacs_abort(grid, 7);
    } else if (strcmp(name, "abort-receive") == 0) Cigerv2d(grid, 1, 1, &value, 1, 1, 0);
    else if (strcmp(name, "abort-barrier") == 0) Cblacs_barrier(grid, "a");
    else if (strcmp(name, "abort-sum") == 0) Cigsum2d(grid, "a", "1", 1, 1, &value, 1, -1, -1);
    else if (strcmp(name, "abort-busy") == 0) nanosleep(&busy, NULL);
    else return 0;
    return 1;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    blacs_int processes, token = 0;
    int known = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int k = 0; k < 36; k++) a[k] = k < 6 ? k + 1 : -55;
    atexit(look_behind);
    Cblacs_pinfo(&me, &processes);
    if (processes != 4) {
        if (me == 0) fprintf(stderr, "run this with 4 processes\n");
        Cblacs_exit(0);
        return 2;
    }
    Cblacs_get(-1, BLACS_SYSTEM, &waiting);
    Cblacs_gridinit(&waiting, "r", 1, 4);
    Cblacs_get(-1, BLACS_SYSTEM, &grid);
    Cblacs_gridinit(&grid, "r", 2, 2);
    Cblacs_get(-1, BLACS_SYSTEM, &exited);
    Cblacs_gridinit(&exited, "r", 2, 2);
    Cblacs_gridexit(exited);

    if (!mistaken_grid(name) && !mistaken_places(name) && !mistaken_shape(name) &&
        !mistaken_letter(name) && !giving_up(name) && me == 0)
        known = mistaken_argument(name) || mistaken_setting(name);
    if (me != 0) Cigerv2d(waiting, 1, 1, &token, 1, 0, 0);
    if (me == 0) printf(known ? "survived\n" : "no such mistake\n");
    for (int to = 1; me == 0 && to < 4; to++) Cigesd2d(waiting, 1, 1, &token, 1, 0, to);
    Cblacs_exit(0);
    return known ? 0 : 2;
}
