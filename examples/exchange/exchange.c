/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A step of an imaginary solver, in three named regions. Every rank sends to every rank (transpose), rank 0 broadcasts
 * to all (parameters), and neighbours on a periodic square grid swap their edges (halo). It runs with and without ibprof.
 *
 *     mpicc $(ibprof lib --cflags) -o exchange exchange.c
 *     ibprof run -- mpirun -n 16 ./exchange
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STEPS = 4,
    BLOCK_BYTES = 64 * 1024,       /* transpose: from each rank to each */
    PARAMETER_BYTES = 1024 * 1024, /* parameters: from rank 0 to all */
    EDGE_BYTES = 256 * 1024        /* halo: to each of four neighbours */
};

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void transpose(int ranks)
{
    char *out = allocate((size_t)ranks * BLOCK_BYTES);
    char *in = allocate((size_t)ranks * BLOCK_BYTES);

    ibprof_region_begin("transpose");
    MPI_Alltoall(out, BLOCK_BYTES, MPI_BYTE, in, BLOCK_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    ibprof_region_end();

    free(in);
    free(out);
}

static void broadcast_parameters(void)
{
    char *parameters = allocate(PARAMETER_BYTES);

    ibprof_region_begin("parameters");
    MPI_Bcast(parameters, PARAMETER_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    ibprof_region_end();

    free(parameters);
}

static void swap_edges(MPI_Comm grid)
{
    char *out = allocate(EDGE_BYTES);
    char *in = allocate(EDGE_BYTES);

    ibprof_region_begin("halo");
    for (int dimension = 0; dimension < 2; dimension++) {
        int before, after;
        MPI_Cart_shift(grid, dimension, 1, &before, &after);
        MPI_Sendrecv(out, EDGE_BYTES, MPI_BYTE, after, 0, in, EDGE_BYTES, MPI_BYTE, before, 0, grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, EDGE_BYTES, MPI_BYTE, before, 1, in, EDGE_BYTES, MPI_BYTE, after, 1, grid, MPI_STATUS_IGNORE);
    }
    ibprof_region_end();

    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int rank, ranks, extents[2] = {0, 0}, periodic[2] = {1, 1};
    MPI_Comm grid;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, extents);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periodic, 0, &grid);

    for (int step = 0; step < STEPS; step++) {
        transpose(ranks);
        broadcast_parameters();
        swap_edges(grid);
    }

    if (rank == 0) printf("exchange: %d steps on %d x %d ranks\n", STEPS, extents[0], extents[1]);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
