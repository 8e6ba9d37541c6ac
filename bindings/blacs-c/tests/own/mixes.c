/*
 * The mixes of the BLACS tester that are hard on a library: receivers that come late, roots and
 * senders that meanwhile wait outside of it, several scopes and topologies, grids of all sizes.
 *
 *   mixes CASE ROUNDS SEED FIFO
 *
 *   few      FEW broadcasts in a scope to late receivers; the root waits outside
 *   many     the same with MANY
 *   points   MANY messages between two processes; the sender waits outside
 *   combines all but the destination wait outside
 *   random   calls by a generator, with delays; the same calls at all processes
 *
 * The processes wait outside at the FIFO, which the test has made. Prints "mixes: well".
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blacs_fmpl.h"

enum { FEW = 12, MANY = 50, LARGEST = 4000 };

static blacs_int me, all;
static int fifo;

/* The shared generator: the same numbers at all processes. Own delays have one of their own. */
static uint64_t shared, own;

static unsigned draw(uint64_t *state, unsigned below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

static void fail(const char *what, long key, double have, double want) {
    fprintf(stderr, "FAIL process %d: %s %ld is %g, not %g\n", (int)me, what, key, have, want);
    exit(3);
}

/* Sleeps up to so many milliseconds. */
static void dally(unsigned most) {
    struct timespec moment = {0, 1000000L * draw(&own, most + 1)};
    nanosleep(&moment, NULL);
}

/* Tells processes that wait outside, and waits until `count` others have told. */
static void tell(int count) {
    char bytes[64] = {0};
    if (write(fifo, bytes, (size_t)count) != count) exit(4);
}

static void wait_outside(int count) {
    char byte;
    while (count-- > 0)
        if (read(fifo, &byte, 1) != 1) exit(4);
}

struct grid {
    blacs_int context, rows, cols, row, col;
};

/* The grids of a round, smaller and larger: rows and columns of the k-th. */
static int grid_of(struct grid *g, int k) {
    const int rows[] = {1, 1, 2, 2, 4, 1, 2, 8}, cols[] = {2, 4, 2, 1, 1, 8, 4, 1};
    int r = rows[k % 8], c = cols[k % 8];
    if (r * c > all) r = 1, c = all;
    Cblacs_get(-1, BLACS_SYSTEM, &g->context);
    Cblacs_gridinit(&g->context, k % 2 ? "c" : "r", r, c);
    Cblacs_gridinfo(g->context, &g->rows, &g->cols, &g->row, &g->col);
    return g->context >= 0;
}

static double value(long key, long index) { return (double)(key * 7 + index % 1000); }

static void fill(double *a, int count, long key) {
    for (int k = 0; k < count; k++) a[k] = value(key, k);
}

static void expect(const char *what, const double *a, int count, long key) {
    for (int k = 0; k < count; k++)
        if (a[k] != value(key, k)) fail(what, key, a[k], value(key, k));
}

/* One of all topologies. */
static const char *topology(unsigned number) {
    static const char *const all_of_them[] = {" ", "i", "d", "s", "m", "1", "2", "3", "t", "f", "h"};
    return all_of_them[number % 11];
}

/* The root of a scope broadcasts `count` times and waits outside until the others have received. */
static void broadcasts(struct grid *g, char scope, int count, long key) {
    static double a[LARGEST];
    char letter[2] = {scope, '\0'};
    int size = scope == 'r' ? g->cols : scope == 'c' ? g->rows : g->rows * g->cols;
    int root = (scope == 'r' || g->row == 0) && (scope == 'c' || g->col == 0);
    int length = key % 3 == 0 ? LARGEST : key % 3 == 1 ? 1 : 300;
    int row = scope == 'r' ? g->row : 0, col = scope == 'c' ? g->col : 0;
    const char *top = topology((unsigned)shared + (unsigned)key);
    if (!root) dally(20);
    for (int k = 0; k < count; k++) {
        if (root) {
            fill(a, length, key + k);
            Cdgebs2d(g->context, letter, top, length, 1, a, length);
        } else {
            Cdgebr2d(g->context, letter, top, length, 1, a, length, row, col);
            expect("broadcast", a, length, key + k);
        }
    }
    /* The roots of all rows share the FIFO, and read as many bytes as the others write. */
    if (root) wait_outside(size - 1);
    else tell(1);
    Cblacs_barrier(g->context, "a");
}

static void case_broadcasts(int count, int rounds) {
    for (int round = 0; round < rounds; round++) {
        struct grid g;
        if (!grid_of(&g, round)) continue;
        for (int s = 0; s < 3; s++) broadcasts(&g, "rca"[s], count, 100L * round + s);
        Cblacs_gridexit(g.context);
    }
}

static void case_points(int rounds) {
    static double a[LARGEST];
    struct grid g;
    grid_of(&g, 1);
    for (int round = 0; round < rounds && g.context >= 0; round++) {
        long key = 1000L * round;
        int to = round % (g.rows * g.cols), from = (to + 1) % (g.rows * g.cols), mine = g.row * g.cols + g.col;
        if (mine == from) {
            for (int k = 0; k < MANY; k++) {
                fill(a, LARGEST, key + k);
                Cdgesd2d(g.context, LARGEST / 4, 4, a, LARGEST / 4, to / g.cols, to % g.cols);
            }
            wait_outside(1);
        }
        if (mine == to) {
            dally(20);
            for (int k = 0; k < MANY; k++) {
                Cdgerv2d(g.context, LARGEST / 4, 4, a, LARGEST / 4, from / g.cols, from % g.cols);
                expect("message", a, LARGEST, key + k);
            }
            tell(1);
        }
        Cblacs_barrier(g.context, "a");
    }
}

static void case_combines(int rounds) {
    for (int round = 0; round < rounds; round++) {
        struct grid g;
        double a[6], want = 0;
        if (!grid_of(&g, round)) continue;
        int size = g.rows * g.cols, mine = g.row * g.cols + g.col;
        for (int k = 0; k < FEW / 2; k++) {
            const char *top = topology((unsigned)(shared + round) + k);
            int to = k % size;
            if (mine == to) dally(20);
            for (int e = 0; e < 6; e++) a[e] = mine + k + e;
            Cdgsum2d(g.context, "a", top, 3, 2, a, 3, to / g.cols, to % g.cols);
            for (int e = 0; mine == to && e < 6; e++) {
                want = size * (size - 1) / 2.0 + (double)size * (k + e);
                if (a[e] != want) fail("sum", k, a[e], want);
            }
            if (mine == to) tell(size - 1);
            else wait_outside(1);
            Cblacs_barrier(g.context, "a");
        }
        Cblacs_gridexit(g.context);
    }
}

static void case_random(int rounds) {
    static double a[LARGEST];
    for (int round = 0; round < rounds; round++) {
        struct grid g;
        grid_of(&g, (int)draw(&shared, 8));
        for (int call = 0; call < 30; call++) {
            unsigned kind = draw(&shared, 5), top = draw(&shared, 11), scope = draw(&shared, 3);
            int length = 1 + (int)draw(&shared, 3) * (LARGEST - 1) / 2;
            unsigned chosen = draw(&shared, 64);
            if (g.context < 0) continue;
            char letter[2] = {"rca"[scope], '\0'};
            int size = scope == 0 ? g.cols : scope == 1 ? g.rows : g.rows * g.cols;
            int place = scope == 0 ? g.col : scope == 1 ? g.row : g.row * g.cols + g.col;
            int root = (int)chosen % size;
            int row = scope == 0 ? g.row : scope == 1 ? root : root / g.cols;
            int col = scope == 0 ? root : scope == 1 ? g.col : root % g.cols;
            long key = 100L * round + call;
            if (draw(&own, 4) == 0) dally(3);
            if (kind == 0) {
                int next = (place + 1) % size, last = (place + size - 1) % size;
                fill(a, length, key + place);
                Cdgesd2d(g.context, length, 1, a, length, scope == 0 ? g.row : scope == 1 ? next : next / g.cols,
                         scope == 0 ? next : scope == 1 ? g.col : next % g.cols);
                Cdgerv2d(g.context, length, 1, a, length, scope == 0 ? g.row : scope == 1 ? last : last / g.cols,
                         scope == 0 ? last : scope == 1 ? g.col : last % g.cols);
                expect("ring", a, length, key + last);
            } else if (kind == 1 || kind == 2) {
                fill(a, length, key);
                if (place == root) Cdgebs2d(g.context, letter, topology(top), length, 1, a, length);
                else {
                    a[0] = a[length - 1] = -1;
                    Cdgebr2d(g.context, letter, topology(top), length, 1, a, length, row, col);
                    expect("broadcast", a, length, key);
                }
            } else if (kind == 3) {
                for (int k = 0; k < length; k++) a[k] = place + k;
                Cdgsum2d(g.context, letter, topology(top), length, 1, a, length, -1, -1);
                for (int k = 0; k < length; k++)
                    if (a[k] != size * (size - 1) / 2.0 + (double)size * k) fail("sum", k, a[k], size * k);
            } else {
                Cblacs_barrier(g.context, letter);
            }
        }
        if (g.context >= 0) Cblacs_gridexit(g.context);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const char *name = argv[1];
    int rounds = atoi(argv[2]);
    shared = strtoull(argv[3], NULL, 10);
    /* Open for both, so that nobody waits for the others to open it. */
    fifo = open(argv[4], O_RDWR);
    if (fifo < 0) return 2;
    Cblacs_pinfo(&me, &all);
    own = shared + (uint64_t)me * 977;
    if (strcmp(name, "few") == 0) case_broadcasts(FEW, rounds);
    else if (strcmp(name, "many") == 0) case_broadcasts(MANY, rounds);
    else if (strcmp(name, "points") == 0) case_points(rounds);
    else if (strcmp(name, "combines") == 0) case_combines(rounds);
    else if (strcmp(name, "random") == 0) case_random(rounds);
    else return 2;
    Cblacs_exit(0);
    if (me == 0) printf("mixes: well\n");
    return 0;
}
