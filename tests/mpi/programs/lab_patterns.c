// SPDX-License-Identifier: Apache-2.0
// A pattern of messages, timed from a barrier to a barrier: lab_patterns PATTERN BYTES ROUNDS [REST]. Before a round
// ranks rest for REST milliseconds, as if they computed. Rank 0 prints the seconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUP = 4, LARGEST = 16 << 20, MOST_RANKS = 1024 };

static char sent[LARGEST], received[LARGEST];
static int rank, ranks, bytes;

// On a torus as square as the number of ranks allows.
static void exchange_halo(void)
{
    int sides[2] = {0, 0};
    MPI_Dims_create(ranks, 2, sides);
    int row = rank / sides[1], column = rank % sides[1];
    int near[4] = {(row + 1) % sides[0] * sides[1] + column, (row + sides[0] - 1) % sides[0] * sides[1] + column,
                   row * sides[1] + (column + 1) % sides[1], row * sides[1] + (column + sides[1] - 1) % sides[1]};
    MPI_Request requests[8];
    for (int side = 0; side < 4; ++side) {
        MPI_Irecv(received + side * bytes, bytes, MPI_CHAR, near[side], side ^ 1, MPI_COMM_WORLD, &requests[side]);
        MPI_Isend(sent + side * bytes, bytes, MPI_CHAR, near[side], side, MPI_COMM_WORLD, &requests[4 + side]);
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

// Return the bytes of a part, as in a sort of unevenly distributed keys: 0.25 to 1.75 times the mean.
static int part(int from, int to)
{
    unsigned mixed = (unsigned)(from * 7919 + to * 104729 + 12345) * 2654435761U;
    return bytes / 4 + (int)((double)bytes * 1.5 * (mixed >> 8) / (1 << 24));
}

static void sort_samples(void)
{
    static int out[MOST_RANKS], out_at[MOST_RANKS], in[MOST_RANKS], in_at[MOST_RANKS];
    for (int peer = 0, out_end = 0, in_end = 0; peer < ranks; ++peer) {
        out[peer] = part(rank, peer), in[peer] = part(peer, rank);
        out_at[peer] = out_end, in_at[peer] = in_end;
        out_end += out[peer], in_end += in[peer];
    }
    MPI_Alltoallv(sent, out, out_at, MPI_CHAR, received, in, in_at, MPI_CHAR, MPI_COMM_WORLD);
}

// Within groups of distant ranks.
static void transpose(void)
{
    static MPI_Comm column = MPI_COMM_NULL;
    if (column == MPI_COMM_NULL) MPI_Comm_split(MPI_COMM_WORLD, rank % (ranks / GROUP), rank, &column);
    MPI_Alltoall(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, column);
}

static void exchange_with(int peer)
{
    MPI_Sendrecv(sent, bytes, MPI_CHAR, peer, 0, received, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void communicate(const char *pattern)
{
    if (!strcmp(pattern, "halo"))
        exchange_halo();
    else if (!strcmp(pattern, "samplesort"))
        sort_samples();
    else if (!strcmp(pattern, "transpose"))
        transpose();
    else if (!strcmp(pattern, "bcast"))
        MPI_Bcast(sent, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    else if (!strcmp(pattern, "alltoall"))
        MPI_Alltoall(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, MPI_COMM_WORLD);
    else if (!strcmp(pattern, "gather"))
        MPI_Gather(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    else if (!strcmp(pattern, "pairs"))
        exchange_with((rank + ranks / 2) % ranks);
    else if (!strcmp(pattern, "neighbours"))
        exchange_with(rank ^ 1);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void rest(long milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    bytes = atoi(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int round = 0; round < atoi(argv[3]); ++round) {
        if (argc > 4) rest(atol(argv[4]));
        communicate(argv[1]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
