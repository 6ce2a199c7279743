/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives with wildcards that are cancelled before or after their message arrived, among exchanges.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, in, out = 1, cancelled, lost = 0;
    MPI_Request request;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, i % 2 ? MPI_STATUS_IGNORE : &status);
        if (i % 2 == 0) MPI_Test_cancelled(&status, &cancelled), lost += !cancelled;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(&out, 1, MPI_INT, !rank, 1, &in, 1, MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&out, 1, MPI_INT, !rank, 2, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        /* The message has arrived. Open MPI cannot cancel the receive. If MPICH can, MPI_Recv receives the message. */
        MPI_Probe(!rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled) MPI_Recv(&in, 1, MPI_INT, !rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return lost;
}
