/* Order and buffering of messages, progress of a sender that computes, and shapes. */
#include <stdio.h>
#include <stdlib.h>

#include "calls.h"
#include "semantics.h"

enum { BIG = 25000 }; /* doubles: 200 KB */

static void open_row(struct grid *g) {
    grid_open(g, 9, "r", 1, 4);
}

static double *numbers(int count) {
    double *a = malloc((size_t)count * sizeof *a);
    if (a == NULL) exit(2);
    return a;
}

static void fill(double *a, int count, double first) {
    for (int k = 0; k < count; k++) a[k] = first + k;
}

static int holds(const double *a, int count, double first) {
    for (int k = 0; k < count; k++)
        if (a[k] != first + k) return 0;
    return 1;
}

/* Some of the messages are empty: each of them is still a message. */
static int length_of(int k) {
    return k % 7 == 3 ? 0 : k % 5 == 0 ? 700 : 1 + k % 3;
}

void first_in_first_out(void) {
    struct grid g;
    double a[700];
    open_row(&g);
    for (int k = 0; k < 100; k++)
        for (int to = 0; to < 4; to++) {
            fill(a, length_of(k), 1e6 * g.col + 1e3 * k + to);
            Cdgesd2d(g.context, length_of(k), 1, a, 700, 0, to);
        }
    for (int from = 3; from >= 0; from--)
        for (int k = 0; k < 100; k++) {
            describe("message %d from %d", k, from);
            Cdgerv2d(g.context, length_of(k), 1, a, 700, 0, from);
            check(holds(a, length_of(k), 1e6 * from + 1e3 * k + g.col), "first_in_first_out",
                  "another message came");
        }
    grid_close(&g);
}

/* Three big messages to either neighbour of a ring before anybody receives. */
void big_sends_first(void) {
    struct grid g;
    double *a = numbers(BIG);
    open_row(&g);
    int neighbours[2] = {(g.col + 1) % 4, (g.col + 3) % 4};
    for (int k = 0; k < 3; k++)
        for (int way = 0; way < 2; way++) {
            fill(a, BIG, 1e7 * g.col + 1e6 * k + 1e5 * way);
            Cdgesd2d(g.context, BIG / 100, 100, a, BIG / 100, 0, neighbours[way]);
        }
    for (int k = 0; k < 3; k++)
        for (int way = 0; way < 2; way++) {
            int from = neighbours[1 - way];
            describe("message %d from %d", k, from);
            Cdgerv2d(g.context, BIG / 100, 100, a, BIG / 100, 0, from);
            check(holds(a, BIG, 1e7 * from + 1e6 * k + 1e5 * way), "big_sends_first",
                  "another message came");
        }
    grid_close(&g);
    free(a);
}

void small_sends_first(void) {
    struct grid g;
    blacs_int sent, got;
    open_row(&g);
    for (int k = 0; k < 100; k++)
        for (int to = 0; to < 4; to++) {
            sent = 10000 * g.col + 100 * to + k;
            Cigesd2d(g.context, 1, 1, &sent, 1, 0, to);
        }
    Cblacs_barrier(g.context, "All");
    for (int k = 0; k < 100; k++)
        for (int from = 0; from < 4; from++) {
            describe("message %d from %d", k, from);
            Cigerv2d(g.context, 1, 1, &got, 1, 0, from);
            check(got == 10000 * from + 100 * g.col + k, "small_sends_first", "%d came", (int)got);
        }
    grid_close(&g);
}

void sends_to_itself(void) {
    struct grid g;
    double *a = numbers(BIG);
    open_row(&g);
    for (int k = 0; k < 5; k++) {
        fill(a, BIG, k * 1e6 + g.col);
        Cdgesd2d(g.context, k % 2 == 0 ? BIG : 3, 1, a, BIG, 0, g.col);
    }
    for (int k = 0; k < 5; k++) {
        describe("message %d", k);
        fill(a, BIG, 0.5);
        Cdgerv2d(g.context, k % 2 == 0 ? BIG : 3, 1, a, BIG, 0, g.col);
        check(holds(a, k % 2 == 0 ? BIG : 3, k * 1e6 + g.col), "sends_to_itself",
              "another message came");
    }
    grid_close(&g);
    free(a);
}

