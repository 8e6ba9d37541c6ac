/* Times operations of MPI.
 *
 *   operations SAMPLE_NS SAMPLES CORE...
 *
 * Two ranks measure everything but the collectives, four ranks those. */
#include "sampling.h"
#include <mpi.h>

enum { RECEIVES = 600, OUTSTANDING = 64, LONGEST = 64 << 10 };

static int other;
static MPI_Win window;
static char *sent, *received;

static void put(long times, int bytes) {
    (void)bytes;
    for (long i = 0; i < times; i++) {
        MPI_Put(sent, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
}

static void fetch_add(long times, int bytes) {
    unsigned long long one = 1, old;
    (void)bytes;
    for (long i = 0; i < times; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_UNSIGNED_LONG_LONG, 1, 0, MPI_SUM, window);
        MPI_Win_flush(1, window);
    }
}

static void lock_as(int kind, int target, long times) {
    for (long i = 0; i < times; i++) {
        MPI_Win_lock(kind, target, 0, window);
        MPI_Win_unlock(target, window);
    }
}

static void lock_shared(long times, int bytes) {
    (void)bytes;
    lock_as(MPI_LOCK_SHARED, 1, times);
}

static void lock_exclusive(long times, int bytes) {
    (void)bytes;
    lock_as(MPI_LOCK_EXCLUSIVE, 1, times);
}

static void lock_both(long times, int bytes) {
    (void)bytes;
    lock_as(MPI_LOCK_EXCLUSIVE, 0, times);
}

static void message(long times, int bytes) {
    for (long i = 0; i < times; i++) {
        if (me == 0) MPI_Send(sent, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(received, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me == 1) MPI_Send(sent, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void outstanding(long times, int bytes) {
    MPI_Request requests[OUTSTANDING];
    for (long i = 0; i < times; i++) {
        for (int n = 0; n < OUTSTANDING; n++) {
            if (me == 0)
                MPI_Isend(sent + n * bytes, bytes, MPI_BYTE, 1, n, MPI_COMM_WORLD, &requests[n]);
            else
                MPI_Irecv(received + n * bytes, bytes, MPI_BYTE, 0, n, MPI_COMM_WORLD, &requests[n]);
        }
        MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE);
    }
    /* All of rank 0's messages have been received when it stops its clock. */
    if (me == 1) MPI_Send(sent, 0, MPI_BYTE, 0, OUTSTANDING, MPI_COMM_WORLD);
    if (me == 0) MPI_Recv(received, 0, MPI_BYTE, 1, OUTSTANDING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The exchange of a ring of two, whose neighbours on both sides are the other rank. */
static MPI_Request ring_requests[4];
static int ring_count;

static void ring(long times, int bytes) {
    (void)bytes;
    for (long i = 0; i < times; i++) {
        MPI_Startall(ring_count, ring_requests);
        MPI_Waitall(ring_count, ring_requests, MPI_STATUSES_IGNORE);
    }
}

static void ring_of(const char *name, int bytes, int collective) {
    if (collective) {
#if MPI_VERSION >= 4
        MPI_Comm comm;
        int size = 2, periodic = 1;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
        MPI_Neighbor_alltoall_init(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, comm, MPI_INFO_NULL, ring_requests);
        ring_count = 1;
#else
        return;
#endif
    } else {
        for (int side = 0; side < 2; side++) {
            MPI_Recv_init(received + side * bytes, bytes, MPI_BYTE, other, side, MPI_COMM_WORLD, &ring_requests[side]);
            MPI_Send_init(sent + side * bytes, bytes, MPI_BYTE, other, side, MPI_COMM_WORLD, &ring_requests[2 + side]);
        }
        ring_count = 4;
    }
    measure(name, bytes, 1, 0, ring);
    for (int n = 0; n < ring_count; n++) MPI_Request_free(&ring_requests[n]);
}

static void barrier(long times, int bytes) {
    (void)bytes;
    for (long i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(long times, int bytes) {
    double mine = 1, all;
    (void)bytes;
    for (long i = 0; i < times; i++) MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(long times, int bytes) {
    (void)bytes;
    for (long i = 0; i < times; i++) MPI_Bcast(sent, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void pairs(void) {
    char *memory;
    MPI_Win_allocate(LINE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, LINE);
    MPI_Barrier(MPI_COMM_WORLD);
    measure("lock-shared", 0, 1, 1, lock_shared);
    measure("lock-exclusive", 0, 1, 1, lock_exclusive);
    measure("lock-both-exclusive", 0, 1, 0, lock_both);
    MPI_Win_lock_all(0, window);
    measure("put", 8, 1, 1, put);
    measure("fetch-add", 8, 1, 1, fetch_add);
    MPI_Win_unlock_all(window);
    measure("message", 8, 2, 0, message);
    static MPI_Request waiting[RECEIVES];
    static char unsent[RECEIVES * 8];
    for (int n = 0; n < RECEIVES; n++)
        MPI_Irecv(unsent + n * 8, 8, MPI_BYTE, other, 1000 + n, MPI_COMM_WORLD, &waiting[n]);
    measure("message-behind-600", 8, 2, 0, message);
    for (int n = 0; n < RECEIVES; n++) {
        MPI_Cancel(&waiting[n]);
        MPI_Wait(&waiting[n], MPI_STATUS_IGNORE);
    }
    measure("outstanding-64", 8, OUTSTANDING, 0, outstanding);
    const int sizes[] = {0, 8 << 10, LONGEST};
    for (int n = 0; n < 3; n++) {
        ring_of("ring-sends", sizes[n], 0);
        ring_of("ring-collective", sizes[n], 1);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((ranks != 2 && ranks != RANKS) || !prepare(argc, argv)) {
        fprintf(stderr, "%d ranks; 2 or %d are needed\n", ranks, RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = 1 - me;
    MPI_Win memory;
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(me == 0 ? sizeof(Shared) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &memory);
    MPI_Win_shared_query(memory, 0, &size, &unit, &shared);
    if (me == 0) memset(shared, 0, sizeof *shared);
    sent = calloc(2, LONGEST);
    received = calloc(2, LONGEST);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks == 2)
        pairs();
    else {
        measure("barrier-4", 0, 1, 0, barrier);
        measure("sum-4", 0, 1, 0, sum);
        measure("broadcast-4", 0, 1, 0, broadcast);
    }
    MPI_Win_free(&memory);
    MPI_Finalize();
    return 0;
}
