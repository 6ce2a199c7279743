/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Collectives between the lower half of the ranks and the upper half. The upper half is in reverse order.
 *
 *     intercomms STYLE
 */
#include "collective.h"

#define LARGEST (200 << 10)
#define RANKS_MAX 16

static char *from, *into;

static void use_all(MPI_Comm comm, int upper, int bytes)
{
    int me, counts[RANKS_MAX], places[RANKS_MAX], root, receiving_root;

    MPI_Comm_rank(comm, &me);
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        counts[rank] = bytes / 4;
        places[rank] = rank * (bytes / 4);
    }
    /* The root is the first rank of the lower or of the upper group. */
    root = upper ? 0 : me ? MPI_PROC_NULL : MPI_ROOT;
    receiving_root = upper ? me ? MPI_PROC_NULL : MPI_ROOT : 0;
    COLLECTIVE(Barrier, Ibarrier, comm);
    COLLECTIVE(Bcast, Ibcast, from, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Gather, Igather, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, receiving_root, comm);
    COLLECTIVE(Scatter, Iscatter, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, root, comm);
    COLLECTIVE(Allgather, Iallgather, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Allgatherv, Iallgatherv, from, bytes / 4, MPI_INT, into, counts, places, MPI_INT, comm);
    COLLECTIVE(Alltoall, Ialltoall, from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, comm);
    COLLECTIVE(Alltoallv, Ialltoallv, from, counts, places, MPI_INT, into, counts, places, MPI_INT, comm);
    COLLECTIVE(Reduce, Ireduce, from, into, bytes / 4, MPI_INT, MPI_SUM, receiving_root, comm);
    COLLECTIVE(Allreduce, Iallreduce, from, into, bytes / 4, MPI_INT, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 1 << 10, 16 << 10, LARGEST};
    MPI_Comm half, comm, merged;
    int me, ranks, upper;

    MPI_Init(&argc, &argv);
    if (argc > 1) set_style(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(RANKS_MAX, LARGEST);
    into = calloc(RANKS_MAX, LARGEST);
    upper = me >= ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, upper ? -me : me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : ranks - 1, 1, &comm);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) use_all(comm, upper, sizes[i]);
    MPI_Intercomm_merge(comm, upper, &merged);
    MPI_Bcast(from, 1000, MPI_BYTE, 0, merged);
    MPI_Finalize();
    return 0;
}
