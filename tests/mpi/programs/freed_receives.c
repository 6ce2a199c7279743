/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank 0 frees receives before their messages are sent, after their messages arrived, or after cancelling the receives.
 *
 *     freed_receives RECEIVES
 */
#include <mpi.h>
#include <stdlib.h>

#define BYTES 1000
#define MOST 100

int main(int argc, char **argv)
{
    const int receives = argc > 1 ? atoi(argv[1]) : 1;
    static char from[BYTES], into[MOST][BYTES];
    MPI_Request request;
    MPI_Status status;
    int me;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 0; i < receives && i < MOST; i++) {
        if (!me) {
            MPI_Irecv(into[i], BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (me == 1) MPI_Ssend(from, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD);
        if (me == 1) MPI_Send(from, BYTES, MPI_BYTE, 0, MOST, MPI_COMM_WORLD);
        if (!me) {
            MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Irecv(into[i], BYTES, MPI_BYTE, 1, MOST, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
            MPI_Irecv(into[i], BYTES, MPI_BYTE, 1, MOST + 1, MPI_COMM_WORLD, &request);
            MPI_Cancel(&request);
            MPI_Request_free(&request);
        }
    }
    MPI_Finalize();
    return 0;
}
