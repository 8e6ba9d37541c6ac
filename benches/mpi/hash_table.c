/* A hash table in the memory of all ranks, as `examples/distributed_hashtable.rs` uses it: a volume of buckets and a heap
 * at each rank, which a lock of its window protects; one insert for nine lookups.
 *
 *   hash_table CORES KEYS */
#include "program.h"

enum { LINE = 8, CELL = 4 };

typedef unsigned long long Word;

static MPI_Win window;
static Word buckets, heap;

/* SplitMix64. */
static Word mixed(Word z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static int volume(Word key) {
    return (int)((mixed(key) & 0xffffffff) * ranks >> 32);
}

static Word value_of(Word key) {
    return key * key + 1;
}

static void get(int rank, Word at, Word *words, int count) {
    MPI_Get(words, count, MPI_UNSIGNED_LONG_LONG, rank, at, count, MPI_UNSIGNED_LONG_LONG, window);
    MPI_Win_flush(rank, window);
}

static void put(int rank, Word at, const Word *words, int count) {
    MPI_Put(words, count, MPI_UNSIGNED_LONG_LONG, rank, at, count, MPI_UNSIGNED_LONG_LONG, window);
    MPI_Win_flush(rank, window);
}

/* Looks for a key from its bucket on; returns whether it is there. Gives the bucket, and the last cell read. */
static int find(int rank, Word key, Word *bucket, Word first[CELL], Word cell[CELL], Word *at) {
    *bucket = *at = LINE + CELL * ((mixed(key) >> 32) * buckets >> 32);
    get(rank, *at, first, CELL);
    memcpy(cell, first, CELL * sizeof *cell);
    while (cell[0] && cell[1] != key && cell[3]) {
        *at = LINE + CELL * cell[3];
        get(rank, *at, cell, CELL);
    }
    return cell[0] && cell[1] == key;
}

static int insert(Word key, Word value) {
    int rank = volume(key), is_new;
    Word bucket, first[CELL], cell[CELL], at, used;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    is_new = !find(rank, key, &bucket, first, cell, &at);
    if (!is_new)
        put(rank, at + 2, &value, 1);
    else if (!first[0]) {
        Word whole[CELL] = {1, key, value, 0};
        put(rank, bucket, whole, CELL);
    } else {
        get(rank, 0, &used, 1);
        if (used >= heap) MPI_Abort(MPI_COMM_WORLD, 3);
        Word number = buckets + used++, whole[CELL] = {1, key, value, first[3]};
        put(rank, LINE + CELL * number, whole, CELL);
        put(rank, bucket + 3, &number, 1);
        put(rank, 0, &used, 1);
    }
    MPI_Win_unlock(rank, window);
    return is_new;
}

/* Returns whether the key is there, and its value. */
static int lookup(Word key, Word *value) {
    int rank = volume(key);
    Word bucket, first[CELL], cell[CELL], at;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    int found = find(rank, key, &bucket, first, cell, &at);
    MPI_Win_unlock(rank, window);
    *value = cell[2];
    return found;
}

int main(int argc, char **argv) {
    begin(argc, argv, 1);
    Word keys = numbers[0], *memory, value;
    buckets = keys * 4 / 5 + 1;
    heap = 8 * keys;
    Word words = LINE + CELL * (buckets + heap);
    MPI_Win_allocate(words * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, window);
    memset(memory, 0, words * sizeof *memory);
    MPI_Win_unlock(me, window);
    MPI_Barrier(MPI_COMM_WORLD);

    int is_right = 1;
    Word inserted = 0, looked = 0, draw = mixed(me);
    double begun = now();
    while (inserted < keys) {
        draw = mixed(draw);
        if (draw % 10 == 0)
            is_right &= insert(me * keys + inserted, value_of(me * keys + inserted)), inserted++;
        else {
            Word key = (draw >> 32) * ranks * keys >> 32;
            looked++;
            if (lookup(key, &value)) is_right &= value == value_of(key);
        }
    }
    double took = (now() - begun) / (inserted + looked);
    MPI_Barrier(MPI_COMM_WORLD);
    for (Word key = 0; key < ranks * keys; key++) is_right &= lookup(key, &value) && value == value_of(key);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    end("call", took, is_right);
    return 0;
}
