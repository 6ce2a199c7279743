/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Calls that do not move the bytes in their arguments: in place, without items, to MPI_PROC_NULL, to the rank itself,
 * or with types that differ between ranks. STYLE is as in collectives.c.
 */
#include "collective.h"

#define ITEMS 20000

static int *from, *into, me, ranks;
static int *counts, *places, *none, *byte_places;
static MPI_Datatype *types;

static void allocate(void)
{
    from = calloc((size_t)ranks * ITEMS * 2, sizeof *from);
    into = calloc((size_t)ranks * ITEMS * 2, sizeof *into);
    counts = calloc((size_t)ranks, sizeof *counts);
    places = calloc((size_t)ranks, sizeof *places);
    none = calloc((size_t)ranks, sizeof *none);
    byte_places = calloc((size_t)ranks, sizeof *byte_places);
    types = calloc((size_t)ranks, sizeof(MPI_Datatype));
    for (int rank = 0; rank < ranks; rank++) {
        counts[rank] = ITEMS;
        places[rank] = rank * ITEMS;
        byte_places[rank] = places[rank] * (int)sizeof(int);
        types[rank] = MPI_INT;
    }
}

/* Calls that collectives.c does not make in place. */
static void in_place(MPI_Comm comm)
{
    int size, rank;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    COLLECTIVE(Gatherv, Igatherv, rank ? from : MPI_IN_PLACE, ITEMS, MPI_INT, into, counts, places, MPI_INT, 0, comm);
    COLLECTIVE(Scatterv, Iscatterv, from, counts, places, MPI_INT, rank ? into : MPI_IN_PLACE, ITEMS, MPI_INT, 0, comm);
    COLLECTIVE(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_INT, into, counts, places, MPI_INT, comm);
    COLLECTIVE(Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_INT, into, counts, places, MPI_INT, comm);
    COLLECTIVE(Alltoallw, Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, into, counts, byte_places, types, comm);
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, into, counts, MPI_INT, MPI_SUM, comm);
    COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, into, ITEMS, MPI_INT, MPI_SUM, comm);
    COLLECTIVE(Exscan, Iexscan, MPI_IN_PLACE, into, ITEMS, MPI_INT, MPI_SUM, comm);
}

static void no_items(MPI_Comm comm)
{
    MPI_Datatype empty;

    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    COLLECTIVE(Bcast, Ibcast, from, ITEMS, empty, 0, comm);
    COLLECTIVE(Allreduce, Iallreduce, from, into, 0, MPI_INT, MPI_SUM, comm);
    COLLECTIVE(Allgather, Iallgather, from, 0, MPI_INT, into, 0, MPI_INT, comm);
    COLLECTIVE(Alltoall, Ialltoall, from, ITEMS, empty, into, ITEMS, empty, comm);
    COLLECTIVE(Alltoallv, Ialltoallv, from, none, places, MPI_INT, into, none, places, MPI_INT, comm);
    COLLECTIVE(Alltoallw, Ialltoallw, from, none, byte_places, types, into, none, byte_places, types, comm);
    COLLECTIVE(Gatherv, Igatherv, from, 0, MPI_INT, into, none, places, MPI_INT, 0, comm);
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, from, into, none, MPI_INT, MPI_SUM, comm);
    MPI_Type_free(&empty);
}

/* Send only to the next rank. */
static void few_partners(MPI_Comm comm)
{
    int *sent = calloc((size_t)ranks, sizeof *sent), *received = calloc((size_t)ranks, sizeof *received);
    int size, rank;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    sent[(rank + 1) % size] = ITEMS / (rank + 1);
    received[(rank + size - 1) % size] = ITEMS / ((rank + size - 1) % size + 1);
    COLLECTIVE(Alltoallv, Ialltoallv, from, sent, places, MPI_INT, into, received, places, MPI_INT, comm);
    COLLECTIVE(Alltoallw, Ialltoallw, from, sent, byte_places, types, into, received, byte_places, types, comm);
    free(sent);
    free(received);
}

/* Ranks describe the same data differently. */
static void other_types(MPI_Comm comm)
{
    MPI_Datatype pair;
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair); /* 8 bytes in an extent of 12 */
    MPI_Type_commit(&pair);
    COLLECTIVE(Bcast, Ibcast, from, rank % 2 ? ITEMS : ITEMS / 2, rank % 2 ? MPI_INT : pair, 0, comm);
    COLLECTIVE(Gather, Igather, from, ITEMS / 2, pair, into, ITEMS, MPI_INT, 0, comm);
    COLLECTIVE(Allgather, Iallgather, from, ITEMS / 2, pair, into, ITEMS, MPI_INT, comm);
    COLLECTIVE(Alltoallv, Ialltoallv, from, counts, places, MPI_INT, into, counts, places, MPI_INT, comm);
    COLLECTIVE(Allreduce, Iallreduce, from, into, ITEMS / 4, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    COLLECTIVE(Reduce, Ireduce, from, into, ITEMS / 4, MPI_DOUBLE_INT, MPI_MINLOC, 0, comm);
    MPI_Type_free(&pair);
}

static void to_nobody_and_to_oneself(void)
{
    MPI_Request request;

    MPI_Send(from, ITEMS, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Sendrecv(from, ITEMS, MPI_INT, me ? me - 1 : MPI_PROC_NULL, 1, into, ITEMS, MPI_INT,
                 me + 1 < ranks ? me + 1 : MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(into, ITEMS, MPI_INT, me, 2, MPI_COMM_WORLD, &request);
    MPI_Send(from, ITEMS, MPI_INT, me, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(into, ITEMS, MPI_INT, 0, 3, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void use_all(MPI_Comm comm)
{
    in_place(comm);
    no_items(comm);
    few_partners(comm);
    other_types(comm);
}

int main(int argc, char **argv)
{
    MPI_Comm some, reversed;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    allocate();
    if (argc > 1) set_style(argv[1]);
    MPI_Comm_split(MPI_COMM_WORLD, me ? 1 : MPI_UNDEFINED, -me, &some);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    use_all(MPI_COMM_WORLD);
    use_all(MPI_COMM_SELF);
    use_all(reversed);
    if (some != MPI_COMM_NULL) use_all(some);
    to_nobody_and_to_oneself();
    MPI_Finalize();
    return 0;
}
