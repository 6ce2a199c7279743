/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The program whose traffic is in this folder's recordings.
 */
#include "ibprof.h"
#include <mpi.h>
#include <string.h>
static char out[1 << 16], in[1 << 16];
int main(int argc, char **argv)
{
    int rank, size, place[2], extents[2] = {1, 2}, periods[2] = {0, 1};
    MPI_Comm grid;
    MPI_Win window;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Bcast(out, 1000, MPI_BYTE, 0, MPI_COMM_WORLD);
    IBPROF_REGION();
    ibprof_region_begin("exchange");
    MPI_Sendrecv(out, 300, MPI_BYTE, (rank + 1) % size, 7, in, sizeof in, MPI_BYTE, (rank + size - 1) % size, 7, grid,
                 MPI_STATUS_IGNORE);
    MPI_Alltoall(out, 50, MPI_BYTE, in, 50, MPI_BYTE, MPI_COMM_WORLD);
    ibprof_region_end();
    MPI_Iallreduce(out, in, 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, 77, MPI_BYTE, (rank + 1) % size, 0, 77, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
