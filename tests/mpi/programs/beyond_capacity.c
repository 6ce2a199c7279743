/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A single rank exceeds the space for samples: by a graph with many edges to the rank, and by too many communicators.
 * Then the rank frees communicators, and creates communicators of a group of the last communicator.
 */
#include <mpi.h>

#define MANY 500
#define GROUPS 10
#define EDGES 200

int main(int argc, char **argv)
{
    static int ranks[EDGES], weights[EDGES], data[EDGES];
    MPI_Comm made[MANY], of_group, graph;
    MPI_Group group;
    int sent = 0;

    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, ranks, weights, EDGES, ranks, weights, MPI_INFO_NULL, 0,
                                   &graph);
    for (int i = 0; i < 3; i++) MPI_Neighbor_allgather(&sent, 1, MPI_INT, data, 1, MPI_INT, graph);
    MPI_Comm_free(&graph);
    for (int i = 0; i < MANY; i++) MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    for (int i = 0; i < MANY - 1; i++) MPI_Comm_free(&made[i]);
    MPI_Comm_group(made[MANY - 1], &group);
    for (int i = 0; i < GROUPS; i++) {
        MPI_Comm_create_group(made[MANY - 1], group, i, &of_group);
        MPI_Comm_free(&of_group);
    }
    MPI_Group_free(&group);
    MPI_Comm_free(&made[MANY - 1]);
    MPI_Finalize();
    return 0;
}
