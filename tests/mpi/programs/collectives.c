/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Every collective call on several kinds of intracommunicators, below and above the sizes at which algorithms change.
 *
 *     collectives STYLE [CALL [BYTES]]      blocking, nonblocking or persistent; only one call; only one size, only on
 *                                           MPI_COMM_WORLD
 */
#include "collective.h"

#define LARGEST (1 << 20)

static const int all_sizes[] = {0, 8, 1 << 10, 16 << 10, 200 << 10, LARGEST};

static char *from, *into;
static int *even_counts, *odd_counts, *even_places, *odd_places, *odd_bytes;
static MPI_Datatype *types;

static void allocate(int ranks)
{
    from = calloc((size_t)ranks, LARGEST);
    into = calloc((size_t)ranks, LARGEST);
    even_counts = calloc((size_t)ranks, sizeof(int));
    odd_counts = calloc((size_t)ranks, sizeof(int));
    even_places = calloc((size_t)ranks, sizeof(int));
    odd_places = calloc((size_t)ranks, sizeof(int));
    odd_bytes = calloc((size_t)ranks, sizeof(int));
    types = calloc((size_t)ranks, sizeof(MPI_Datatype));
}

/* Rank r of the communicator gets `bytes` + r, or `bytes` - r if more would not fit. */
static void set_counts(MPI_Comm comm, int bytes)
{
    int ranks;

    MPI_Comm_size(comm, &ranks);
    for (int rank = 0, place = 0; rank < ranks; rank++) {
        even_counts[rank] = bytes / 4;
        even_places[rank] = rank * (bytes / 4);
        odd_counts[rank] = bytes > LARGEST / 2 ? bytes - rank : bytes + rank;
        odd_places[rank] = place;
        odd_bytes[rank] = place;
        place += odd_counts[rank];
        types[rank] = MPI_BYTE;
    }
}

static void move_data(MPI_Comm comm, int bytes, int root)
{
    int me;

    MPI_Comm_rank(comm, &me);
    COLLECTIVE(Bcast, Ibcast, from, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Gather, Igather, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Gatherv, Igatherv, from, odd_counts[me], MPI_BYTE, into, odd_counts, odd_places, MPI_BYTE, root, comm);
    COLLECTIVE(Scatter, Iscatter, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Scatterv, Iscatterv, from, odd_counts, odd_places, MPI_BYTE, into, odd_counts[me], MPI_BYTE, root, comm);
    COLLECTIVE(Allgather, Iallgather, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Allgatherv, Iallgatherv, from, odd_counts[me], MPI_BYTE, into, odd_counts, odd_places, MPI_BYTE, comm);
    COLLECTIVE(Alltoall, Ialltoall, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Alltoallv, Ialltoallv, from, even_counts, even_places, MPI_INT, into, even_counts, even_places, MPI_INT,
               comm);
    COLLECTIVE(Alltoallw, Ialltoallw, from, even_counts, even_places, types, into, even_counts, even_places, types,
               comm);
}

static void reduce_data(MPI_Comm comm, int items, MPI_Op operation, int root)
{
    COLLECTIVE(Reduce, Ireduce, from, into, items, MPI_INT, operation, root, comm);
    COLLECTIVE(Allreduce, Iallreduce, from, into, items, MPI_INT, operation, comm);
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, from, into, even_counts, MPI_INT, operation, comm);
    COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, from, into, items, MPI_INT, operation, comm);
    COLLECTIVE(Scan, Iscan, from, into, items, MPI_INT, operation, comm);
    COLLECTIVE(Exscan, Iexscan, from, into, items, MPI_INT, operation, comm);
}

static void in_place(MPI_Comm comm, int bytes, int root)
{
    int me;

    MPI_Comm_rank(comm, &me);
    COLLECTIVE(Gather, Igather, me == root ? MPI_IN_PLACE : from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Scatter, Iscatter, from, bytes, MPI_BYTE, me == root ? MPI_IN_PLACE : into, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Reduce, Ireduce, me == root ? MPI_IN_PLACE : from, into, bytes / 4, MPI_INT, MPI_SUM, root, comm);
    COLLECTIVE(Allreduce, Iallreduce, MPI_IN_PLACE, into, bytes / 4, MPI_INT, MPI_SUM, comm);
    COLLECTIVE(Scan, Iscan, MPI_IN_PLACE, into, bytes / 4, MPI_INT, MPI_SUM, comm);
}

static void add(void *one, void *other, int *items, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *items; i++) ((int *)other)[i] += ((int *)one)[i];
}

static void use_all(MPI_Comm comm, int bytes)
{
    MPI_Op ordered;
    int ranks;

    MPI_Comm_size(comm, &ranks);
    set_counts(comm, bytes);
    COLLECTIVE(Barrier, Ibarrier, comm);
    move_data(comm, bytes, ranks - 1);
    reduce_data(comm, bytes / 4, MPI_SUM, 0);
    MPI_Op_create(add, 0, &ordered); /* not commutative, for other algorithms */
    reduce_data(comm, bytes / 4, ordered, ranks / 2);
    MPI_Op_free(&ordered);
    in_place(comm, bytes, 0);
}

static void use_derived_type(MPI_Comm comm)
{
    MPI_Datatype strided;

    MPI_Type_vector(50, 3, 7, MPI_DOUBLE, &strided); /* 1,200 bytes in an extent of 2,768 */
    MPI_Type_commit(&strided);
    COLLECTIVE(Bcast, Ibcast, from, 5, strided, 0, comm);
    COLLECTIVE(Alltoall, Ialltoall, from, 2, strided, into, 2, strided, comm);
    COLLECTIVE(Allgather, Iallgather, from, 1, strided, into, 1, strided, comm);
    MPI_Type_free(&strided);
}

int main(int argc, char **argv)
{
    MPI_Comm halves, reversed, grid;
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    allocate(ranks);
    if (argc > 1) set_style(argv[1]);
    if (argc > 2) only = argv[2];
    if (argc > 3) {
        set_counts(MPI_COMM_WORLD, atoi(argv[3]));
        move_data(MPI_COMM_WORLD, atoi(argv[3]), 0);
        reduce_data(MPI_COMM_WORLD, atoi(argv[3]) / 4, MPI_SUM, 0);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &halves);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, (int[]){1}, 1, &grid);
    for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++) {
        use_all(MPI_COMM_WORLD, all_sizes[i]);
        use_all(halves, all_sizes[i]);
        if (all_sizes[i] <= 16 << 10) {
            use_all(reversed, all_sizes[i]);
            use_all(grid, all_sizes[i]);
            use_all(MPI_COMM_SELF, all_sizes[i]);
        }
    }
    use_derived_type(MPI_COMM_WORLD);
    use_derived_type(reversed);
    MPI_Finalize();
    return 0;
}
