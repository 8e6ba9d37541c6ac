/* Grids, contexts, questions about them, and settings. */
#include <stdio.h>

#include "semantics.h"

static blacs_int whole_job(void) {
    blacs_int system;
    Cblacs_get(0, BLACS_SYSTEM, &system);
    return system;
}

/* Sends one integer around a ring of all processes of a grid: it must be usable. */
static void use(blacs_int context, int number, const char *name) {
    blacs_int rows, cols, row, col, sent, got = -1;
    Cblacs_gridinfo(context, &rows, &cols, &row, &col);
    if (row < 0) return;
    blacs_int me = row * cols + col, size = rows * cols;
    blacs_int next = (me + 1) % size, last = (me + size - 1) % size;
    sent = 1000 * number + me;
    Cigesd2d(context, 1, 1, &sent, 1, next / cols, next % cols);
    Cigerv2d(context, 1, 1, &got, 1, last / cols, last % cols);
    check(got == 1000 * number + last, name, "a message around grid %d brought %d", number,
          (int)got);
}

/* Where the four processes of the job stand; `at` gives the process number at (row, col). */
static void standing(blacs_int context, int rows, int cols, const int *at, const char *name) {
    blacs_int me, processes, is[4];
    int row = -1, col = -1;
    Cblacs_pinfo(&me, &processes);
    Cblacs_gridinfo(context, &is[0], &is[1], &is[2], &is[3]);
    for (int k = 0; k < rows * cols; k++)
        if (at[k] == me) row = k / cols, col = k % cols;
    if (row < 0)
        check(context == -1 && is[0] == -1 && is[1] == -1 && is[2] == -1 && is[3] == -1, name,
              "process %d is no member, yet has context %d", (int)me, (int)context);
    else
        check(context >= 0 && is[0] == rows && is[1] == cols && is[2] == row && is[3] == col, name,
              "process %d stands at (%d,%d) of %dx%d, expected (%d,%d) of %dx%d", (int)me,
              (int)is[2], (int)is[3], (int)is[0], (int)is[1], row, col, rows, cols);
    use(context, 7, name);
}

void grid_orders(void) {
    static const struct {
        const char *order;
        int at[4];
    } orders[] = {{"r", {0, 1, 2, 3}},   {"Row-major", {0, 1, 2, 3}}, {"c", {0, 2, 1, 3}},
                  {"Col", {0, 2, 1, 3}}, {"x", {0, 1, 2, 3}},         {" ", {0, 1, 2, 3}}};
    for (unsigned k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        blacs_int context = whole_job();
        describe("order '%s'", orders[k].order);
        Cblacs_gridinit(&context, orders[k].order, 2, 2);
        standing(context, 2, 2, orders[k].at, "grid_orders");
        Cblacs_gridexit(context);
    }
}

void grid_maps(void) {
    /* By columns with five to a column, of which two are meant. */
    blacs_int map[10] = {3, 0, 99, 99, 99, 1, 2, 99, 99, 99}, three[3] = {2, 0, 1};
    static const int at[4] = {3, 1, 0, 2}, at_three[3] = {2, 0, 1};
    blacs_int context = whole_job();
    describe("2x2, ldumap 5");
    Cblacs_gridmap(&context, map, 5, 2, 2);
    standing(context, 2, 2, at, "grid_maps");
    Cblacs_gridexit(context);
    context = whole_job();
    describe("1x3, ldumap 1");
    Cblacs_gridmap(&context, three, 1, 1, 3);
    standing(context, 1, 3, at_three, "grid_maps");
    if (context >= 0) Cblacs_gridexit(context);
}

/* A map counts the processes of the context it is given: those of a grid, row by row. */
void grid_of_grid(void) {
    blacs_int map[3] = {2, 0, 3}, relative[2] = {2, 1}, outer = whole_job(), inner;
    static const int at[2] = {3, 0};
    describe("2x1 within a 3x1 grid of processes 2, 0, 3");
    Cblacs_gridmap(&outer, map, 3, 3, 1);
    if (outer < 0) return;
    Cblacs_get(outer, BLACS_SYSTEM_OF_GRID, &inner);
    Cblacs_gridmap(&inner, relative, 2, 2, 1);
    standing(inner, 2, 1, at, "grid_of_grid");
    use(outer, 8, "grid_of_grid");
    if (inner >= 0) Cblacs_gridexit(inner);
    Cblacs_gridexit(outer);
}

