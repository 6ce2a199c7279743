/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Six broadcasts of a large message, one after the other. They show whether the MPI library splits each broadcast over
 * the rails, uses one rail for all broadcasts, or uses the rails in turn.
 *
 *     mpicc $(ibprof lib --cflags) -o bcast bcast.c
 *     ibprof run -- mpirun -n 64 --oversubscribe ./bcast 262144       (bytes)
 *
 * With a second argument, `in-turn`, each broadcast has one receiver: rank 1, then rank 2, and so on. If each receiver
 * has an adapter on another rail, the broadcasts alternate between the rails.
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 6, BYTES = 1 << 20 };

/* Returns a communicator of the root and one other rank. No further rank takes part: the rail does not reach it. */
static MPI_Comm make_pair(int other)
{
    MPI_Group world, two;
    MPI_Comm pair;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, (int[]){0, other}, &two);
    MPI_Comm_create_group(MPI_COMM_WORLD, two, other, &pair);
    MPI_Group_free(&two);
    MPI_Group_free(&world);
    return pair;
}

int main(int argc, char **argv)
{
    static const char *const names[CALLS] = {"bcast 1", "bcast 2", "bcast 3", "bcast 4", "bcast 5", "bcast 6"};
    int bytes = argc > 1 ? atoi(argv[1]) : BYTES, in_turn = argc > 2 && !strcmp(argv[2], "in-turn"), rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *message = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (!message || bytes < 1 || (in_turn && ranks < 2)) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < CALLS; i++) {
        int other = in_turn ? 1 + i % (ranks - 1) : 0;
        if (in_turn && rank != 0 && rank != other) continue;
        MPI_Comm among = in_turn ? make_pair(other) : MPI_COMM_WORLD;
        ibprof_region_begin(names[i]);
        MPI_Bcast(message, bytes, MPI_BYTE, 0, among);
        ibprof_region_end();
        if (in_turn) MPI_Comm_free(&among);
    }
    free(message);
    MPI_Finalize();
    return 0;
}
