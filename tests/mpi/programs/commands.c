/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An all-to-all in a region, a broadcast, and a mark after the broadcast. Ends with the status in its argument.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include "ibprof.h"
int main(int argc, char **argv)
{
    static char out[4000], in[4000];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ibprof_region_begin("exchange");
    MPI_Alltoall(out, 1000, MPI_CHAR, in, 1000, MPI_CHAR, MPI_COMM_WORLD);
    ibprof_region_end();
    MPI_Bcast(out, 100, MPI_CHAR, 0, MPI_COMM_WORLD);
    IBPROF_REGION();
    MPI_Finalize();
    if (rank == 0) printf("done by %d\n", size);
    return argc > 1 ? atoi(argv[1]) : 0;
}
