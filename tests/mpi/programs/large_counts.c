/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls of MPI-4 with counts of type MPI_Count: a ring of messages in two forms, and collectives.
 *
 *     large_counts BYTES
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const MPI_Count bytes = argc > 1 ? atoi(argv[1]) : 1000;
    char *from, *into;
    int me, ranks;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc((size_t)ranks, (size_t)bytes);
    into = calloc((size_t)ranks, (size_t)bytes);
    MPI_Irecv_c(into, bytes, MPI_BYTE, (me + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &request);
    MPI_Send_c(from, bytes, MPI_BYTE, (me + 1) % ranks, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv_c(from, bytes, MPI_BYTE, (me + 1) % ranks, 1, into, bytes, MPI_BYTE, (me + ranks - 1) % ranks, 1,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast_c(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Alltoall_c(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
