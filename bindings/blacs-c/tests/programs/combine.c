/* Combines: sums, and the largest and smallest magnitude with and without the place it came from. */
#include <stdlib.h>

#include "calls.h"
#include "check.h"

/* Few different values, so that magnitudes tie often and with either sign. */
enum { SUMMED = 50000, COMPARED = 3, GUARD_PLACE = -77 };

static long serial;

static long magnitude(struct number a) {
    return labs(a.re) + labs(a.im);
}

/*
 * The member of the scope whose value wins. With places wanted, the first one counted from the
 * destination wins a tie; otherwise the larger real part, then the larger imaginary part.
 */
static int winner(const struct number *values, int size, int destination, int largest,
                  int places) {
    int best = destination;
    for (int distance = 1; distance < size; distance++) {
        int k = (destination + distance) % size;
        long more = magnitude(values[k]) - magnitude(values[best]);
        int wins = largest ? more > 0 : more < 0;
        if (more == 0 && !places)
            wins = values[k].re > values[best].re ||
                   (values[k].re == values[best].re && values[k].im > values[best].im);
        if (wins) best = k;
    }
    return best;
}

struct wish {
    char operation; /* '+', 'x' for the largest, 'n' for the smallest magnitude */
    int everyone;   /* all members want the result */
    int more;       /* ldia - m, or -1: no places wanted */
};

static struct number expected(const struct grid *g, char precision, char scope, struct wish w,
                              int destination, int i, int j, int *from) {
    struct number values[8], result = {0, 0};
    int size = scope_size(g, scope), bound = w.operation == '+' ? SUMMED : COMPARED;
    for (int k = 0; k < size; k++) {
        values[k] = value_of(g, serial, scope_row(g, scope, k), scope_col(g, scope, k), i, j,
                             bound);
        if (precision != 'c' && precision != 'z') values[k].im = 0;
        result.re += values[k].re;
        result.im += values[k].im;
    }
    if (w.operation == '+') return result;
    *from = winner(values, size, destination, w.operation == 'x', w.more >= 0);
    return values[*from];
}

static void combine(const struct grid *g, char precision, char scope, char top, struct shape s,
                    int lda, struct wish w) {
    int size = scope_size(g, scope), root = w.everyone ? 0 : (int)(serial % size), from = 0;
    int receives = w.everyone || scope_place(g, scope) == root;
    int ldia = w.more < 0 ? -1 : s.rows + w.more > 0 ? s.rows + w.more : 1;
    const char *where = spell_scope(scope, serial), *how = spell(top, serial);
    const char *name = w.operation == '+' ? "gsum2d" : w.operation == 'x' ? "gamx2d" : "gamn2d";
    struct matrix have, want, ra, ca, rows, cols;
    /* A row needs no destination row and a column no destination column: any will do there. */
    int rdest = w.everyone ? -1 : scope == 'r' ? 0 : scope_row(g, scope, root);
    int cdest = w.everyone ? (int)(serial % 2) - 1 : scope == 'c' ? 0 : scope_col(g, scope, root);
    serial++;
    matrix_open(&have, precision, s.rows, s.cols, lda);
    matrix_fill(&have, g, serial, g->row, g->col, w.operation == '+' ? SUMMED : COMPARED);
    want = matrix_copy(&have);
    matrix_open(&ra, 'i', s.rows, s.cols, ldia);
    matrix_open(&ca, 'i', s.rows, s.cols, ldia);
    rows = matrix_copy(&ra);
    cols = matrix_copy(&ca);
    for (int j = 0; j < s.cols; j++)
        for (int i = 0; i < s.rows; i++) {
            matrix_put(&want, i, j, expected(g, precision, scope, w, root, i, j, &from));
            if (w.more < 0) continue;
            struct number row = {scope_row(g, scope, from), 0};
            struct number col = {scope_col(g, scope, from), 0};
            matrix_put(&rows, i, j, row);
            matrix_put(&cols, i, j, col);
        }
    describe("scope '%s' top '%s' rdest %d cdest %d ldia %d", where, how, rdest, cdest, ldia);
    /* Where no places are wanted there need not be arrays for them. */
    blacs_int *r = ldia < 0 && serial % 2 == 0 ? NULL : (blacs_int *)(void *)ra.first;
    blacs_int *c = ldia < 0 && serial % 2 == 0 ? NULL : (blacs_int *)(void *)ca.first;
    if (w.operation == '+')
        gsum2d(precision, g->context, where, how, s.rows, s.cols, have.first, lda, rdest, cdest);
    else if (w.operation == 'x')
        gamx2d(precision, g->context, where, how, s.rows, s.cols, have.first, lda, r, c, ldia,
               rdest, cdest);
    else
        gamn2d(precision, g->context, where, how, s.rows, s.cols, have.first, lda, r, c, ldia,
               rdest, cdest);
    /* A process that does not receive the result keeps its guard cells and nothing else. */
    if (!receives) {
        matrix_take_interior(&want, &have);
        matrix_take_interior(&rows, &ra);
        matrix_take_interior(&cols, &ca);
    }
    check_matrix(precision, name, "A", &have, &want);
    if (w.operation != '+') {
        check_matrix(precision, name, "RA", &ra, &rows);
        check_matrix(precision, name, "CA", &ca, &cols);
    }
    matrix_close(&have);
    matrix_close(&want);
    matrix_close(&ra);
    matrix_close(&ca);
    matrix_close(&rows);
    matrix_close(&cols);
}

void check_combines(const struct grid *g, char precision, int full) {
    static const int places[] = {-1, 0, 2};
    serial = 0;
    for (int s = 0; s < shape_count; s++)
        for (const char *top = topologies; *top != '\0'; top++)
            for (const char *scope = "rca"; *scope != '\0'; scope++)
                for (const char *operation = "+xn"; *operation != '\0'; operation++)
                    for (int everyone = 0; everyone < 2; everyone++)
                        for (int k = 0; k < (full ? LDAS * 3 : 1); k++) {
                            int turn = (int)(top - topologies) + s;
                            struct wish w = {*operation, everyone,
                                             places[full ? k / LDAS : turn % 3]};
                            if (!full && (turn + *scope + everyone) % 2 != 0) continue;
                            combine(g, precision, *scope, *top, shapes[s],
                                    lda_of(shapes[s].rows, full ? k : turn / 2 + *scope), w);
                        }
    for (const char *top = " i1h"; precision == 'd' && *top != '\0'; top++)
        for (int lda = large.rows; lda < large.rows + 8; lda += 7) {
            combine(g, 'd', 'a', *top, large, lda, (struct wish){'+', 1, -1});
            combine(g, 'd', 'a', *top, large, lda, (struct wish){'x', 0, 3});
        }
}
