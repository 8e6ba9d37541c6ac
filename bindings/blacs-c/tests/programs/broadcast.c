/* Broadcasts: every scope and topology, from a root that wanders; all rows or columns at once. */
#include "calls.h"
#include "check.h"

enum { BOUND = 50000 };

static long serial;

static void broadcast(const struct grid *g, char precision, char scope, char top, char uplo,
                      char diag, struct shape s, int lda) {
    int trapezoid = uplo != ' ', root = (int)(serial % scope_size(g, scope));
    int row = scope_row(g, scope, root), col = scope_col(g, scope, root);
    int sender = row == g->row && col == g->col;
    const char *where = spell_scope(scope, serial), *how = spell(top, serial);
    const char *part = spell(uplo, serial / 2), *unit = spell(diag, serial / 3);
    struct matrix have, want;
    serial++;
    /* Receivers of different rows or columns may use different distances of columns. */
    if (!sender) lda = lda_of(s.rows, lda + g->row + g->col);
    matrix_open(&have, precision, s.rows, s.cols, lda);
    matrix_fill(&have, g, sender ? serial : -1, g->row, g->col, BOUND);
    want = matrix_copy(&have);
    for (int j = 0; j < s.cols; j++)
        for (int i = 0; i < s.rows; i++)
            if (inside(uplo, diag, s.rows, s.cols, i, j))
                matrix_put(&want, i, j, value_of(g, serial, row, col, i, j, BOUND));
    describe("scope '%s' top '%s' uplo '%s' diag '%s' from (%d,%d)", where, how, part, unit, row,
             col);
    if (sender && trapezoid)
        trbs2d(precision, g->context, where, how, part, unit, s.rows, s.cols, have.first, lda);
    else if (sender)
        gebs2d(precision, g->context, where, how, s.rows, s.cols, have.first, lda);
    else if (trapezoid)
        trbr2d(precision, g->context, where, how, part, unit, s.rows, s.cols, have.first, lda, row,
               col);
    else
        gebr2d(precision, g->context, where, how, s.rows, s.cols, have.first, lda, row, col);
    check_matrix(precision,
                 sender ? (trapezoid ? "trbs2d" : "gebs2d") : (trapezoid ? "trbr2d" : "gebr2d"),
                 "A", &have, &want);
    matrix_close(&have);
    matrix_close(&want);
}

void check_broadcasts(const struct grid *g, char precision, int full) {
    static const char parts[][2] = {{' ', ' '}, {'u', 'u'}, {'u', 'n'}, {'l', 'u'}, {'l', 'n'}};
    serial = 0;
    for (int s = 0; s < shape_count; s++)
        for (int part = 0; part < 5; part++)
            for (const char *top = topologies; *top != '\0'; top++)
                for (const char *scope = "rca"; *scope != '\0'; scope++)
                    for (int k = 0; k < (full ? LDAS : 1); k++) {
                        /* A trapezoid meets every topology in some shapes, all of them if full. */
                        int turn = (int)(top - topologies) + part + s;
                        if (!full && parts[part][0] != ' ' && turn % 3 != 0) continue;
                        broadcast(g, precision, *scope, *top, parts[part][0], parts[part][1],
                                  shapes[s], lda_of(shapes[s].rows, full ? k : turn + *scope));
                    }
    for (const char *top = topologies; precision == 'd' && *top != '\0'; top++) {
        broadcast(g, 'd', 'a', *top, ' ', ' ', large, large.rows);
        broadcast(g, 'd', 'a', *top, 'l', 'n', large, large.rows + 7);
    }
}
