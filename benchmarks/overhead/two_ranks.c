/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One kind of communication between two ranks, over and over. Rank 0 prints the microseconds of a call: the least of several
 * batches, which other load on the machine disturbs least.
 *
 *     two_ranks PingPong|Bcast|Alltoall|Reduce|Scatter BYTES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 100
#define BATCH_BYTES (8 << 20)
#define CALLS_MAX 1000
#define CALLS_MIN 8

static char *from, *into;
static int me;

static void ping_pong(int bytes)
{
    if (me) MPI_Recv(into, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(from, bytes, MPI_BYTE, !me, 0, MPI_COMM_WORLD);
    if (!me) MPI_Recv(into, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void call(const char *kind, int bytes)
{
    if (!strcmp(kind, "PingPong"))
        ping_pong(bytes);
    else if (!strcmp(kind, "Bcast"))
        MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (!strcmp(kind, "Alltoall"))
        MPI_Alltoall(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
    else if (!strcmp(kind, "Reduce"))
        MPI_Reduce(from, into, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Scatter(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    double least = 1e30;
    int bytes, calls;

    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bytes = atoi(argv[2]);
    calls = BATCH_BYTES / bytes;
    calls = calls > CALLS_MAX ? CALLS_MAX : calls < CALLS_MIN ? CALLS_MIN : calls;
    from = calloc(2, (size_t)bytes);
    into = calloc(2, (size_t)bytes);
    for (int batch = -2; batch < BATCHES; batch++) {
        double start, us;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int i = 0; i < calls; i++) call(argv[1], bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        us = (MPI_Wtime() - start) / calls * 1e6;
        if (batch >= 0 && us < least) least = us;
    }
    if (!me) printf("%.4f\n", least);
    MPI_Finalize();
    return 0;
}