/* Sender and receiver agree on the number of elements; where these lie is each one's own affair. */
void other_shapes(void) {
    static const struct shape forms[] = {{3, 4}, {4, 3}, {12, 1}, {1, 12}, {2, 6}, {6, 2}};
    struct grid g;
    open_row(&g);
    for (int s = 0; s < 36; s++) {
        struct shape sent = forms[s / 6], got = forms[s % 6];
        struct matrix a, b, want;
        int from = (g.col + 3) % 4;
        describe("sent as %dx%d", sent.rows, sent.cols);
        matrix_open(&a, 'd', sent.rows, sent.cols, sent.rows + s % 4);
        matrix_open(&b, 'd', got.rows, got.cols, got.rows + s % 3);
        matrix_fill(&a, &g, s, g.row, g.col, 1000);
        want = matrix_copy(&b);
        for (int k = 0; k < 12; k++)
            matrix_put(&want, k % got.rows, k / got.rows,
                       value_of(&g, s, 0, from, k % sent.rows, k / sent.rows, 1000));
        gesd2d('d', g.context, sent.rows, sent.cols, a.first, a.lda, 0, (g.col + 1) % 4);
        gerv2d('d', g.context, got.rows, got.cols, b.first, b.lda, 0, from);
        check_matrix('d', "shapes", "A", &b, &want);
        matrix_close(&a);
        matrix_close(&b);
        matrix_close(&want);
    }
    grid_close(&g);
}

/* Any uplo but 'u' is lower, any diag but 'u' is not unit. */
void unknown_letters(void) {
    struct grid g;
    struct matrix a, want;
    open_row(&g);
    int from = (g.col + 3) % 4;
    matrix_open(&a, 'd', 4, 6, 5);
    matrix_fill(&a, &g, 1, g.row, g.col, 1000);
    want = matrix_copy(&a);
    for (int j = 0; j < 6; j++)
        for (int i = 0; i < 4; i++)
            if (inside('l', 'n', 4, 6, i, j))
                matrix_put(&want, i, j, value_of(&g, 1, 0, from, i, j, 1000));
    describe("uplo 'x' diag '-'");
    trsd2d('d', g.context, "x", "-", 4, 6, a.first, 5, 0, (g.col + 1) % 4);
    trrv2d('d', g.context, "l", "n", 4, 6, a.first, 5, 0, from);
    check_matrix('d', "letters", "A", &a, &want);
    matrix_close(&a);
    matrix_close(&want);
    grid_close(&g);
}

/* Messages between two processes and those of each scope do not wait for one another. */
void spaces_apart(void) {
    struct grid g;
    grid_open(&g, 9, "r", 2, 2);
    for (const char *top = " if1sh"; *top != '\0'; top++) {
        blacs_int sent[4] = {101, 202, 303, 404}, got[4] = {0, 0, 0, 0};
        const char how[2] = {*top, '\0'};
        int root = g.row == 0 && g.col == 0;
        describe("top '%s'", how);
        for (int to = 1; root && to < 4; to++) Cigesd2d(g.context, 1, 1, sent, 1, to / 2, to % 2);
        if (root) Cigebs2d(g.context, "all", how, 1, 1, &sent[1], 1);
        else Cigebr2d(g.context, "all", how, 1, 1, &got[1], 1, 0, 0);
        if (root) Cigebs2d(g.context, "row", how, 1, 1, &sent[2], 1);
        else if (g.row == 0) Cigebr2d(g.context, "row", how, 1, 1, &got[2], 1, 0, 0);
        if (root) Cigebs2d(g.context, "col", how, 1, 1, &sent[3], 1);
        else if (g.col == 0) Cigebr2d(g.context, "col", how, 1, 1, &got[3], 1, 0, 0);
        if (root) continue;
        Cigerv2d(g.context, 1, 1, got, 1, 0, 0);
        check(got[0] == 101 && got[1] == 202, "spaces_apart", "%d and %d came", (int)got[0],
              (int)got[1]);
        check(got[2] == (g.row == 0 ? 303 : 0) && got[3] == (g.col == 0 ? 404 : 0), "spaces_apart",
              "%d and %d came", (int)got[2], (int)got[3]);
    }
    grid_close(&g);
}

/*
 * Process 1 gets 40 messages while their sender does something else for a second, having begun to
 * receive at once or only when the sender is busy.
 */
