// SPDX-License-Identifier: Apache-2.0
// Programs of seven kinds, divided among the ranks: scaling_kinds KIND strong|weak ROUNDS. In a round, ranks sleep for
// 0.2 s / ranks (strong) or 0.05 s (weak), as if they computed, then communicate by the kind. Waiting ranks sleep too:
// Open MPI yields between polls (mpi_yield_when_idle), so that many ranks share few processors without delay.
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;

static void rest(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left));
}

int sched_yield(void)
{
    rest(2e-4);
    return 0;
}

// Five steps on a square grid: the edges of a part go to four neighbours. One rank has a tenth more to compute.
static void halo(double seconds, int bytes)
{
    static MPI_Comm grid = MPI_COMM_NULL;
    static char edges[8][1 << 16];
    int extents[2] = {0, 0}, rings[2] = {1, 1}, before, after;
    if (grid == MPI_COMM_NULL) {
        MPI_Dims_create(ranks, 2, extents);
        MPI_Cart_create(MPI_COMM_WORLD, 2, extents, rings, 0, &grid);
    }
    for (int step = 0; step < 5; ++step) {
        rest(seconds / 5 * (rank == ranks - 1 ? 1.1 : 1));
        for (int dimension = 0; dimension < 2; ++dimension) {
            MPI_Cart_shift(grid, dimension, 1, &before, &after);
            MPI_Sendrecv(edges[0], bytes >> 4, MPI_CHAR, after, 0, edges[1], bytes >> 4, MPI_CHAR, before, 0, grid,
                         MPI_STATUS_IGNORE);
            MPI_Sendrecv(edges[2], bytes >> 4, MPI_CHAR, before, 0, edges[3], bytes >> 4, MPI_CHAR, after, 0, grid,
                         MPI_STATUS_IGNORE);
        }
    }
}

// Ten iterations, each with two reductions over all ranks; 1 ms of each is serial work.
static void solver(double seconds, int bytes)
{
    double mine[2] = {1, bytes}, sums[2];
    for (int iteration = 0; iteration < 10; ++iteration) {
        rest(seconds / 10);
        MPI_Allreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        rest(1e-3);
        MPI_Allreduce(mine, sums, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
}

// A transform: every part goes to every rank, twice.
static void transform(double seconds, int bytes)
{
    char *parts = calloc((size_t)bytes * (size_t)ranks, 2), *others = parts + (size_t)bytes * (size_t)ranks;
    for (int turn = 0; turn < 2; ++turn) {
        rest(seconds / 2);
        MPI_Alltoall(parts, bytes, MPI_CHAR, others, bytes, MPI_CHAR, MPI_COMM_WORLD);
    }
    free(parts);
}

// In a round, rank 0 hands out 24 tasks (strong), or 6 a rank (weak), of unequal length. Each task takes rank 0 1 ms.
static void workers(double seconds, int tasks)
{
    double task = 0;
    if (ranks == 1) {
        rest(seconds);
        return;
    }
    if (rank) {
        for (;;) {
            MPI_Send(&task, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(&task, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task < 0) return;
            rest(task);
        }
    }
    MPI_Status status;
    for (int number = 0; number < tasks + ranks - 1; ++number) {
        MPI_Recv(&task, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        if (number < tasks) rest(1e-3);
        task = number < tasks ? seconds * ranks / tasks * (0.5 + number % 3 * 0.5) : -1;
        MPI_Send(&task, 1, MPI_DOUBLE, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
    }
}

// Rank 0 prepares 4 ms alone, hands out the data, and collects the results: serial work.
static void serial(double seconds, int bytes)
{
    char *all = calloc((size_t)bytes, (size_t)ranks + 1);
    for (int step = 0; step < 2; ++step) {
        if (rank == 0) rest(4e-3);
        MPI_Bcast(all, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        rest(seconds / 2);
        MPI_Gather(all, bytes, MPI_CHAR, rank ? NULL : all + bytes, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    free(all);
}

// A sweep over the ranks in turn, as in a triangular system. A rank starts a block when the rank before has ended it.
static void sweep(double seconds, int bytes)
{
    static char edge[1 << 16];
    for (int block = 0; block < 8; ++block) {
        if (rank) MPI_Recv(edge, bytes, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        rest(seconds / 8);
        if (rank < ranks - 1) MPI_Send(edge, bytes, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
    }
}

// Bodies: each rank needs the bodies of all ranks, whose numbers differ by up to a fifth.
static void bodies(double seconds, int bytes)
{
    char *all = calloc((size_t)bytes, (size_t)ranks + 1);
    for (int step = 0; step < 4; ++step) {
        MPI_Allgather(all, bytes, MPI_CHAR, all + bytes, bytes, MPI_CHAR, MPI_COMM_WORLD);
        rest(seconds / 4 * (0.9 + 0.2 * ((rank * 7 + step) % 5) / 4));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int strong = argv[2][0] == 's';
    double seconds = strong ? 0.2 / ranks : 0.05;
    for (int round = 0; round < atoi(argv[3]); ++round) {
        if (!strcmp(argv[1], "halo")) halo(seconds, strong ? 1 << 18 >> (ranks > 4) >> (ranks > 12) : 1 << 18);
        if (!strcmp(argv[1], "solver")) solver(seconds, 8);
        if (!strcmp(argv[1], "transform")) transform(seconds, (strong ? (1 << 22) / ranks / ranks : (1 << 20) / ranks));
        if (!strcmp(argv[1], "serial")) serial(seconds, strong ? (1 << 18) / ranks : 1 << 16);
        if (!strcmp(argv[1], "sweep")) sweep(seconds, 1 << 12);
        if (!strcmp(argv[1], "bodies")) bodies(seconds, strong ? (1 << 18) / ranks : 1 << 15);
        if (!strcmp(argv[1], "workers")) workers(seconds, strong ? 24 : 6 * ranks);
    }
    MPI_Finalize();
    return 0;
}
