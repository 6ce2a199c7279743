/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A nonblocking broadcast whose later rounds are sent from within other calls: a barrier, a blocking broadcast on another
 * communicator, and the wait.
 *
 *     overlap_known BYTES       3 x BYTES in the nonblocking broadcast, 2 x BYTES in the blocking one
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Comm other;
    char *from, *too;
    int bytes;

    MPI_Init(&argc, &argv);
    bytes = argc > 1 ? atoi(argv[1]) : 1000;
    from = calloc(3, (size_t)bytes);
    too = calloc(3, (size_t)bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Ibcast(from, 3 * bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(too, 2 * bytes, MPI_BYTE, 0, other);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
    free(from);
    free(too);
    MPI_Finalize();
    return 0;
}
