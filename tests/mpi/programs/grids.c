/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two grids. The last rank is not in the first grid. Each process prints its rank and its coordinates; -1 outside a grid.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const int extents[] = {2, 2}, rings[] = {0, 1}, line[] = {5}, open_line[] = {0};
    MPI_Comm plane, row;
    int rank, place[2] = {-1, -1}, along[1];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, rings, 1, &plane);
    if (plane != MPI_COMM_NULL) MPI_Cart_coords(plane, rank, 2, place);
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, open_line, 0, &row);
    MPI_Cart_coords(row, rank, 1, along);
    printf("%d %d %d %d\n", rank, place[0], place[1], along[0]);
    MPI_Finalize();
    return 0;
}
