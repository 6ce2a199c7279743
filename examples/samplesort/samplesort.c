/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samplesort. Every rank begins with random keys. Splitters, chosen from samples of all keys, divide the keys into a
 * bucket for each rank. Then every rank sends its keys to the ranks of their buckets, all at once, and sorts its
 * bucket. The exchange is a region.
 *
 *     mpicc $(ibprof lib --cflags) -o samplesort samplesort.c
 *     ibprof run -- mpirun -n 64 --oversubscribe ./samplesort 65536       (keys a rank)
 */
#include <ibprof.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEYS = 1 << 16, /* a rank */
    SAMPLES = 32,   /* that a rank samples from its keys */
    SEED = 20150519 /* the same in every run, so that runs can be compared */
};

typedef struct {
    int rank, ranks;
} World;

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static int compare(const void *one, const void *other)
{
    int a = *(const int *)one, b = *(const int *)other;
    return (a > b) - (a < b);
}

static unsigned draw(unsigned long long *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(*state >> 33);
}

/* Returns ranks - 1 keys that divide all keys into buckets of about equal size. */
static int *find_splitters(World world, const int *keys, int count, unsigned long long *state)
{
    int *mine = allocate(SAMPLES, sizeof(int));
    int *all = allocate((size_t)world.ranks * SAMPLES, sizeof(int));
    int *splitters = allocate((size_t)world.ranks, sizeof(int));

    for (int i = 0; i < SAMPLES; i++) mine[i] = keys[draw(state) % (unsigned)count];
    MPI_Allgather(mine, SAMPLES, MPI_INT, all, SAMPLES, MPI_INT, MPI_COMM_WORLD);
    qsort(all, (size_t)world.ranks * SAMPLES, sizeof(int), compare);
    for (int i = 1; i < world.ranks; i++) splitters[i - 1] = all[i * SAMPLES];
    free(mine);
    free(all);
    return splitters;
}

/* Counts the sorted keys of each bucket: a key goes to the first bucket whose splitter is above it. */
static void count_buckets(World world, const int *keys, int count, const int *splitters, int *sizes)
{
    int bucket = 0;
    for (int i = 0; i < count; i++) {
        while (bucket < world.ranks - 1 && keys[i] >= splitters[bucket]) bucket++;
        sizes[bucket]++;
    }
}

static int to_offsets(World world, const int *sizes, int *offsets)
{
    int total = 0;
    for (int i = 0; i < world.ranks; i++) {
        offsets[i] = total;
        total += sizes[i];
    }
    return total;
}

/* Sends every key to the rank of its bucket; returns this rank's keys and their number. */
static int *exchange_keys(World world, const int *keys, int *sizes, int *received)
{
    int *arriving = allocate((size_t)world.ranks, sizeof(int));
    int *from = allocate((size_t)world.ranks, sizeof(int));
    int *to = allocate((size_t)world.ranks, sizeof(int));

    MPI_Alltoall(sizes, 1, MPI_INT, arriving, 1, MPI_INT, MPI_COMM_WORLD);
    to_offsets(world, sizes, from);
    *received = to_offsets(world, arriving, to);
    int *bucket = allocate((size_t)*received, sizeof(int));

    ibprof_region_begin("key exchange");
    MPI_Alltoallv(keys, sizes, from, MPI_INT, bucket, arriving, to, MPI_INT, MPI_COMM_WORLD);
    ibprof_region_end();

    free(arriving);
    free(from);
    free(to);
    return bucket;
}

/* Returns true if the keys of lower ranks are at most the keys of higher ranks, and all keys arrived. */
static int is_sorted(World world, const int *bucket, int received, long long expected)
{
    int ends[2] = {received ? bucket[0] : INT_MAX, received ? bucket[received - 1] : INT_MIN};
    int *all = allocate(2 * (size_t)world.ranks, sizeof(int));
    long long mine = received, total = 0;
    int highest = INT_MIN, sorted = 1;

    MPI_Gather(ends, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &total, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; world.rank == 0 && i < world.ranks; i++) {
        if (all[2 * i] > all[2 * i + 1]) continue; /* an empty bucket */
        sorted &= all[2 * i] >= highest;
        highest = all[2 * i + 1];
    }
    free(all);
    return world.rank || (sorted && total == expected);
}

int main(int argc, char **argv)
{
    World world;
    int count = argc > 1 ? atoi(argv[1]) : KEYS, received = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    if (count < 1) MPI_Abort(MPI_COMM_WORLD, 2);

    unsigned long long state = SEED + (unsigned long long)world.rank * 977;
    int *keys = allocate((size_t)count, sizeof(int));
    for (int i = 0; i < count; i++) keys[i] = (int)draw(&state);
    qsort(keys, (size_t)count, sizeof(int), compare);

    int *splitters = find_splitters(world, keys, count, &state);
    int *sizes = allocate((size_t)world.ranks, sizeof(int));
    count_buckets(world, keys, count, splitters, sizes);
    int *bucket = exchange_keys(world, keys, sizes, &received);
    qsort(bucket, (size_t)received, sizeof(int), compare);

    int sorted = is_sorted(world, bucket, received, (long long)count * world.ranks);
    if (world.rank == 0) printf("%lld keys %s\n", (long long)count * world.ranks, sorted ? "sorted" : "NOT SORTED");

    free(keys);
    free(splitters);
    free(sizes);
    free(bucket);
    MPI_Finalize();
    return sorted ? 0 : 1;
}
