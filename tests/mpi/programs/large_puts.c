/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank 0 puts BYTES into the window of rank 1, which waits in a barrier. Then rank 0 sends BYTES in partitions.
 *
 *     large_puts BYTES
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 400000;
    char *data = calloc(1, (size_t)bytes), *base;
    MPI_Request request;
    MPI_Win window;
    int me;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    if (!me) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        MPI_Put(data, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    if (me)
        MPI_Precv_init(data, 1, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Psend_init(data, 1, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (!me) MPI_Pready(0, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Finalize();
    free(data);
    return 0;
}
