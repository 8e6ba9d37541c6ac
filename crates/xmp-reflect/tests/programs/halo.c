/*
 * What it costs to update the shadow of a field over MPI, by each of the ways that MPI offers: the
 * counterpart of `cargo xtask bench --only 'reflect-*'`. README.md says how to build and run it.
 */
#define _GNU_SOURCE
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if MPI_VERSION >= 4
#define NEIGHBOUR_INIT MPI_Neighbor_alltoallw_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) /* Open MPI 4 has it as an extension. */
#define NEIGHBOUR_INIT MPIX_Neighbor_alltoallw_init
#endif

enum { SIDES = 4, WANTED = 31, FEWEST = 7, MOST = 400, TRIPS = 100, WARM_UP = 20 };
static const double PATIENCE = 1.2; /* seconds of all samples of a variant */
static double sample = 4e-3;         /* seconds of one */

/* Extents of a block along j, i and k, which is fastest in memory, and layers of shadow in j and i. */
typedef struct { int j, i, k, layers; } Shape;
/* One side of the block: equal blocks of doubles at equal distances, sent to a rank and received
 * from it. Sides are i-, i+, j- and j+; what leaves by one side arrives by the opposite one. */
typedef struct {
    int rank, blocks, length, stride;
    size_t sent, shadow; /* where in the field the first block is */
    double *out, *in;    /* packed */
    MPI_Datatype type;
} Side;
typedef struct { double ns, ping_pong; bool clean; } Sample;
typedef struct { const char *name; void (*begin)(void), (*step)(void), (*end)(void); } Variant;

static int me, ranks, sides;
static bool json;
static double *field;
static size_t cells;
static Side side[SIDES];
static MPI_Request request[2 * SIDES];
static int opposite(int s) { return s ^ 1; }

/* ---- the variants ---- */
static void nothing(void) {}
static void wait_all(void) { MPI_Waitall(2 * sides, request, MPI_STATUSES_IGNORE); }
static void types_step(void) {
    for (int s = 0; s < sides; s++)
        MPI_Irecv(field + side[s].shadow, 1, side[s].type, side[s].rank, opposite(s), MPI_COMM_WORLD, &request[s]);
    for (int s = 0; s < sides; s++)
        MPI_Isend(field + side[s].sent, 1, side[s].type, side[s].rank, s, MPI_COMM_WORLD, &request[sides + s]);
    wait_all();
}
static void persistent_begin(void) {
    for (int s = 0; s < sides; s++) {
        Side *at = &side[s];
        MPI_Recv_init(field + at->shadow, 1, at->type, at->rank, opposite(s), MPI_COMM_WORLD, &request[s]);
        MPI_Send_init(field + at->sent, 1, at->type, at->rank, s, MPI_COMM_WORLD, &request[sides + s]);
    }
}
static void persistent_step(void) { MPI_Startall(2 * sides, request), wait_all(); }
static void persistent_end(void) { for (int r = 0; r < 2 * sides; r++) MPI_Request_free(&request[r]); }

/* Several edges between two ranks are matched in order: sources are listed by the side that they
 * send by. */
