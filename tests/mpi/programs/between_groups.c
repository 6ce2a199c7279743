/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages over an intercommunicator between the lower and the upper half of the ranks. The upper half has the reverse
 * order of ranks. Each rank sends BYTES to each rank of the other half.
 *
 *     between_groups BYTES
 */
#include <mpi.h>
#include <stdlib.h>

#define OTHERS_MAX 16

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 1000;
    char *from = calloc(1, (size_t)bytes), *into = calloc(OTHERS_MAX, (size_t)bytes);
    MPI_Request requests[OTHERS_MAX];
    MPI_Comm half, comm;
    int me, ranks, upper, others;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    upper = me >= ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, upper ? -me : me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : ranks - 1, 1, &comm);
    MPI_Comm_remote_size(comm, &others);
    for (int other = 0; other < others; other++)
        MPI_Irecv(into + other * bytes, bytes, MPI_BYTE, other, 0, comm, &requests[other]);
    for (int other = 0; other < others; other++) MPI_Send(from, bytes, MPI_BYTE, other, 0, comm);
    MPI_Waitall(others, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