/* The same pair of processes talks in three contexts; messages are taken in the reverse order. */
void grids_overlap(void) {
    blacs_int whole = whole_job(), tall = whole_job(), rows[2], me, processes, got, sent;
    Cblacs_pinfo(&me, &processes);
    Cblacs_gridinit(&whole, "r", 2, 2);
    Cblacs_gridinit(&tall, "r", 4, 1);
    for (int k = 0; k < 2; k++) {
        blacs_int map[2] = {2 * k, 2 * k + 1};
        rows[k] = whole_job();
        Cblacs_gridmap(&rows[k], map, 1, 1, 2);
    }
    blacs_int peer = me ^ 1, mine = rows[me / 2];
    check(mine >= 0 && rows[1 - me / 2] == -1, "grids_overlap", "contexts of rows are %d and %d",
          (int)rows[0], (int)rows[1]);
    for (int round = 0; round < 20; round++) {
        sent = 100 * round + me;
        Cigesd2d(whole, 1, 1, &sent, 1, peer / 2, peer % 2);
        sent += 10;
        Cigesd2d(tall, 1, 1, &sent, 1, peer, 0);
        sent += 10;
        Cigesd2d(mine, 1, 1, &sent, 1, 0, peer % 2);
    }
    for (int round = 0; round < 20; round++) {
        describe("round %d", round);
        Cigerv2d(mine, 1, 1, &got, 1, 0, peer % 2);
        check(got == 100 * round + 20 + peer, "grids_overlap", "row grid brought %d", (int)got);
        got = me % 2 == 0 ? me * 1000 + round : -1;
        if (me % 2 == 0) Cigebs2d(whole, "r", "i", 1, 1, &got, 1);
        else Cigebr2d(whole, "r", "i", 1, 1, &got, 1, me / 2, 0);
        check(got == me / 2 * 2000 + round, "grids_overlap", "broadcast brought %d", (int)got);
    }
    for (int round = 0; round < 20; round++) {
        describe("round %d", round);
        Cigerv2d(tall, 1, 1, &got, 1, peer, 0);
        check(got == 100 * round + 10 + peer, "grids_overlap", "4x1 grid brought %d", (int)got);
        got = me;
        Cigsum2d(mine, "a", " ", 1, 1, &got, 1, -1, -1);
        check(got == (me / 2) * 4 + 1, "grids_overlap", "sum of row grid is %d", (int)got);
    }
    for (int round = 0; round < 20; round++) {
        describe("round %d", round);
        Cigerv2d(whole, 1, 1, &got, 1, peer / 2, peer % 2);
        check(got == 100 * round + peer, "grids_overlap", "2x2 grid brought %d", (int)got);
    }
    Cblacs_gridexit(mine);
    Cblacs_gridexit(tall);
    Cblacs_gridexit(whole);
}

/* Two grids made at once by processes that name only themselves. */
void grids_disjoint(void) {
    blacs_int context = whole_job(), me, processes;
    Cblacs_pinfo(&me, &processes);
    blacs_int map[2] = {me % 2, me % 2 + 2};
    int at[2] = {(int)me % 2, (int)me % 2 + 2};
    describe("processes %d and %d", at[0], at[1]);
    Cblacs_gridmap(&context, map, 1, 1, 2);
    standing(context, 1, 2, at, "grids_disjoint");
    Cblacs_gridexit(context);
}

void grid_questions(void) {
    static const int off[][2] = {{-1, 0}, {0, -1}, {2, 0}, {0, 2}, {5, 5}};
    blacs_int row, col, is[4] = {0, 0, 0, 0}, me[2], processes[2];
    for (const char *order = "rc"; *order != '\0'; order++) {
        blacs_int context = whole_job();
        describe("order '%c'", *order);
        Cblacs_gridinit(&context, order, 2, 2);
        for (int k = 0; k < 4; k++) {
            blacs_int number = Cblacs_pnum(context, k / 2, k % 2);
            Cblacs_pcoord(context, number, &row, &col);
            check(number >= 0 && number < 4 && row == k / 2 && col == k % 2, "grid_questions",
                  "(%d,%d) is process %d, which is at (%d,%d)", k / 2, k % 2, (int)number,
                  (int)row, (int)col);
            check(*order == 'c' || number == k, "grid_questions", "(%d,%d) is process %d", k / 2,
                  k % 2, (int)number);
        }
        for (int k = 0; k < 5; k++)
            check(Cblacs_pnum(context, off[k][0], off[k][1]) == -1, "grid_questions",
                  "(%d,%d) is off the grid, yet has a number", off[k][0], off[k][1]);
        for (int k = -1; k <= 4; k += 5) {
            row = col = 99;
            Cblacs_pcoord(context, k, &row, &col);
            check(row == -1 && col == -1, "grid_questions", "process %d is at (%d,%d)", k,
                  (int)row, (int)col);
        }
        Cblacs_gridexit(context);
        Cblacs_gridinfo(context, &is[0], &is[1], &is[2], &is[3]);
        check(is[0] == -1 && is[1] == -1 && is[2] == -1 && is[3] == -1, "grid_questions",
              "an exited context still has a grid %dx%d", (int)is[0], (int)is[1]);
    }
    Cblacs_pinfo(&me[0], &processes[0]);
    Cblacs_setup(&me[1], &processes[1]);
    check(me[0] == me[1] && processes[0] == 4 && processes[1] == 4, "grid_questions",
          "setup says %d of %d", (int)me[1], (int)processes[1]);
}

