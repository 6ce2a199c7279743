/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Random calls on random communicators: splits, groups, duplicates, grids and merged intercommunicators. Communicators
 * are freed, so MPI reuses handles. Datatypes have gaps. Some calls are in place or have no items; all styles are used.
 * All ranks draw the same numbers. Rank 0 prints the point-to-point messages of each pair of ranks:
 * `sender receiver bytes messages`.
 *
 *     random_calls SEED CALLS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ibprof.h"

#define COMMUNICATORS 6
#define ITEMS_MAX 5000
#define PENDING_MAX 8

static int me, ranks;
static unsigned long long state;
static MPI_Comm communicators[COMMUNICATORS];
static char *from, *into;
static size_t half;
static int *counts, *places, *byte_places;
static MPI_Datatype *types;
static long *sent; /* bytes and messages to each rank */
static MPI_Request pending[PENDING_MAX];
static int pendings;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

/* -- communicators ------------------------------------------------------------------------------------------------- */

/* Random ranks of MPI_COMM_WORLD in random order, equal on all ranks. */
static int draw_members(int *members)
{
    int size = 0;

    for (int rank = 0; rank < ranks; rank++) members[rank] = rank;
    for (int rank = ranks - 1; rank > 0; rank--) {
        const int other = (int)draw((unsigned)rank + 1), kept = members[rank];

        members[rank] = members[other];
        members[other] = kept;
    }
    size = 1 + (int)draw((unsigned)ranks);
    return size;
}

static int is_member(const int *members, int size)
{
    for (int i = 0; i < size; i++)
        if (members[i] == me) return 1;
    return 0;
}

static MPI_Comm merge_halves(void)
{
    /* Open MPI's monitoring crashes if the two groups differ in size. */
    const int cut = ranks / 2, is_high = (int)draw(2);
    const int own = me >= cut;
    MPI_Comm local, between, merged;

    MPI_Comm_split(MPI_COMM_WORLD, own, me, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, own ? 0 : cut, 77, &between);
    MPI_Intercomm_merge(between, own ? is_high : !is_high, &merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&local);
    return merged;
}

