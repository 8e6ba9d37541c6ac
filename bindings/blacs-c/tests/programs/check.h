/* What the checking programs share: grids, counts of checks and failures, expected values. */
#ifndef CHECK_H
#define CHECK_H

#include "blacs_fmpl.h"

/* A grid as this process sees it; `number` tells grids apart in expected values on all processes. */
struct grid {
    blacs_int context;
    int rows, cols, row, col;
    int number;
};

/* Makes a grid of the first rows x cols processes; false where this process is not a member. */
int grid_open(struct grid *g, int number, const char *order, int rows, int cols);
void grid_close(struct grid *g);

/*
 * The members of a scope as this process sees them: how many, its own place among them, and the
 * coordinates of the k-th. The scope is 'r', 'c' or 'a'.
 */
int scope_size(const struct grid *g, char scope);
int scope_place(const struct grid *g, char scope);
int scope_row(const struct grid *g, char scope, int k);
int scope_col(const struct grid *g, char scope, int k);

/* The first letter of these counts only; they vary with `key`: "R", "r", "Row" and so on. */
const char *spell_scope(char scope, long key);
const char *spell(char letter, long key);

/* An element in any precision: all values are small integers, so that sums are exact. */
struct number {
    long re, im;
};

/* What process (row, col) holds at (i, j) in case `key`: within -bound..bound, scattered. */
struct number value_of(const struct grid *g, long key, int row, int col, int i, int j, int bound);

/*
 * A matrix of one of the precisions i, s, d, c, z, stored by columns with guard cells before,
 * between and after them. `stride` is the true distance of columns, at least lda and rows.
 */
struct matrix {
    char precision;
    int rows, cols, lda, stride;
    long cells;
    char *memory; /* all cells, guards included */
    char *first;  /* element (0, 0) */
};

void matrix_open(struct matrix *a, char precision, int rows, int cols, int lda);
struct matrix matrix_copy(const struct matrix *a);
void matrix_close(struct matrix *a);
void matrix_put(struct matrix *a, int i, int j, struct number value);
struct number matrix_get(const struct matrix *a, int i, int j);
/* Makes the interior of `a` that of `from`, so that a comparison looks at guards only. */
void matrix_take_interior(struct matrix *a, const struct matrix *from);
/* Fills the interior with what process (row, col) holds in case `key`. */
void matrix_fill(struct matrix *a, const struct grid *g, long key, int row, int col, int bound);

/* Whether (i, j) belongs to a trapezoid; every element belongs to a rectangle (uplo ' '). */
int inside(char uplo, char diag, int rows, int cols, int i, int j);

/* Begins a case: says its parameters, which a failure in it will print. */
void describe(const char *format, ...);
/*
 * Counts a check of a routine; a difference between the matrices, guards included, is a failure.
 * `array` is the name of the argument for the text.
 */
void check_matrix(char precision, const char *routine, const char *array,
                  const struct matrix *have, const struct matrix *want);
/* Counts a check of anything else by name; prints the message when `good` is false. */
void check(int good, const char *name, const char *format, ...);
/* Prints a TABLE line for each name, summed over the job at process 0; returns the exit code. */
int report(void);

/* The tests of routines.c: `full` means every combination of shape, lda and topology. */
void check_points(const struct grid *g, char precision, int full);
void check_broadcasts(const struct grid *g, char precision, int full);
void check_combines(const struct grid *g, char precision, int full);

/* Shapes and distances of columns that the tests use. */
struct shape {
    int rows, cols;
};
extern const struct shape shapes[];
extern const int shape_count;
extern const struct shape large; /* for double precision only */
/* The k-th of three: rows, rows + 1 and rows + 5, but at least 1. */
int lda_of(int rows, int k);
enum { LDAS = 3 };
extern const char topologies[]; /* all of them, a string */

#endif
