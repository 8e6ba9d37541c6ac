/* A product of matrices by SUMMA, as `examples/matmul_summa.rs` computes it: panels are broadcast along the rows and the
 * columns of a grid of processes.
 *
 *   matmul CORES SIZE PANEL */
#include "program.h"

/* Small integers, so sums are exact in any order. */
static double element(int matrix, long i, long j) {
    return (double)((3 * i + 5 * j + 7 * matrix + i * j) % 11) - 5.0;
}

static int start(int size, int parts, int n) {
    return (long)size * n / parts;
}

/* Returns the part that contains n. */
static int owner(int size, int parts, int n) {
    int part = 0;
    while (start(size, parts, part + 1) <= n) part++;
    return part;
}

/* Returns a block in column-major order. */
static double *block(int matrix, int row, int last_row, int column, int last_column) {
    double *cells = zeros((size_t)(last_row - row) * (last_column - column), sizeof *cells), *at = cells;
    for (int j = column; j < last_column; j++)
        for (int i = row; i < last_row; i++) *at++ = element(matrix, i, j);
    return cells;
}

/* Adds the product of a (m x k) and b (k x n) to c (m x n). */
static void multiply(double *c, const double *a, const double *b, int m, int k, int n) {
    for (int j = 0; j < n; j++) {
        const double *factor = b + (size_t)j * k;
        double *restrict to = c + (size_t)j * m;
        int l = 0;
        /* Four columns of A at a time, so that an element of C is loaded and stored once for them. */
        for (; l + 4 <= k; l += 4, factor += 4) {
            const double *a0 = a + (size_t)l * m, *a1 = a0 + m, *a2 = a1 + m, *a3 = a2 + m;
            for (int i = 0; i < m; i++)
                to[i] += a0[i] * factor[0] + a1[i] * factor[1] + a2[i] * factor[2] + a3[i] * factor[3];
        }
        for (; l < k; l++, factor++)
            for (int i = 0; i < m; i++) to[i] += a[(size_t)l * m + i] * factor[0];
    }
}

int main(int argc, char **argv) {
    begin(argc, argv, 2);
    int size = numbers[0], most = numbers[1] > 0 ? numbers[1] : 1, rows = 1;
    for (int n = 1; n * n <= ranks; n++)
        if (ranks % n == 0) rows = n;
    int columns = ranks / rows, row = me / columns, column = me % columns;
    MPI_Comm along_row, along_column;
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &along_row);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &along_column);
    int top = start(size, rows, row), m = start(size, rows, row + 1) - top;
    int left = start(size, columns, column), n = start(size, columns, column + 1) - left;
    int a_left = left, b_top = top, b_rows = m;
    double *a = block(0, top, top + m, left, left + n), *b = block(1, top, top + m, left, left + n);
    double *c = zeros((size_t)m * n, sizeof *c);
    double *a_room = zeros((size_t)m * most, sizeof *c), *b_room = zeros((size_t)n * most, sizeof *c);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int at = 0; at < size;) {
        int a_owner = owner(size, columns, at), b_owner = owner(size, rows, at), k = most;
        int a_end = start(size, columns, a_owner + 1), b_end = start(size, rows, b_owner + 1);
        if (k > a_end - at) k = a_end - at;
        if (k > b_end - at) k = b_end - at;
        /* Whole columns, which are contiguous. */
        double *a_panel = column == a_owner ? a + (size_t)(at - a_left) * m : a_room;
        MPI_Bcast(a_panel, m * k, MPI_DOUBLE, a_owner, along_row);
        if (row == b_owner)
            for (int j = 0; j < n; j++)
                memcpy(b_room + (size_t)j * k, b + (size_t)j * b_rows + at - b_top, k * sizeof *b);
        MPI_Bcast(b_room, k * n, MPI_DOUBLE, b_owner, along_column);
        multiply(c, a_panel, b_room, m, k, n);
        at += k;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double took = now() - begun;

    double *all_a = block(0, top, top + m, 0, size), *all_b = block(1, 0, size, left, left + n);
    double *expected = zeros((size_t)m * n, sizeof *expected);
    multiply(expected, all_a, all_b, m, size, n);
    end("product", took, memcmp(c, expected, (size_t)m * n * sizeof *c) == 0);
    return 0;
}
