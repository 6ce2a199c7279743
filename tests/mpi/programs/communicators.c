/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Every way to make a communicator. Each communicator broadcasts 1,000 bytes from its last rank.
 */
#include <mpi.h>

static char buffer[1000];

static void use(MPI_Comm comm)
{
    int ranks;

    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_size(comm, &ranks);
    MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, ranks - 1, comm);
    MPI_Comm_free(&comm);
}

static void use_groups(int me, int ranks)
{
    MPI_Group world, upper;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, (int[1][3]){{ranks - 1, ranks / 2, -1}}, &upper);
    MPI_Comm_create(MPI_COMM_WORLD, upper, &comm);
    use(comm);
    if (me >= ranks / 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, upper, 5, &comm);
        use(comm);
    }
    MPI_Group_free(&upper);
    MPI_Group_free(&world);
}

static void use_topologies(int ranks)
{
    int dims[2] = {0, 0};
    MPI_Comm grid, row;

    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){0, 1}, 1, &grid);
    MPI_Cart_sub(grid, (int[]){1, 0}, &row);
    use(row);
    use(grid);
}

int main(int argc, char **argv)
{
    MPI_Comm comm, again;
    MPI_Request request;
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(comm);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    use(comm);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(comm);
    MPI_Comm_split(MPI_COMM_WORLD, me % 3, -me, &comm);
    MPI_Comm_split(comm, 0, -me, &again);
    use(again);
    use(comm);
    MPI_Comm_split(MPI_COMM_WORLD, me ? 1 : MPI_UNDEFINED, 0, &comm);
    use(comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &comm);
    use(comm);
    use_groups(me, ranks);
    use_topologies(ranks);
    MPI_Finalize();
    return 0;
}