static MPI_Comm make_communicator(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group all, some;
    int *members = malloc((size_t)ranks * sizeof *members);
    int size, sizes[2] = {0, 0}, periods[2] = {0, 1}, kept[2] = {1, 0};
    const unsigned kind = draw(8), key = draw(3), colours = 1 + draw(3);

    size = draw_members(members);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, size, members, &some);
    switch (kind) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, me % (int)colours ? me % (int)colours : MPI_UNDEFINED, key ? -me * (int)key : me,
                       &made);
        break;
    case 2:
        if (is_member(members, size)) MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, &made);
        break;
    case 3:
        MPI_Comm_create(MPI_COMM_WORLD, some, &made);
        break;
    case 4:
        made = merge_halves();
        break;
    case 5: {
        MPI_Comm grid;

        MPI_Dims_create(ranks, 2, sizes);
        MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &grid);
        if (grid != MPI_COMM_NULL) {
            MPI_Cart_sub(grid, kept, &made);
            MPI_Comm_free(&grid);
        }
        break;
    }
    case 6:
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &made);
        break;
    default: {
        MPI_Request request;

        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    free(members);
    return made;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static MPI_Datatype make_type(void)
{
    static const int lengths[] = {1, 2}, displacements[] = {0, 3};
    MPI_Datatype made, inner;

    switch (draw(6)) {
    case 0:
        MPI_Type_contiguous(2, MPI_INT, &made);
        break;
    case 1:
        MPI_Type_vector(2, 1, 2, MPI_INT, &made);
        break;
    case 2:
        MPI_Type_indexed(2, lengths, displacements, MPI_INT, &made);
        break;
    case 3:
        MPI_Type_contiguous(1, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, 12, &made);
        MPI_Type_free(&inner);
        break;
    default:
        MPI_Type_dup(MPI_INT, &made);
    }
    MPI_Type_commit(&made);
    return made;
}

static void finish(MPI_Request request, unsigned style)
{
    if (style == 2) {
        for (unsigned again = draw(3); again > 0; again--) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
        return;
    }
    pending[pendings++] = request;
    if (pendings == PENDING_MAX || draw(2)) {
        MPI_Waitall(pendings, pending, MPI_STATUSES_IGNORE);
        pendings = 0;
    }
}

#if defined OMPI_MAJOR_VERSION ? OMPI_MAJOR_VERSION >= 5 : 1
#define PERSISTENT(call, ...) MPI_##call##_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define STYLES 3
#else
#define PERSISTENT(call, ...) (void)0
#define STYLES 2
#endif

#define COLLECTIVE(call, nonblocking, ...)                                                                             \
    do {                                                                                                               \
        if (style == 0) {                                                                                              \
            MPI_##call(__VA_ARGS__);                                                                                   \
        } else if (style == 1) {                                                                                       \
            MPI_##nonblocking(__VA_ARGS__, &request);                                                                  \
            finish(request, style);                                                                                    \
        } else {                                                                                                       \
            PERSISTENT(call, __VA_ARGS__);                                                                             \
            finish(request, style);                                                                                    \
        }                                                                                                              \
    } while (0)

/* Note a message of this rank to a rank of MPI_COMM_WORLD by a point-to-point call. */
static void note(MPI_Comm comm, int to, int items, MPI_Datatype type, int messages)
{
    MPI_Group all, its;
    int size, there;

    if (to == MPI_PROC_NULL) return;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(comm, &its);
    MPI_Group_translate_ranks(its, 1, &to, all, &there);
    MPI_Type_size(type, &size);
    sent[2 * there] += (long)size * items * messages;
    sent[2 * there + 1] += messages;
    MPI_Group_free(&its);
    MPI_Group_free(&all);
}

/* All ranks send to the rank one or two ranks further, or to MPI_PROC_NULL. */
static void pass_round(MPI_Comm comm, int items, MPI_Datatype type, unsigned how)
{
    int rank, size, shift = 1 + (int)draw(2), to, receive_from;
    MPI_Request requests[2];

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    to = how % 2 ? (rank + shift < size ? rank + shift : MPI_PROC_NULL) : (rank + shift) % size;
    receive_from = how % 2 ? (rank - shift >= 0 ? rank - shift : MPI_PROC_NULL) : (rank + size * 2 - shift) % size;
    note(comm, to, items, type, how / 2 == 2 ? 2 : 1);
    switch (how / 2) {
    case 0:
        MPI_Sendrecv(from, items, type, to, 3, into, items, type, receive_from, 3, comm, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Irecv(into, items, type, receive_from, 4, comm, &requests[0]);
        MPI_Issend(from, items, type, to, 4, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Recv_init(into, items, type, receive_from, 5, comm, &requests[0]);
        MPI_Ssend_init(from, items, type, to, 5, comm, &requests[1]);
        for (int again = 0; again < 2; again++) {
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        break;
    default:
        MPI_Irecv(into, items, type, receive_from, 6, comm, &requests[0]);
        MPI_Isend(from, items, type, to, 6, comm, &requests[1]);
        MPI_Request_free(&requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
}

static void call(MPI_Comm comm)
{
    const unsigned style = draw(STYLES), chosen = draw(20), exponent = draw(13), spread = 1 + draw(3);
    const int items = draw(4) ? (int)draw(1U << exponent) % ITEMS_MAX : 0;
    const unsigned in_place = draw(3) == 0, how = draw(8), root_draw = draw(1U << 16);
    MPI_Datatype type = make_type();
    MPI_Request request = MPI_REQUEST_NULL;
    const void *own = in_place ? MPI_IN_PLACE : from;
    int rank, size, root;

    if (comm == MPI_COMM_NULL) {
        /* From here on, ranks draw different numbers. The next call starts again with common numbers. */
        MPI_Type_free(&type);
        return;
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    root = (int)(root_draw % (unsigned)size);
    for (int i = 0; i < size; i++) {
        counts[i] = i % (int)spread ? 0 : items;
        places[i] = i * ITEMS_MAX;
        byte_places[i] = places[i] * 16;
        types[i] = type;
    }
    switch (chosen) {
    case 0:
        COLLECTIVE(Bcast, Ibcast, from, items, type, root, comm);
        break;
    case 1:
        COLLECTIVE(Reduce, Ireduce, rank == root ? own : from, into, items, MPI_INT, MPI_SUM, root, comm);
        break;
    case 2:
        COLLECTIVE(Allreduce, Iallreduce, own, into, items, MPI_INT, MPI_MAX, comm);
        break;
    case 3:
        COLLECTIVE(Gather, Igather, rank == root ? own : from, items, type, into, items, type, root, comm);
        break;
    case 4:
        COLLECTIVE(Scatter, Iscatter, from, items, type, rank == root && in_place ? MPI_IN_PLACE : into, items, type,
                   root, comm);
        break;
    case 5:
        COLLECTIVE(Gatherv, Igatherv, rank == root ? own : from, counts[rank], type, into, counts, places, type, root,
                   comm);
        break;
    case 6:
        COLLECTIVE(Scatterv, Iscatterv, from, counts, places, type, rank == root && in_place ? MPI_IN_PLACE : into,
                   counts[rank], type, root, comm);
        break;
    case 7:
        COLLECTIVE(Allgather, Iallgather, own, items, type, into, items, type, comm);
        break;
    case 8:
        COLLECTIVE(Allgatherv, Iallgatherv, own, counts[rank], type, into, counts, places, type, comm);
        break;
    case 9:
        COLLECTIVE(Alltoall, Ialltoall, own, items, type, into, items, type, comm);
        break;
    case 10:
        /* Rank i sends to rank j only if i + j is a multiple of `spread`. */
        for (int i = 0; i < size; i++) counts[i] = (i + rank) % (int)spread ? 0 : items;
        COLLECTIVE(Alltoallv, Ialltoallv, own, counts, places, type, into, counts, places, type, comm);
        break;
    case 11:
        for (int i = 0; i < size; i++) counts[i] = (i + rank) % (int)spread ? 0 : items;
        COLLECTIVE(Alltoallw, Ialltoallw, own, counts, byte_places, types, into, counts, byte_places, types, comm);
        break;
    case 12:
        COLLECTIVE(Reduce_scatter, Ireduce_scatter, own, into, counts, MPI_INT, MPI_SUM, comm);
        break;
    case 13:
        COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, own, into, items, MPI_INT, MPI_SUM, comm);
        break;
    case 14:
        COLLECTIVE(Scan, Iscan, own, into, items, MPI_INT, MPI_SUM, comm);
        break;
    case 15:
        COLLECTIVE(Exscan, Iexscan, own, into, items, MPI_INT, MPI_SUM, comm);
        break;
    default:
        pass_round(comm, items, type, how);
    }
    /* Pending calls may still use the arrays of counts. */
    if (pendings) MPI_Waitall(pendings, pending, MPI_STATUSES_IGNORE);
    pendings = 0;
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    const unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    long *all_sent;
    const int calls = argc > 2 ? atoi(argv[2]) : 200;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    half = (size_t)ranks * ITEMS_MAX * 16 * 2;
    from = calloc(half, 1);
    into = calloc(half, 1);
    counts = calloc((size_t)ranks, sizeof *counts);
    places = calloc((size_t)ranks, sizeof *places);
    byte_places = calloc((size_t)ranks, sizeof *byte_places);
    sent = calloc((size_t)ranks * 2, sizeof *sent);
    types = calloc((size_t)ranks, sizeof(MPI_Datatype));
    communicators[0] = MPI_COMM_WORLD;
    communicators[1] = MPI_COMM_SELF;
    for (int i = 2; i < COMMUNICATORS; i++) communicators[i] = MPI_COMM_NULL;
    for (int number = 0; number < calls; number++) {
        unsigned long long before;
        unsigned where, is_new, is_region;

        state = (seed * 1000003ULL + (unsigned long long)number) * 0x9E3779B97F4A7C15ULL;
        where = draw(COMMUNICATORS);
        is_new = draw(6) == 0;
        is_region = draw(5) == 0;
        before = state;
        if (is_region) ibprof_region_begin(number % 2 ? "odd" : "even");
        if (where > 1 && (is_new || number < COMMUNICATORS)) {
            if (communicators[where] != MPI_COMM_NULL) MPI_Comm_free(&communicators[where]);
            communicators[where] = make_communicator();
        }
        state = before + 12345;
        call(communicators[where]);
        if (is_region) ibprof_region_end();
    }
    for (int i = 2; i < COMMUNICATORS; i++)
        if (communicators[i] != MPI_COMM_NULL) MPI_Comm_free(&communicators[i]);
    all_sent = calloc((size_t)ranks * (size_t)ranks * 2, sizeof *all_sent);
    MPI_Gather(sent, ranks * 2, MPI_LONG, all_sent, ranks * 2, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int i = 0; !me && i < ranks * ranks; i++)
        printf("%d %d %ld %ld\n", i / ranks, i % ranks, all_sent[2 * i], all_sent[2 * i + 1]);
    MPI_Finalize();
    return 0;
}
