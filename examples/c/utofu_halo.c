/*
 * Halo exchange of a square of doubles: each rank has some columns and, on each side, a column of its
 * neighbour. A column is strided memory, so a put of many blocks moves it. A notice of each neighbour ends
 * the wait; the sum of all elements is compared with that of a single process.
 *
 *     onesided run -n 4 -- ./halo
 */
#include "utofu_example.h"

enum { ROWS = 48, COLUMNS = 12, WIDTH = COLUMNS + 2, STEPS = 10 };

static double grid[2][ROWS][WIDTH];

/* One step of smoothing; columns 0 and WIDTH - 1 are the neighbours'. */
static void smooth(double (*from)[WIDTH], double (*to)[WIDTH])
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 1; column <= COLUMNS; column++)
            to[row][column] = (from[row][column - 1] + 2 * from[row][column] + from[row][column + 1]) / 4;
}

/* The same by one process, for all columns of a ring of ranks. */
static double expected(int ranks)
{
    int all = ranks * COLUMNS;
    double *now = malloc(sizeof(double) * all), *then = malloc(sizeof(double) * all), sum = 0;
    for (int at = 0; at < all; at++)
        now[at] = at % 17;
    for (int step = 0; step < STEPS; step++) {
        for (int at = 0; at < all; at++)
            then[at] = (now[(at + all - 1) % all] + 2 * now[at] + now[(at + 1) % all]) / 4;
        double *other = now;
        now = then;
        then = other;
    }
    for (int at = 0; at < all; at++)
        sum += now[at] * (at % 5 + 1);
    free(now);
    free(then);
    return sum;
}

int main(void)
{
    struct rank me = this_rank(0);
    int left = (me.rank + me.ranks - 1) % me.ranks, right = (me.rank + 1) % me.ranks;
    const size_t row = sizeof grid[0][0], width = sizeof(double);
    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t id;
    utofu_stadd_t own;

    must(utofu_create_vcq(0, 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, grid, sizeof grid, 0, &own));
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++)
            grid[0][y][x + 1] = (me.rank * COLUMNS + x) % 17;
    volatile struct card *cards = meet(me, id, own, 0);

    /* Notices of the next step that arrived early. */
    int early[2] = {0, 0};
    for (int step = 0; step < STEPS; step++) {
        int now = step % 2;
        size_t at = now * sizeof grid[0];
        for (int side = 0; side < 2; side++) {
            int to = side == 0 ? left : right;
            utofu_stadd_t mine = own + at + width * (side == 0 ? 1 : COLUMNS);
            utofu_stadd_t theirs = cards[to].words[1] + at + width * (side == 0 ? WIDTH - 1 : 0);
            /* Rows but the last, then the last with a notice: commands of one VCQ to one node are in order. */
            must(utofu_put_stride(vcq, cards[to].words[0], mine, theirs, width, row, ROWS - 1, 0, 0, NULL));
            put(vcq, cards[to].words[0], mine + (ROWS - 1) * row, theirs + (ROWS - 1) * row, width, now,
                UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER);
        }
        int arrived = early[now];
        early[now] = 0;
        while (arrived < 2) {
            if (next_notice(vcq).edata == (uint64_t)now)
                arrived++;
            else
                early[1 - now]++;
        }
        smooth(grid[now], grid[1 - now]);
    }
    double sum = 0;
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++)
            sum += grid[STEPS % 2][y][x + 1] * ((me.rank * COLUMNS + x) % 5 + 1);
    /* The sums of all ranks meet at rank 0. */
    static double sums[MOST_RANKS];
    utofu_stadd_t all;
    utofu_vcq_hdl_t last;
    utofu_vcq_id_t root;
    must(utofu_create_vcq_with_cmp_id(0, 0, 0, &last));
    must(utofu_reg_mem_with_stag(last, sums, sizeof sums, 1, 0, &all));
    must(utofu_construct_vcq_id(coords_of(0), 0, 0, 0, &root));
    must(utofu_query_stadd(root, 1, &all));
    all += me.rank * sizeof sum;
    meet(me, 0, 0, 0);
    if (me.rank != 0) {
        /* A process that ends takes the commands with it that have not left. */
        must(utofu_put_piggyback(last, root, &sum, all, sizeof sum, 0,
                                 UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_TCQ_NOTICE, NULL));
        next_completion(last);
        return 0;
    }
    for (int rank = 1; rank < me.ranks; rank++)
        next_notice(last);
    for (int rank = 1; rank < me.ranks; rank++)
        sum += sums[rank];
    double difference = sum - ROWS * expected(me.ranks);
    check(difference < 1e-6 && difference > -1e-6);
    printf("halo: %d ranks, sum %.6f\n", me.ranks, sum);
    return 0;
}
