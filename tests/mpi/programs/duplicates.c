/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Duplicates of MPI_COMM_WORLD, which other calls complete. Then collectives on the duplicates and on MPI_COMM_WORLD.
 * The program ends with status 3 if the members of a duplicate differ from MPI_COMM_WORLD.
 *
 *     duplicates idup    by MPI_Comm_idup, two at a time
 *     duplicates dup     by MPI_Comm_dup
 */
#include <mpi.h>
#include <string.h>

#define COPIES 2
#define ITEMS 10

static int is_world(MPI_Comm copy)
{
    MPI_Group world, members;
    int same;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(copy, &members);
    MPI_Group_compare(members, world, &same);
    for (int size = 0, rank = MPI_Group_size(members, &size); rank < size; rank++) {
        int found = -1;

        MPI_Group_translate_ranks(members, 1, &rank, world, &found);
        if (found != rank) same = MPI_UNEQUAL;
    }
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    return same == MPI_IDENT;
}

int main(int argc, char **argv)
{
    static int from[ITEMS], into[2 * COPIES][64 * ITEMS];
    MPI_Request making[COPIES] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, started[2 * COPIES];
    MPI_Comm copies[COPIES];

    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < COPIES; i++) {
        if (!strcmp(argv[1], "idup"))
            MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &making[i]);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
    }
    for (int i = 0; i < 20; i++) MPI_Allreduce(from, into[0], ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Waitall(COPIES, making, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COPIES; i++)
        if (!is_world(copies[i])) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = 0; i < COPIES; i++) {
        MPI_Iscan(from, into[2 * i], ITEMS, MPI_INT, MPI_SUM, copies[i], &started[2 * i]);
        MPI_Iallgather(from, ITEMS, MPI_INT, into[2 * i + 1], ITEMS, MPI_INT, MPI_COMM_WORLD, &started[2 * i + 1]);
    }
    MPI_Waitall(2 * COPIES, started, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COPIES; i++) MPI_Comm_free(&copies[i]);
    MPI_Finalize();
    return 0;
}
