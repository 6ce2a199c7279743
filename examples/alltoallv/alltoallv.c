/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An uneven exchange, once as MPI_Alltoallv and once as equivalent point-to-point calls. Every rank sends i blocks to
 * rank i, so that rank 0 receives nothing and the last rank most.
 *
 *     mpicc $(ibprof lib --cflags) -o alltoallv alltoallv.c
 *     IBPROF_INTERVAL=1 ibprof run -- mpirun -n 10 --oversubscribe ./alltoallv
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdlib.h>

enum { BLOCK = 16384, REPEATS = 5 }; /* integers, times */

typedef struct {
    int rank, ranks;
    int *counts_out, *counts_in, *from, *to;
    int *out, *in;
} Exchange;

static int *allocate(size_t count)
{
    int *memory = calloc(count ? count : 1, sizeof(int));
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static Exchange prepare(void)
{
    Exchange it;
    MPI_Comm_rank(MPI_COMM_WORLD, &it.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &it.ranks);
    size_t ranks = (size_t)it.ranks;
    it.counts_out = allocate(ranks);
    it.counts_in = allocate(ranks);
    it.from = allocate(ranks);
    it.to = allocate(ranks);
    for (int i = 0; i < it.ranks; i++) {
        it.counts_out[i] = i * BLOCK;
        it.counts_in[i] = it.rank * BLOCK;
        it.from[i] = i * (i - 1) / 2 * BLOCK;
        it.to[i] = i * it.rank * BLOCK;
    }
    it.out = allocate(ranks * (ranks - 1) / 2 * BLOCK);
    it.in = allocate(ranks * (size_t)it.rank * BLOCK);
    return it;
}

static void collective(const Exchange *it)
{
    ibprof_region_begin("collective");
    MPI_Alltoallv(it->out, it->counts_out, it->from, MPI_INT, it->in, it->counts_in, it->to, MPI_INT, MPI_COMM_WORLD);
    ibprof_region_end();
}

static void point_to_point(const Exchange *it)
{
    MPI_Request *requests = malloc(2 * (size_t)it->ranks * sizeof *requests);
    if (!requests) MPI_Abort(MPI_COMM_WORLD, 1);
    ibprof_region_begin("point-to-point");
    for (int i = 0; i < it->ranks; i++)
        MPI_Isend(it->out + it->from[i], it->counts_out[i], MPI_INT, i, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < it->ranks; i++)
        MPI_Irecv(it->in + it->to[i], it->counts_in[i], MPI_INT, i, 0, MPI_COMM_WORLD, &requests[it->ranks + i]);
    MPI_Waitall(2 * it->ranks, requests, MPI_STATUSES_IGNORE);
    ibprof_region_end();
    free(requests);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    Exchange it = prepare();
    for (int i = 0; i < REPEATS; i++) {
        collective(&it);
        MPI_Barrier(MPI_COMM_WORLD);
        point_to_point(&it);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(it.counts_out);
    free(it.counts_in);
    free(it.from);
    free(it.to);
    free(it.out);
    free(it.in);
    MPI_Finalize();
    return 0;
}
