/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Makes each collective call once, if all MPIs can be set to the same algorithm: agreed BYTES (a multiple of 8).
 */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    const int bytes = count > 1 ? atoi(arguments[1]) : 9600, items = bytes / 8;
    int me, ranks, *counts, *places;
    double *from, *into;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc((size_t)(ranks * items), sizeof *from);
    into = calloc((size_t)(ranks * items), sizeof *into);
    counts = calloc((size_t)ranks, sizeof *counts);
    places = calloc((size_t)ranks, sizeof *places);
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = items - rank;
        places[rank] = rank * items;
    }
    MPI_Bcast(from, items, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(from, items, MPI_DOUBLE, into, items, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gatherv(from, counts[me], MPI_DOUBLE, into, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatter(from, items, MPI_DOUBLE, into, items, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatterv(from, counts, places, MPI_DOUBLE, into, counts[me], MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allgather(from, items, MPI_DOUBLE, into, items, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allgatherv(from, counts[me], MPI_DOUBLE, into, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoall(from, items, MPI_DOUBLE, into, items, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Reduce(from, into, items, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(from, into, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(from, into, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(from, into, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(from, into, items, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
