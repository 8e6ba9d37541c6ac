/* Conway's game of life on a torus, as `examples/life.rs` plays it: persistent sends to all eight neighbours, beside
 * which the cells that need no halo are computed.
 *
 *   life CORES SIDE STEPS */
#include "program.h"

typedef unsigned char Cell;

static Cell at_first(long row, long column) {
    unsigned long long z = (unsigned long long)row << 32 ^ (unsigned long long)column;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull + 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) % 3 == 0;
}

/* Computes cells of a field whose rows are `width` apart. */
static void step(const Cell *old, Cell *restrict new, int width, int row, int last_row, int column, int last_column) {
    for (; row < last_row; row++) {
        const Cell *above = old + (row - 1) * width, *here = above + width, *below = here + width;
        Cell *restrict to = new + row * width;
        for (int c = column; c < last_column; c++) {
            Cell nine = above[c - 1] + above[c] + above[c + 1] + here[c - 1] + here[c] + here[c + 1] + below[c - 1] +
                        below[c] + below[c + 1];
            to[c] = (nine == 3) | ((here[c] == 1) & (nine == 4));
        }
    }
}

/* Copies the edges of a torus of one rank to the cells around it. */
static void wrap(Cell *field, int side) {
    int width = side + 2;
    for (int r = 1; r <= side; r++) {
        field[r * width] = field[r * width + side];
        field[r * width + side + 1] = field[r * width + 1];
    }
    memcpy(field, field + side * width, width);
    memcpy(field + (side + 1) * width, field + width, width);
}

int main(int argc, char **argv) {
    begin(argc, argv, 2);
    int side = numbers[0], steps = numbers[1];
    int dims[2] = {0, 0}, periods[2] = {1, 1}, at[2];
    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, me, 2, at);
    int first[2], extent[2];
    for (int dim = 0; dim < 2; dim++) {
        first[dim] = (long)at[dim] * side / dims[dim];
        extent[dim] = (long)(at[dim] + 1) * side / dims[dim] - first[dim];
    }
    int rows = extent[0], columns = extent[1], width = columns + 2;

    MPI_Datatype column;
    MPI_Type_vector(rows, 1, width, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    Cell *fields[2];
    MPI_Request halos[2][16];
    for (int n = 0; n < 2; n++) {
        Cell *f = fields[n] = zeros((size_t)(rows + 2) * width, 1);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) f[(r + 1) * width + c + 1] = at_first(first[0] + r, first[1] + c);
        int count = 0;
        for (int down = -1; down <= 1; down++)
            for (int right = -1; right <= 1; right++) {
                if (!down && !right) continue;
                int there[2] = {at[0] + down, at[1] + right}, rank;
                MPI_Cart_rank(grid, there, &rank);
                /* The first cell of the edge that is sent, and of the halo that is received, in each dimension. */
                int from_row = down > 0 ? rows : 1, from_column = right > 0 ? columns : 1;
                int to_row = down > 0 ? rows + 1 : down < 0 ? 0 : 1, to_column = right > 0 ? columns + 1 : right < 0 ? 0 : 1;
                MPI_Datatype type = down ? MPI_BYTE : column;
                int cells = down && !right ? columns : 1;
                /* A message's tag is the direction in which it is sent. */
                int tag = 3 * (down + 1) + right + 1;
                MPI_Send_init(f + from_row * width + from_column, cells, type, rank, tag, grid, &halos[n][count++]);
                MPI_Recv_init(f + to_row * width + to_column, cells, type, rank, 8 - tag, grid, &halos[n][count++]);
            }
    }

    MPI_Barrier(grid);
    double begun = now();
    for (int n = 0; n < steps; n++) {
        Cell *old = fields[n % 2], *new = fields[(n + 1) % 2];
        MPI_Startall(16, halos[n % 2]);
        step(old, new, width, 2, rows, 2, columns);
        MPI_Waitall(16, halos[n % 2], MPI_STATUSES_IGNORE);
        step(old, new, width, 1, 2, 1, columns + 1);
        if (rows > 1) step(old, new, width, rows, rows + 1, 1, columns + 1);
        step(old, new, width, 2, rows, 1, 2);
        if (columns > 1) step(old, new, width, 2, rows, columns, columns + 1);
    }
    double took = (now() - begun) / (steps ? steps : 1);

    Cell *alone[2];
    int all = side + 2;
    for (int n = 0; n < 2; n++) alone[n] = zeros((size_t)all * all, 1);
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++) alone[0][(r + 1) * all + c + 1] = at_first(r, c);
    for (int n = 0; n < steps; n++) {
        wrap(alone[n % 2], side);
        step(alone[n % 2], alone[(n + 1) % 2], all, 1, side + 1, 1, side + 1);
    }
    int is_right = 1;
    for (int r = 1; r <= rows; r++) {
        const Cell *there = alone[steps % 2] + (size_t)(first[0] + r) * all + first[1] + 1;
        is_right &= memcmp(fields[steps % 2] + r * width + 1, there, columns) == 0;
    }
    end("step", took, is_right);
    return 0;
}
