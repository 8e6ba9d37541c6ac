/* Matrices with guard cells in five precisions, and what is expected in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { GUARD = 8 };

static long cell_size(char precision) {
    switch (precision) {
    case 'i': return (long)sizeof(blacs_int);
    case 's': return (long)sizeof(float);
    case 'c': return 2 * (long)sizeof(float);
    case 'd': return (long)sizeof(double);
    default: return 2 * (long)sizeof(double);
    }
}

static void store(char precision, char *cell, struct number value) {
    blacs_int whole = (blacs_int)value.re;
    float single[2] = {(float)value.re, (float)value.im};
    double twice[2] = {(double)value.re, (double)value.im};
    switch (precision) {
    case 'i': memcpy(cell, &whole, sizeof whole); break;
    case 's': memcpy(cell, single, sizeof(float)); break;
    case 'c': memcpy(cell, single, sizeof single); break;
    case 'd': memcpy(cell, twice, sizeof(double)); break;
    default: memcpy(cell, twice, sizeof twice); break;
    }
}

static struct number load(char precision, const char *cell) {
    blacs_int whole = 0;
    float single[2] = {0, 0};
    double twice[2] = {0, 0};
    struct number value = {0, 0};
    switch (precision) {
    case 'i': memcpy(&whole, cell, sizeof whole); break;
    case 's': memcpy(single, cell, sizeof(float)); break;
    case 'c': memcpy(single, cell, sizeof single); break;
    case 'd': memcpy(twice, cell, sizeof(double)); break;
    default: memcpy(twice, cell, sizeof twice); break;
    }
    value.re = (long)whole + (long)single[0] + (long)twice[0];
    value.im = (long)single[1] + (long)twice[1];
    return value;
}

void matrix_open(struct matrix *a, char precision, int rows, int cols, int lda) {
    long size = cell_size(precision);
    a->precision = precision;
    a->rows = rows;
    a->cols = cols;
    a->lda = lda;
    a->stride = lda > rows ? lda : rows;
    if (a->stride < 1) a->stride = 1;
    a->cells = (long)a->stride * cols + 2 * GUARD;
    a->memory = malloc((size_t)(a->cells * size));
    if (a->memory == NULL) {
        fprintf(stderr, "no memory for a matrix\n");
        exit(2);
    }
    a->first = a->memory + GUARD * size;
    for (long k = 0; k < a->cells; k++) {
        /* Far from every value, and different from cell to cell. */
        struct number guard = {-9000000 - k % 100000, 9000000 + k % 100000};
        store(precision, a->memory + k * size, guard);
    }
}

struct matrix matrix_copy(const struct matrix *a) {
    struct matrix b;
    matrix_open(&b, a->precision, a->rows, a->cols, a->lda);
    memcpy(b.memory, a->memory, (size_t)(a->cells * cell_size(a->precision)));
    return b;
}

void matrix_close(struct matrix *a) {
    free(a->memory);
    a->memory = a->first = NULL;
}

void matrix_put(struct matrix *a, int i, int j, struct number value) {
    store(a->precision, a->first + ((long)j * a->stride + i) * cell_size(a->precision), value);
}

struct number matrix_get(const struct matrix *a, int i, int j) {
    return load(a->precision, a->first + ((long)j * a->stride + i) * cell_size(a->precision));
}

void matrix_take_interior(struct matrix *a, const struct matrix *from) {
    long size = cell_size(a->precision);
    for (int j = 0; j < a->cols; j++) {
        long column = (long)j * a->stride * size;
        memcpy(a->first + column, from->first + column, (size_t)(a->rows * size));
    }
}

void matrix_fill(struct matrix *a, const struct grid *g, long key, int row, int col, int bound) {
    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++)
            matrix_put(a, i, j, value_of(g, key, row, col, i, j, bound));
}

static uint64_t scatter(uint64_t x) {
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

struct number value_of(const struct grid *g, long key, int row, int col, int i, int j, int bound) {
    uint64_t where = ((uint64_t)key << 40) + ((uint64_t)g->number << 34) + ((uint64_t)row << 31) +
                     ((uint64_t)col << 28) + ((uint64_t)i << 14) + (uint64_t)j;
    uint64_t first = scatter(where), second = scatter(first + 1), span = 2 * (uint64_t)bound + 1;
    struct number value = {(long)(first % span) - bound, (long)(second % span) - bound};
    return value;
}

int inside(char uplo, char diag, int rows, int cols, int i, int j) {
    int on; /* the row at which column j meets the diagonal */
    if (uplo == ' ') return 1;
    if (uplo == 'u') {
        on = rows > cols ? j + rows - cols : j;
        return i < on || (i == on && diag != 'u');
    }
    on = cols > rows ? j - (cols - rows) : j;
    return i > on || (i == on && diag != 'u');
}

/* The first cell in which two matrices of one layout differ, or -1. */
static long difference(const struct matrix *have, const struct matrix *want) {
    long size = cell_size(have->precision);
    if (memcmp(have->memory, want->memory, (size_t)(have->cells * size)) == 0) return -1;
    for (long k = 0; k < have->cells; k++)
        if (memcmp(have->memory + k * size, want->memory + k * size, (size_t)size) != 0) return k;
    return -1;
}

void check_matrix(char precision, const char *routine, const char *array,
                  const struct matrix *have, const struct matrix *want) {
    char name[16];
    long k = difference(have, want), at = k - GUARD;
    snprintf(name, sizeof name, "%c%s", precision, routine);
    if (k < 0) {
        check(1, name, " ");
        return;
    }
    struct number is = load(have->precision, have->memory + k * cell_size(have->precision));
    struct number should = load(have->precision, want->memory + k * cell_size(have->precision));
    const char *what = at < 0 ? "guard before"
                       : at >= (long)have->stride * have->cols ? "guard after"
                       : at % have->stride >= have->rows ? "guard between columns"
                                                         : "element";
    check(0, name, "m %d n %d ld %d: %s of %s, cell (%ld,%ld), is (%ld,%ld), expected (%ld,%ld)",
          have->rows, have->cols, have->lda, what, array, at < 0 ? at : at % have->stride,
          at < 0 ? 0 : at / have->stride, is.re, is.im, should.re, should.im);
}
