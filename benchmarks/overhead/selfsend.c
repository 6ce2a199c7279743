/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A rank that sends 8 bytes to itself: Irecv, Send, Wait, so that the time contains only MPI's and ibprof's work.
 * Prints the nanoseconds of a message in the fastest of many batches, each shorter than a time slice of the scheduler, so
 * that other load on the machine does not disturb all batches.
 *
 *     selfsend MESSAGES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 20000

static double time_batch(void)
{
    char from[8] = "", into[8];
    MPI_Request request;
    const double start = MPI_Wtime();

    for (long i = 0; i < BATCH; i++) {
        MPI_Irecv(into, sizeof into, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Send(from, sizeof from, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - start) / BATCH * 1e9;
}

int main(int argc, char **argv)
{
    double least = 1e30;

    if (argc < 2) return 2;
    MPI_Init(&argc, &argv);
    for (long left = atol(argv[1]); left > 0; left -= BATCH) {
        const double ns = time_batch();

        if (ns < least) least = ns;
    }
    printf("%.3f\n", least);
    MPI_Finalize();
    return 0;
}