static MPI_Comm graph;
static int ones[SIDES] = {1, 1, 1, 1};
static MPI_Aint sent_at[SIDES], shadow_at[SIDES];
static MPI_Datatype type[SIDES];
static void neighbour_begin(void) {
    int to[SIDES], from[SIDES];
    for (int s = 0; s < sides; s++) {
        to[s] = side[s].rank, from[s] = side[opposite(s)].rank, type[s] = side[s].type;
        sent_at[s] = 8 * (MPI_Aint)side[s].sent, shadow_at[s] = 8 * (MPI_Aint)side[opposite(s)].shadow;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sides, from, MPI_UNWEIGHTED, sides, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
}
static void neighbour_step(void) {
    MPI_Neighbor_alltoallw(field, ones, sent_at, type, field, ones, shadow_at, type, graph);
}
static void neighbour_end(void) { MPI_Comm_free(&graph); }
#ifdef NEIGHBOUR_INIT
static void neighbour_persistent_begin(void) {
    neighbour_begin();
    NEIGHBOUR_INIT(field, ones, sent_at, type, field, ones, shadow_at, type, graph, MPI_INFO_NULL, &request[0]);
}
static void neighbour_persistent_step(void) { MPI_Start(&request[0]), MPI_Wait(&request[0], MPI_STATUS_IGNORE); }
static void neighbour_persistent_end(void) { MPI_Request_free(&request[0]), neighbour_end(); }
#endif

static void packed_step(void) {
    for (int s = 0; s < sides; s++)
        MPI_Irecv(side[s].in, side[s].blocks * side[s].length, MPI_DOUBLE, side[s].rank, opposite(s), MPI_COMM_WORLD,
                  &request[s]);
    for (int s = 0; s < sides; s++) {
        Side *at = &side[s];
        for (size_t b = 0; b < (size_t)at->blocks; b++)
            memcpy(at->out + b * at->length, field + at->sent + b * at->stride, 8 * at->length);
        MPI_Isend(at->out, at->blocks * at->length, MPI_DOUBLE, at->rank, s, MPI_COMM_WORLD, &request[sides + s]);
    }
    for (int n = 0; n < sides; n++) { /* Each is unpacked as soon as it is there. */
        int s;
        MPI_Waitany(sides, request, &s, MPI_STATUS_IGNORE);
        for (size_t b = 0; b < (size_t)side[s].blocks; b++)
            memcpy(field + side[s].shadow + b * side[s].stride, side[s].in + b * side[s].length, 8 * side[s].length);
    }
    MPI_Waitall(sides, request + sides, MPI_STATUSES_IGNORE);
}
static const Variant VARIANTS[] = {
    {"types", nothing, types_step, nothing},
    {"types, persistent", persistent_begin, persistent_step, persistent_end},
    {"neighbour", neighbour_begin, neighbour_step, neighbour_end},
#ifdef NEIGHBOUR_INIT
    {"neighbour, persistent", neighbour_persistent_begin, neighbour_persistent_step, neighbour_persistent_end},
#endif
    {"packed", nothing, packed_step, nothing},
};

/* ---- the field ---- */
/* What a cell of a rank's block holds: no other cell of any rank holds it. */
static double value(int rank, size_t cell) { return (double)((size_t)rank * cells + cell); }
static void make_field(Shape of, const int rank[SIDES]) {
    int row = (of.i + 2 * of.layers) * of.k, first = of.layers * row + of.layers * of.k;
    cells = (size_t)row * (of.j + 2 * of.layers);
    field = aligned_alloc(4096, (8 * cells + 4095) / 4096 * 4096);
    for (size_t cell = 0; cell < cells; cell++) field[cell] = value(me, cell);
    for (int s = 0; s < sides; s++) {
        bool in_i = s < 2, upper = s % 2;
        int apart = in_i ? of.k : row, extent = in_i ? of.i : of.j;
        Side *at = &side[s];
        at->rank = rank[s], at->stride = row;
        at->blocks = in_i ? of.j : of.layers, at->length = (in_i ? of.layers : of.i) * of.k;
        at->sent = first + (size_t)(upper ? extent - of.layers : 0) * apart;
        at->shadow = upper ? at->sent + (size_t)of.layers * apart : at->sent - (size_t)of.layers * apart;
        at->out = calloc((size_t)at->blocks * at->length, 8), at->in = calloc((size_t)at->blocks * at->length, 8);
        MPI_Type_vector(at->blocks, at->length, at->stride, MPI_DOUBLE, &at->type);
        MPI_Type_commit(&at->type);
    }
}
static void drop_field(void) {
    for (int s = 0; s < sides; s++) free(side[s].out), free(side[s].in), MPI_Type_free(&side[s].type);
    free(field);
}
/* Makes one exchange and compares the shadow with what the ranks beyond it have. */
static void check(const char *exchange, const Variant *variant) {
    for (int checking = 0; checking < 2; checking++) {
        for (int s = 0; s < sides; s++)
            for (size_t c = 0; c < (size_t)side[s].blocks * side[s].length; c++) {
                size_t skip = c / side[s].length * side[s].stride + c % side[s].length;
                double *cell = field + side[s].shadow + skip;
                if (!checking) *cell = -1;
                else if (*cell != value(side[s].rank, side[opposite(s)].sent + skip)) {
                    fprintf(stderr, "%s, %s: a wrong cell at rank %d, side %d\n", exchange, variant->name, me, s);
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
            }
        MPI_Barrier(MPI_COMM_WORLD);
        if (!checking) variant->step();
    }
}

/* ---- samples ---- */
static struct { _Alignas(128) _Atomic uint64_t word; } *line; /* shared by all ranks */
static uint64_t turn;
static void round_trips(int times) {
    for (int n = 0; n < times; n++, turn++) {
        if (me == 0) atomic_store_explicit(&line[0].word, turn + 1, memory_order_release);
        while (atomic_load_explicit(&line[1 - me].word, memory_order_acquire) != turn + 1) {}
        if (me == 1) atomic_store_explicit(&line[1].word, turn + 1, memory_order_release);
    }
}
/* Nanoseconds of a flag one way between ranks 0 and 1; the others sleep. */
static double ping_pong(void) {
    if (me < 2) round_trips(WARM_UP);
    double begun = MPI_Wtime();
    if (me < 2) round_trips(TRIPS);
    else while (atomic_load(&line[2].word) == turn) usleep(20);
    double took = MPI_Wtime() - begun;
    if (me == 0) atomic_store(&line[2].word, turn);
    else if (me > 1) turn = atomic_load(&line[2].word);
    return took * 1e9 / (2 * TRIPS);
}
/* Runs a variant; returns the slowest rank's time, and whether no rank was switched out. */
static double timed(const Variant *variant, long times, bool *clean) {
    struct rusage before, after;
    MPI_Barrier(MPI_COMM_WORLD);
    getrusage(RUSAGE_THREAD, &before);
    double begun = MPI_Wtime();
    for (long n = 0; n < times; n++) variant->step();
    double mine[2] = {MPI_Wtime() - begun}, all[2];
    getrusage(RUSAGE_THREAD, &after);
    mine[1] = (double)(after.ru_nivcsw - before.ru_nivcsw);
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *clean = all[1] == 0 && ranks == 2;
    return all[0];
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
/* Prints a row of the samples whose flags took `least` to `most` ns, or of all; returns whether
 * they were enough. */
static bool row(const char *exchange, const char *variant, const char *class, const Sample *from, int count,
                double least, double most) {
    double ns[MOST], flags[MOST];
    int kept = 0, all = most == 0;
    for (int n = 0; n < count; n++)
        if (all || (from[n].clean && from[n].ping_pong >= least && from[n].ping_pong < most))
            ns[kept] = from[n].ns, flags[kept++] = from[n].ping_pong;
    if (kept < (all ? 1 : FEWEST)) return false;
    qsort(ns, kept, 8, ascending), qsort(flags, kept, 8, ascending);
    printf(json ? "{\"exchange\":\"%s\",\"variant\":\"%s\",\"class\":\"%s\",\"ping_pong_ns\":%.1f,\"min_ns\":%.0f,"
                  "\"median_ns\":%.0f,\"samples\":%d}\n"
                : "%-22s %-22s %-8s %6.1f ns %12.0f ns %12.0f ns %5d\n",
           exchange, variant, class, flags[kept / 2], ns[0], ns[kept / 2], kept);
    return fflush(stdout), true;
}
static void measure(const char *exchange, const Variant *variant) {
    Sample samples[MOST];
    int count = 0, counted = 0, enough = 0;
    long times = 1;
    bool clean;
    variant->begin();
    check(exchange, variant);
    for (double took = 0; took < sample / 3;) { /* the fastest of three runs */
        took = 1e9;
        for (int n = 0; n < 3; n++) { double again = timed(variant, times, &clean); if (again < took) took = again; }
        times = took < sample / 3 ? 4 * times : (long)(times * sample / took) + 1;
    }
    double begun = MPI_Wtime();
    while (!enough) {
        MPI_Barrier(MPI_COMM_WORLD);
        double flag = ping_pong(), took = timed(variant, times, &clean);
        samples[count++] = (Sample){took * 1e9 / times, flag, clean};
        counted += clean || ranks > 2;
        enough = counted >= WANTED || count >= MOST || MPI_Wtime() - begun > PATIENCE;
        MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    variant->end();
    if (me > 0) return;
    bool any = row(exchange, variant->name, "sibling", samples, count, 0, 40);
    any |= row(exchange, variant->name, "near", samples, count, 40, 110);
    any |= row(exchange, variant->name, "far", samples, count, 110, 1e18);
    if (!any) row(exchange, variant->name, "any", samples, count, 0, 0);
}
static void exchange(const char *name, Shape of, int count, const int rank[SIDES]) {
    sides = count;
    make_field(of, rank);
    for (size_t n = 0; n < sizeof VARIANTS / sizeof *VARIANTS; n++) measure(name, &VARIANTS[n]);
    drop_field();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "--json")) json = true;
        else sample = !strcmp(argv[n], "--sample") && n + 1 < argc ? atof(argv[++n]) / 1e3 : 0;
    }
    if ((ranks != 2 && ranks != 4) || !(sample > 0)) {
        if (me == 0) fprintf(stderr, "halo [--json] [--sample MS], with 2 or 4 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(me % 2, &core);
    if (sched_setaffinity(0, sizeof core, &core)) perror("sched_setaffinity");
    MPI_Win window;
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(me == 0 ? 3 * sizeof *line : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &line, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &line);
    if (me == 0) line[0].word = line[1].word = line[2].word = 0;
    if (me == 0 && !json)
        printf("%-22s %-22s %-8s %9s %15s %15s %5s\n", "exchange", "variant", "class", "ping-pong", "min", "median",
               "of");
    const Shape large = {256, 256, 128, 2}, small = {1, 1, 1, 1};
    if (ranks == 2) {
        int peer = 1 - me;
        exchange("small", small, 2, (int[]){peer, peer, me, me});
        exchange("field", large, 4, (int[]){peer, peer, me, me});
        exchange("field-4", large, 4, (int[]){peer, peer, peer, peer});
    } else {
        int beside = me ^ 1, across = me ^ 2; /* 2 x 2 ranks, periodic: each is on both sides */
        exchange("small-oversubscribed", small, 4, (int[]){beside, beside, across, across});
        exchange("field-oversubscribed", large, 4, (int[]){beside, beside, across, across});
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
