/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A program for a mock MPI, with every kind of call whose handles ibprof reads.
 */
#include "mpi.h"

#include <stdio.h>
#include <stdlib.h>

static char buffer[4096], window_memory[4096];

static void wait_for(MPI_Request request)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_again_and_again(int rank)
{
    MPI_Request request;

    for (int i = 0; i < 3 && rank == 1; i++) MPI_Recv(buffer, 300, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank) return;
    MPI_Send_init(buffer, 300, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            MPI_Startall(1, &request);
        else
            MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1;
    MPI_Comm other;
    MPI_Request request;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Bcast(buffer, 1000, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (size > 1 && !rank) MPI_Send(buffer, 500, MPI_BYTE, 1, 1, other);
    if (rank == 1) MPI_Recv(buffer, 500, MPI_BYTE, 0, 1, other, MPI_STATUS_IGNORE);
    MPI_Ibcast(buffer, 700, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    wait_for(request);
    MPI_Ibarrier(other, &request);
    wait_for(request);
    if (size > 1) send_again_and_again(rank);
    MPI_Win_create(window_memory, sizeof window_memory, 1, MPI_INFO_NULL, other, &window);
    MPI_Win_fence(0, window);
    if (!rank) MPI_Put(buffer, 200, MPI_BYTE, size - 1, 0, 200, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&other);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) printf("done by %d\n", size);
    fflush(stdout);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
