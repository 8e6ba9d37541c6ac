/* The heat equation on a plate, as `examples/heat_2d.rs` and `examples/jacobi.rs` solve it: a halo exchange by
 * persistent sends, beside which the cells that need no halo are computed.
 *
 *   jacobi CORES SIDE STEPS */
#include "program.h"

#define RATE 0.2
#define HOT 100.0
#define WARM 50.0

typedef struct {
    int top, left, rows, columns, side;
} Tile;

static double *field(Tile tile) {
    int width = tile.columns + 2;
    double *cells = zeros((size_t)(tile.rows + 2) * width, sizeof *cells);
    for (int r = 0; r < tile.rows + 2; r++)
        for (int c = 0; c < width; c++) {
            /* One more than on the plate: 0 is above it, or to its left. */
            int row = tile.top + r, column = tile.left + c;
            if (row == 0 && column >= tile.side / 3 && column < 2 * tile.side / 3)
                cells[r * width + c] = HOT;
            else if (column == 0)
                cells[r * width + c] = WARM;
        }
    return cells;
}

static void step(Tile tile, const double *old, double *restrict new, int row, int last_row, int column, int last_column) {
    int width = tile.columns + 2;
    for (; row < last_row; row++) {
        const double *above = old + (row - 1) * width, *here = above + width, *below = here + width;
        double *restrict to = new + row * width;
        for (int c = column; c < last_column; c++) {
            double around = above[c] + below[c] + here[c - 1] + here[c + 1];
            to[c] = here[c] + RATE * (around - 4.0 * here[c]);
        }
    }
}

int main(int argc, char **argv) {
    begin(argc, argv, 2);
    int side = numbers[0], steps = numbers[1];
    int dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, me, 2, at);
    int cut[2][2];
    for (int dim = 0; dim < 2; dim++)
        for (int n = 0; n < 2; n++) cut[dim][n] = (long)(at[dim] + n) * side / dims[dim];
    Tile tile = {cut[0][0], cut[1][0], cut[0][1] - cut[0][0], cut[1][1] - cut[1][0], side};
    int width = tile.columns + 2, rows = tile.rows, columns = tile.columns;

    int up, down, left, right;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, width, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    double *fields[2];
    MPI_Request halos[2][8];
    for (int n = 0; n < 2; n++) {
        double *f = fields[n] = field(tile);
        MPI_Recv_init(f + 1, columns, MPI_DOUBLE, up, 0, grid, &halos[n][0]);
        MPI_Recv_init(f + (rows + 1) * width + 1, columns, MPI_DOUBLE, down, 1, grid, &halos[n][1]);
        MPI_Recv_init(f + width, 1, column, left, 2, grid, &halos[n][2]);
        MPI_Recv_init(f + width + columns + 1, 1, column, right, 3, grid, &halos[n][3]);
        MPI_Send_init(f + rows * width + 1, columns, MPI_DOUBLE, down, 0, grid, &halos[n][4]);
        MPI_Send_init(f + width + 1, columns, MPI_DOUBLE, up, 1, grid, &halos[n][5]);
        MPI_Send_init(f + width + columns, 1, column, right, 2, grid, &halos[n][6]);
        MPI_Send_init(f + width + 1, 1, column, left, 3, grid, &halos[n][7]);
    }

    MPI_Barrier(grid);
    double begun = now();
    for (int n = 0; n < steps; n++) {
        double *old = fields[n % 2], *new = fields[(n + 1) % 2];
        MPI_Startall(8, halos[n % 2]);
        step(tile, old, new, 2, rows, 2, columns);
        MPI_Waitall(8, halos[n % 2], MPI_STATUSES_IGNORE);
        step(tile, old, new, 1, 2, 1, columns + 1);
        if (rows > 1) step(tile, old, new, rows, rows + 1, 1, columns + 1);
        step(tile, old, new, 2, rows, 1, 2);
        if (columns > 1) step(tile, old, new, 2, rows, columns, columns + 1);
    }
    double took = (now() - begun) / (steps ? steps : 1);

    Tile plate = {0, 0, side, side, side};
    double *alone[2] = {field(plate), field(plate)};
    for (int n = 0; n < steps; n++) step(plate, alone[n % 2], alone[(n + 1) % 2], 1, side + 1, 1, side + 1);
    int is_right = 1;
    for (int r = 1; r <= rows; r++) {
        const double *here = fields[steps % 2] + r * width + 1;
        const double *there = alone[steps % 2] + (size_t)(tile.top + r) * (side + 2) + tile.left + 1;
        is_right &= memcmp(here, there, columns * sizeof *here) == 0;
    }
    end("step", took, is_right);
    return 0;
}
