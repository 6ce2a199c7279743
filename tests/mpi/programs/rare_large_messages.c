/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Ranks 0, 2, ... send many small and few large messages to ranks 1, 3, ..., by blocking and persistent calls.
 */
#include <mpi.h>

enum { ROUNDS = 10000, RARE = 1000, LARGE = 8192 };

static double data[LARGE];

int main(int argc, char **argv)
{
    MPI_Request small, large;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank % 2) {
        MPI_Recv_init(data, 1, MPI_DOUBLE, rank ^ 1, 2, MPI_COMM_WORLD, &small);
        MPI_Recv_init(data, LARGE, MPI_DOUBLE, rank ^ 1, 2, MPI_COMM_WORLD, &large);
    } else {
        MPI_Send_init(data, 1, MPI_DOUBLE, rank ^ 1, 2, MPI_COMM_WORLD, &small);
        MPI_Send_init(data, LARGE, MPI_DOUBLE, rank ^ 1, 2, MPI_COMM_WORLD, &large);
    }
    for (int i = 1; i <= ROUNDS; i++) {
        const int items = i % RARE ? 1 : LARGE;

        if (rank % 2)
            MPI_Recv(data, items, MPI_DOUBLE, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(data, items, MPI_DOUBLE, rank ^ 1, 1, MPI_COMM_WORLD);
        MPI_Start(i % RARE ? &small : &large);
        MPI_Wait(i % RARE ? &small : &large, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&small);
    MPI_Request_free(&large);
    MPI_Finalize();
    return 0;
}