void contexts_reused(void) {
    blacs_int context[3], many[40], again, first;
    for (int k = 0; k < 3; k++) {
        context[k] = whole_job();
        Cblacs_gridinit(&context[k], "r", 2, 2);
    }
    describe("three grids");
    check(context[0] == 0 && context[1] == 1 && context[2] == 2, "contexts_reused",
          "contexts are %d %d %d", (int)context[0], (int)context[1], (int)context[2]);
    Cblacs_gridexit(context[1]);
    for (int k = 0; k < 200; k++) {
        describe("grid %d after an exit", k);
        again = whole_job();
        Cblacs_gridinit(&again, "c", 2, 2);
        check(again == context[1], "contexts_reused", "context is %d", (int)again);
        use(again, k, "contexts_reused");
        Cblacs_gridexit(again);
    }
    use(context[0], 1, "contexts_reused");
    use(context[2], 2, "contexts_reused");
    Cblacs_gridexit(context[2]);
    Cblacs_gridexit(context[0]);
    describe("forty grids at once");
    for (int k = 0; k < 40; k++) {
        many[k] = whole_job();
        Cblacs_gridinit(&many[k], k % 2 == 0 ? "r" : "c", k % 3 == 0 ? 4 : 2, k % 3 == 0 ? 1 : 2);
        check(many[k] == k, "contexts_reused", "context %d is %d", k, (int)many[k]);
    }
    for (int k = 0; k < 40; k++) use(many[(k * 7) % 40], k, "contexts_reused");
    for (int k = 0; k < 40; k++) Cblacs_gridexit(many[(k * 3) % 40]);
    first = whole_job();
    Cblacs_gridinit(&first, "r", 4, 1);
    check(first == 0, "contexts_reused", "context is %d", (int)first);
    Cblacs_gridexit(first);
}

void settings(void) {
    static const struct {
        int what, initial, first, second;
    } table[] = {{BLACS_RINGS_BS, 1, 3, -2},  {BLACS_BRANCHES_BS, 1, 4, 2},
                 {BLACS_RINGS_CO, 1, -1, 2},  {BLACS_BRANCHES_CO, 1, 2, 5},
                 {BLACS_REPEATABLE, 0, 1, 0}, {BLACS_COHERENT, 0, 1, 0}};
    blacs_int value[2], context = whole_job(), other = whole_job();
    Cblacs_gridinit(&context, "r", 2, 2);
    Cblacs_gridinit(&other, "r", 2, 2);
    for (unsigned k = 0; k < sizeof table / sizeof table[0]; k++) {
        describe("what %d", table[k].what);
        Cblacs_get(context, table[k].what, value);
        check(value[0] == table[k].initial, "settings", "starts as %d", (int)value[0]);
        for (int turn = 0; turn < 2; turn++) {
            blacs_int set = turn == 0 ? table[k].first : table[k].second;
            value[0] = set;
            Cblacs_set(context, table[k].what, value);
            value[0] = 77;
            Cblacs_get(context, table[k].what, value);
            check(value[0] == set, "settings", "was set to %d, is %d", (int)set, (int)value[0]);
        }
        Cblacs_get(other, table[k].what, value);
        check(value[0] == table[k].initial, "settings", "of another grid is %d", (int)value[0]);
    }
    value[0] = value[1] = -1;
    Cblacs_get(-1, BLACS_MESSAGE_IDS, value);
    check(value[0] >= 0 && value[1] > value[0], "settings", "message ids %d to %d", (int)value[0],
          (int)value[1]);
    value[0] = -1;
    Cblacs_get(-1, BLACS_DEBUG_LEVEL, value);
    check(value[0] >= 0, "settings", "debug level is %d", (int)value[0]);
    check(whole_job() >= 0, "settings", "system context is %d", (int)whole_job());
    Cblacs_gridexit(context);
    Cblacs_gridexit(other);
}

/* Leaving with a non-zero argument frees the grids and keeps the message system. */
void exit_and_go_on(void) {
    blacs_int context = whole_job(), me, processes, before, is[4];
    Cblacs_pinfo(&before, &processes);
    for (int turn = 0; turn < 3; turn++) {
        describe("turn %d", turn);
        Cblacs_gridinit(&context, "r", 2, 2);
        use(context, turn, "exit_and_go_on");
        Cblacs_exit(1);
        Cblacs_pinfo(&me, &processes);
        check(me == before && processes == 4, "exit_and_go_on", "process %d of %d is now %d of 4",
              (int)me, (int)processes, (int)before);
        Cblacs_gridinfo(context, &is[0], &is[1], &is[2], &is[3]);
        check(is[0] == -1 && is[3] == -1, "exit_and_go_on", "a grid outlived the exit");
        context = whole_job();
    }
}
