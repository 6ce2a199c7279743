/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Neighbourhood collectives on a topology: a grid, a directed graph with unequal degrees (made by two calls), or a ring
 * as a graph of MPI-1.
 *
 *     neighbours STYLE grid|adjacent|distributed|graph
 */
#include "collective.h"

#define LARGEST (200 << 10)
#define DEGREE_MAX 16

static char *from, *into;

static void use_all(MPI_Comm comm, int bytes)
{
    int counts[DEGREE_MAX], places[DEGREE_MAX];
    MPI_Aint far_places[DEGREE_MAX];
    MPI_Datatype types[DEGREE_MAX];

    for (int i = 0; i < DEGREE_MAX; i++) {
        counts[i] = bytes;
        places[i] = i * bytes;
        far_places[i] = (MPI_Aint)i * bytes;
        types[i] = MPI_BYTE;
    }
    COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, from, bytes, MPI_BYTE, into, counts, places, MPI_BYTE, comm);
    COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, from, counts, places, MPI_BYTE, into, counts, places, MPI_BYTE,
               comm);
    COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, from, counts, far_places, types, into, counts, far_places,
               types, comm);
}

/* Rank r sends to rank r + 1. Rank 0 also sends to all other ranks. */
static MPI_Comm make_adjacent(int me, int ranks)
{
    int sources[DEGREE_MAX], targets[DEGREE_MAX], in = 0, out = 0;
    MPI_Comm comm;

    sources[in++] = (me + ranks - 1) % ranks;
    if (me && (me + ranks - 1) % ranks) sources[in++] = 0;
    targets[out++] = (me + 1) % ranks;
    for (int rank = 2; !me && rank < ranks; rank++) targets[out++] = rank;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

/* The same edges, all passed by rank 0. */
static MPI_Comm make_distributed(int me, int ranks)
{
    int sources[DEGREE_MAX], degrees[DEGREE_MAX], targets[2 * DEGREE_MAX], edges = 0;
    MPI_Comm comm;

    for (int rank = 0; rank < ranks; rank++) {
        sources[rank] = rank;
        degrees[rank] = rank ? 1 : ranks - 1;
        targets[edges++] = (rank + 1) % ranks;
        for (int other = 2; !rank && other < ranks; other++) targets[edges++] = other;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, me ? 0 : ranks, sources, degrees, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &comm);
    return comm;
}

static MPI_Comm make_graph(int ranks)
{
    int index[DEGREE_MAX], edges[2 * DEGREE_MAX];
    MPI_Comm comm;

    for (int rank = 0; rank < ranks; rank++) {
        index[rank] = 2 * (rank + 1);
        edges[2 * rank] = (rank + ranks - 1) % ranks;
        edges[2 * rank + 1] = (rank + 1) % ranks;
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, &comm);
    return comm;
}

/* Periodic only in the first dimension. */
static MPI_Comm make_grid(int ranks)
{
    int dims[2] = {0, 0};
    MPI_Comm comm;

    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){1, 0}, 0, &comm);
    return comm;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8, 1 << 10, 16 << 10, LARGEST};
    const char *topology = argc > 2 ? argv[2] : "grid";
    int me, ranks;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    if (argc > 1) set_style(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(DEGREE_MAX, LARGEST);
    into = calloc(DEGREE_MAX, LARGEST);
    comm = !strcmp(topology, "grid")       ? make_grid(ranks)
           : !strcmp(topology, "adjacent") ? make_adjacent(me, ranks)
           : !strcmp(topology, "graph")    ? make_graph(ranks)
                                           : make_distributed(me, ranks);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) use_all(comm, sizes[i]);
    MPI_Finalize();
    return 0;
}
