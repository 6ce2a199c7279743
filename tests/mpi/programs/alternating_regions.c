/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sends messages to one peer, in two regions by turns. In each region, MPI_Send and MPI_Isend alternate. Messages of
 * the second region are a byte longer.
 *
 *     alternating_regions ROUNDS
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdlib.h>

#define BYTES 100

int main(int argc, char **argv)
{
    char from[BYTES + 1] = "", into[BYTES + 1];
    int me;

    if (argc < 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 0; i < 2 * atoi(argv[1]); i++) {
        const int second = i % 2;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

        ibprof_region_begin(second ? "second" : "first");
        MPI_Irecv(into, BYTES + second, MPI_BYTE, !me, 0, MPI_COMM_WORLD, &requests[0]);
        if (i / 2 % 2)
            MPI_Isend(from, BYTES + second, MPI_BYTE, !me, 0, MPI_COMM_WORLD, &requests[1]);
        else
            MPI_Send(from, BYTES + second, MPI_BYTE, !me, 0, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        ibprof_region_end();
    }
    MPI_Finalize();
    return 0;
}