static void forty(const struct grid *g, int count, int late, const char *name) {
    double *a = numbers(count), start;
    describe("40 messages of %d bytes, %s", 8 * count, late ? "received late" : "received at once");
    Cblacs_barrier(g->context, "a");
    if (g->col == 1 && late) sleep_for(0.3);
    start = Cdwalltime00();
    for (int k = 0; k < 40; k++) {
        fill(a, count, 1e6 * k);
        if (g->col == 0) Cdgesd2d(g->context, count, 1, a, count, 0, 1);
        if (g->col == 0) fill(a, count, 0.5);
        if (g->col == 1) Cdgerv2d(g->context, count, 1, a, count, 0, 0);
        if (g->col == 1) check(holds(a, count, 1e6 * k), name, "message %d is another one", k);
    }
    double taken = Cdwalltime00() - start;
    if (g->col == 0) sleep_for(1);
    if (g->col == 1) check(taken < 0.5, name, "all were there after %.3f s only", taken);
    if (g->col == 1) printf("TIME %s %s %.6f s\n", name, late ? "late" : "at once", taken);
    Cblacs_barrier(g->context, "a");
    free(a);
}

void sender_computes(void) {
    struct grid g;
    open_row(&g);
    for (int late = 0; late < 2; late++) {
        forty(&g, 1, late, "sender_computes-8");
        forty(&g, BIG, late, "sender_computes-200K");
    }
    grid_close(&g);
}

/* Everyone has a broadcast at once though root and relays do something else when they have it. */
void broadcaster_computes(void) {
    struct grid g;
    double *a = numbers(BIG);
    open_row(&g);
    for (const char *top = " i"; *top != '\0'; top++) {
        const char how[2] = {*top, '\0'};
        describe("top '%s'", how);
        Cblacs_barrier(g.context, "a");
        double start = Cdwalltime00();
        for (int count = 1; count <= BIG; count += BIG - 1) {
            fill(a, count, g.col == 0 ? count : 0.5);
            if (g.col == 0) Cdgebs2d(g.context, "a", how, count, 1, a, count);
            else Cdgebr2d(g.context, "a", how, count, 1, a, count, 0, 0);
            check(holds(a, count, count), "broadcaster_computes", "other data came");
        }
        double taken = Cdwalltime00() - start;
        sleep_for(0.8);
        check(taken < 0.5, "broadcaster_computes", "it was there after %.3f s only", taken);
    }
    grid_close(&g);
    free(a);
}

/*
 * A broadcast is no barrier: process 3 receives it only when the others have told it that they
 * have the data. A library in which they wait for process 3 hangs here.
 */
void nobody_waits_for_a_late_receiver(void) {
    struct grid g;
    open_row(&g);
    for (const char *top = "if1"; *top != '\0'; top++) {
        const char how[2] = {*top, '\0'};
        blacs_int value = g.col == 0 ? 31 : 0, token = 1;
        describe("top '%s'", how);
        for (int from = 0; g.col == 3 && from < 3; from++)
            Cigerv2d(g.context, 1, 1, &token, 1, 0, from);
        if (g.col == 0) Cigebs2d(g.context, "a", how, 1, 1, &value, 1);
        else Cigebr2d(g.context, "a", how, 1, 1, &value, 1, 0, 0);
        if (g.col < 3) Cigesd2d(g.context, 1, 1, &token, 1, 0, 3);
        check(value == 31, "late_receiver", "%d came", (int)value);
    }
    grid_close(&g);
}

/* Spare buffers may be given back at any time; what was sent still arrives. */
void free_buffers(void) {
    struct grid g;
    double *a = numbers(BIG);
    open_row(&g);
    Cblacs_freebuff(g.context, 0);
    for (int k = 0; k < 6; k++) {
        int count = k % 2 == 0 ? BIG : 1;
        describe("message %d", k);
        fill(a, count, 1e6 * k);
        if (g.col == 0) Cdgesd2d(g.context, count, 1, a, count, 0, 2);
        Cblacs_freebuff(g.context, k % 3 == 2);
        fill(a, count, 0.5);
        if (g.col == 2) Cdgerv2d(g.context, count, 1, a, count, 0, 0);
        if (g.col == 2) check(holds(a, count, 1e6 * k), "free_buffers", "another message came");
    }
    Cblacs_freebuff(g.context, 1);
    grid_close(&g);
    free(a);
}
