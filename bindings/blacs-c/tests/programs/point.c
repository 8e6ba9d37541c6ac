/* Sends and receives: everyone to everyone and to itself, rectangles and trapezoids. */
#include "calls.h"
#include "check.h"

enum { BOUND = 50000 };

static long serial;

static int is_trapezoid(char uplo) {
    return uplo != ' ';
}

static long key_of(char uplo, char diag, int destination) {
    return (((serial * 2 + (uplo == 'u')) * 2 + (diag == 'u')) * 8) + destination;
}

/* One matrix from every process to every process, each destination getting values of its own. */
static void exchange(const struct grid *g, char precision, char uplo, char diag, struct shape s,
                     int lda_sent, int lda_received) {
    int size = g->rows * g->cols, me = g->row * g->cols + g->col;
    const char *send = is_trapezoid(uplo) ? "trsd2d" : "gesd2d";
    const char *receive = is_trapezoid(uplo) ? "trrv2d" : "gerv2d";
    const char *part = spell(uplo, serial), *unit = spell(diag, serial / 2);
    struct matrix have, want;
    serial++;
    matrix_open(&have, precision, s.rows, s.cols, lda_sent);
    for (int to = 0; to < size; to++) {
        describe("uplo '%s' diag '%s' to (%d,%d)", part, unit, to / g->cols, to % g->cols);
        matrix_fill(&have, g, key_of(uplo, diag, to), g->row, g->col, BOUND);
        want = matrix_copy(&have);
        if (is_trapezoid(uplo))
            trsd2d(precision, g->context, part, unit, s.rows, s.cols, have.first, lda_sent,
                   to / g->cols, to % g->cols);
        else
            gesd2d(precision, g->context, s.rows, s.cols, have.first, lda_sent, to / g->cols,
                   to % g->cols);
        check_matrix(precision, send, "A", &have, &want);
        matrix_close(&want);
    }
    matrix_close(&have);
    for (int from = 0; from < size; from++) {
        int row = from / g->cols, col = from % g->cols;
        describe("uplo '%s' diag '%s' from (%d,%d)", part, unit, row, col);
        matrix_open(&have, precision, s.rows, s.cols, lda_received);
        matrix_fill(&have, g, -1, g->row, g->col, BOUND);
        want = matrix_copy(&have);
        for (int j = 0; j < s.cols; j++)
            for (int i = 0; i < s.rows; i++)
                if (inside(uplo, diag, s.rows, s.cols, i, j))
                    matrix_put(&want, i, j,
                               value_of(g, key_of(uplo, diag, me), row, col, i, j, BOUND));
        if (is_trapezoid(uplo))
            trrv2d(precision, g->context, part, unit, s.rows, s.cols, have.first, lda_received,
                   row, col);
        else
            gerv2d(precision, g->context, s.rows, s.cols, have.first, lda_received, row, col);
        check_matrix(precision, receive, "A", &have, &want);
        matrix_close(&have);
        matrix_close(&want);
    }
}

void check_points(const struct grid *g, char precision, int full) {
    static const char parts[][2] = {{' ', ' '}, {'u', 'u'}, {'u', 'n'}, {'l', 'u'}, {'l', 'n'}};
    serial = 0;
    for (int s = 0; s < shape_count; s++)
        for (int part = 0; part < 5; part++)
            for (int k = 0; k < LDAS; k++)
                for (int r = 0; r < (full ? LDAS : 1); r++) {
                    int received = full ? r : k + part + s;
                    exchange(g, precision, parts[part][0], parts[part][1], shapes[s],
                             lda_of(shapes[s].rows, k), lda_of(shapes[s].rows, received));
                }
    for (int part = 0; precision == 'd' && part < 5; part++) {
        exchange(g, 'd', parts[part][0], parts[part][1], large, large.rows, large.rows + 7);
        exchange(g, 'd', parts[part][0], parts[part][1], large, large.rows + 7, large.rows);
    }
}
