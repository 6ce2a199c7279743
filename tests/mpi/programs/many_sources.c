/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Neighbourhood collectives of a rank with itself: COUNT edges of a graph, or two edges in each of COUNT dimensions.
 *
 *     many_sources graph|grid COUNT
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 1000

int main(int argc, char **argv)
{
    static int ranks[COUNT_MAX], ones[COUNT_MAX], data[2 * COUNT_MAX];
    const int count = argc > 2 ? atoi(argv[2]) : 1;
    int sent = 0;
    MPI_Comm made;

    MPI_Init(&argc, &argv);
    for (int i = 0; i < count; i++) ones[i] = 1;
    if (argc > 1 && !strcmp(argv[1], "grid"))
        MPI_Cart_create(MPI_COMM_WORLD, count, ones, ones, 0, &made);
    else
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, ranks, ones, count, ranks, ones, MPI_INFO_NULL, 0, &made);
    for (int i = 0; i < 50; i++) MPI_Neighbor_allgather(&sent, 1, MPI_INT, data, 1, MPI_INT, made);
    MPI_Comm_free(&made);
    MPI_Finalize();
    return 0;
}
