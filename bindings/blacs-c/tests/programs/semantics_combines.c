/* Barriers, bits of sums, rings and branches of topologies, clocks. */
#include <string.h>

#include "semantics.h"

enum { COUNT = 64 };

/* A scope's barrier holds back its members and nobody else. */
void barriers(void) {
    struct grid g;
    blacs_int token = 5;
    grid_open(&g, 9, "r", 2, 2);
    describe("row by row");
    if (g.row == 0) {
        for (int k = 0; k < 10; k++) Cblacs_barrier(g.context, "Row");
        Cigesd2d(g.context, 1, 1, &token, 1, 1, g.col);
    } else {
        Cigerv2d(g.context, 1, 1, &token, 1, 0, g.col);
        for (int k = 0; k < 7; k++) Cblacs_barrier(g.context, "r");
    }
    describe("column by column");
    if (g.col == 1) {
        for (int k = 0; k < 3; k++) Cblacs_barrier(g.context, "C");
        Cigesd2d(g.context, 1, 1, &token, 1, g.row, 0);
    } else {
        Cigerv2d(g.context, 1, 1, &token, 1, g.row, 1);
        for (int k = 0; k < 9; k++) Cblacs_barrier(g.context, "columns");
    }
    for (const char *scope = "rca"; *scope != '\0'; scope++) {
        int late = g.row == 0 && g.col == 0;
        int held = *scope == 'a' || (*scope == 'r' ? g.row == 0 : g.col == 0);
        describe("scope '%c', process (0,0) late by 0.3 s", *scope);
        double start = Cdwalltime00();
        Cblacs_barrier(g.context, "a"); /* so that the clock starts before the delay */
        if (late) sleep_for(0.3);
        /* Processes outside the scope leave their own barrier first: (0,0) waits for their word. */
        for (int k = 1; late && k < 4; k++)
            if (*scope != 'a' && (*scope == 'r' ? k / 2 : k % 2) != 0)
                Cigerv2d(g.context, 1, 1, &token, 1, k / 2, k % 2);
        Cblacs_barrier(g.context, scope);
        double taken = Cdwalltime00() - start;
        if (!held) Cigesd2d(g.context, 1, 1, &token, 1, 0, 0);
        check(!held || taken > 0.25, "barriers", "left after %.3f s", taken);
    }
    grid_close(&g);
}

/* Numbers whose sum depends on the order of additions, with 53 bits and many magnitudes. */
static void scattered(double *a, int process) {
    uint64_t x = 88172645463325252u + (uint64_t)process * 1099511628211u;
    for (int k = 0; k < COUNT; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double scale = (double)((uint64_t)1 << (x % 40));
        a[k] = ((double)(x >> 11) / 4503599627370496.0 - 1.0) * scale;
    }
}

/* The same sum again gives the same bits, though processes come in another order. */
void repeatable(void) {
    blacs_int on = 1;
    for (int rows = 1; rows <= 4; rows++) {
        struct grid g;
        if (rows == 3 ? !grid_open(&g, 9, "r", 3, 1) : !grid_open(&g, 9, "r", rows, 4 / rows))
            continue;
        Cblacs_set(g.context, BLACS_REPEATABLE, &on);
        for (const char *top = topologies; *top != '\0'; top++)
            for (int everyone = 0; everyone < 2; everyone++) {
                const char how[2] = {*top, '\0'};
                double first[COUNT], again[COUNT];
                int process = g.row * g.cols + g.col, dest = everyone ? -1 : 0;
                for (int turn = 0; turn < 4; turn++) {
                    double *a = turn == 0 ? first : again;
                    scattered(a, process);
                    if (turn == 1 + process) sleep_for(0.001);
                    Cdgsum2d(g.context, "a", how, 8, 8, a, 8, dest, dest);
                    describe("top '%s' rdest %d turn %d", how, dest, turn);
                    if (turn > 0 && (everyone || process == 0))
                        check(memcmp(first, again, sizeof first) == 0, "repeatable",
                              "bits differ from the first call");
                }
            }
        grid_close(&g);
    }
}

/* All processes get the same bits. */
void coherent(void) {
    blacs_int on = 1;
    for (int rows = 1; rows <= 4; rows++) {
        struct grid g;
        if (rows == 3 ? !grid_open(&g, 9, "r", 3, 1) : !grid_open(&g, 9, "r", rows, 4 / rows))
            continue;
        Cblacs_set(g.context, BLACS_COHERENT, &on);
        for (const char *top = topologies; *top != '\0'; top++) {
            const char how[2] = {*top, '\0'};
            double mine[COUNT], other[COUNT];
            int process = g.row * g.cols + g.col;
            scattered(mine, process);
            Cdgsum2d(g.context, "a", how, 8, 8, mine, 8, -1, -1);
            if (process != 0) Cdgesd2d(g.context, 8, 8, mine, 8, 0, 0);
            for (int from = 1; process == 0 && from < g.rows * g.cols; from++) {
                Cdgerv2d(g.context, 8, 8, other, 8, from / g.cols, from % g.cols);
                describe("top '%s'", how);
                check(memcmp(mine, other, sizeof mine) == 0, "coherent",
                      "process %d has other bits than process 0", from);
            }
        }
        grid_close(&g);
    }
}

/* Topologies 'm' and 't' deliver whatever number of rings and branches was set. */
void rings_and_branches(void) {
    static const int counts[] = {1, 2, 3, 4, 9, -1, -2, -3, -7};
    struct grid g;
    grid_open(&g, 9, "r", 1, 4);
    for (int k = 0; k < 9; k++) {
        blacs_int rings = counts[k], branches = rings < 0 ? -rings : rings;
        Cblacs_set(g.context, BLACS_RINGS_BS, &rings);
        Cblacs_set(g.context, BLACS_BRANCHES_BS, &branches);
        Cblacs_set(g.context, BLACS_RINGS_CO, &rings);
        Cblacs_set(g.context, BLACS_BRANCHES_CO, &branches);
        for (int root = 0; root < 4; root++)
            for (const char *top = "mt"; *top != '\0'; top++) {
                blacs_int value = g.col == root ? 100 * root + k : -1;
                blacs_int sum = 1 << (8 * (g.col % 4)), all = g.col + 1;
                if (g.col == root) Cigebs2d(g.context, "a", top, 1, 1, &value, 1);
                else Cigebr2d(g.context, "a", top, 1, 1, &value, 1, 0, root);
                Cigsum2d(g.context, "a", top, 1, 1, &sum, 1, 0, root);
                Cigsum2d(g.context, "a", top, 1, 1, &all, 1, -1, -1);
                describe("rings %d branches %d top '%c' root %d", (int)rings, (int)branches, *top,
                         root);
                check(value == 100 * root + k, "rings_and_branches", "broadcast brought %d",
                      (int)value);
                check(all == 10, "rings_and_branches", "sum to all is %d", (int)all);
                if (g.col == root)
                    check(sum == 0x01010101, "rings_and_branches", "sum is %x", (unsigned)sum);
            }
    }
    grid_close(&g);
}

void clocks(void) {
    double wall = Cdwalltime00(), cpu = Cdcputime00();
    describe("over 0.1 s of sleep");
    sleep_for(0.1);
    wall = Cdwalltime00() - wall;
    check(wall > 0.09 && wall < 5.0, "clocks", "wall clock went %f s", wall);
    /* A library without a clock for processor time says -1. */
    check(cpu == -1.0 || (cpu >= 0.0 && Cdcputime00() >= cpu), "clocks", "processor time was %f s",
          cpu);
}
