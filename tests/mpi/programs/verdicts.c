// SPDX-License-Identifier: Apache-2.0
// A job that spends its time as KIND says: verdicts KIND SECONDS.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BULK_BYTES = 4 << 20, SMALL_BYTES = 32 };

static char sent[BULK_BYTES], received[BULK_BYTES];
static int rank, ranks;

static void rest(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left));
}

static void shift(int bytes)
{
    MPI_Sendrecv(sent, bytes, MPI_CHAR, (rank + 1) % ranks, 0, received, bytes, MPI_CHAR, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void work_alone(double seconds)
{
    rest(seconds);
    shift(SMALL_BYTES);
}

static void come_late_to_a_collective(double seconds)
{
    double one = 1, sum;
    for (int round = 0; round < 10; ++round) {
        if (rank == 1) rest(seconds / 10);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

// A different rank each round, so that all wait equally long.
static void take_turns_to_be_late(double seconds)
{
    for (int round = 0; round < 4 * ranks; ++round) {
        if (round % ranks == rank) rest(seconds / (4 * ranks));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Each rank waits for the previous rank and then works, so all ranks are outside MPI equally long.
static void work_in_turn(double seconds)
{
    if (rank) MPI_Recv(received, SMALL_BYTES, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rest(seconds / ranks);
    if (rank + 1 < ranks) MPI_Send(sent, SMALL_BYTES, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void serve_others(double seconds)
{
    if (rank == 0) {
        for (int other = 1; other < ranks; ++other) {
            rest(seconds / (ranks - 1));
            MPI_Send(sent, SMALL_BYTES, MPI_CHAR, other, 2, MPI_COMM_WORLD);
        }
    } else {
        MPI_Recv(received, SMALL_BYTES, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

// All other ranks wait for data that rank 0 computes. Rank 0 leaves the call at once.
static void compute_on_rank_0(double seconds)
{
    for (int round = 0; round < 4; ++round) {
        if (rank == 0) rest(seconds / 4);
        MPI_Bcast(sent, SMALL_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
}

// Meanwhile, the other ranks are in MPI_Finalize.
static void end_late_on_rank_0(double seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) rest(seconds);
}

static void exchange(double seconds, int bytes)
{
    double begin = MPI_Wtime();
    int ends;
    do {
        for (int round = 0; round < (bytes > SMALL_BYTES ? 5 : 50); ++round) shift(bytes);
        // Rank 0 decides for all ranks: by its own clock, a rank could go on alone.
        ends = MPI_Wtime() - begin >= seconds;
        MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (!ends);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *kind = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    if (!strcmp(kind, "alone"))
        work_alone(seconds);
    else if (!strcmp(kind, "late"))
        come_late_to_a_collective(seconds);
    else if (!strcmp(kind, "rotating"))
        take_turns_to_be_late(seconds);
    else if (!strcmp(kind, "turns"))
        work_in_turn(seconds);
    else if (!strcmp(kind, "server"))
        serve_others(seconds);
    else if (!strcmp(kind, "root"))
        compute_on_rank_0(seconds);
    else if (!strcmp(kind, "end"))
        end_late_on_rank_0(seconds);
    else if (!strcmp(kind, "small"))
        exchange(seconds, SMALL_BYTES);
    else if (!strcmp(kind, "bulk"))
        exchange(seconds, BULK_BYTES);
    MPI_Finalize();
    return 0;
}
