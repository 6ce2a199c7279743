/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Known numbers of collectives of 4 ranks on each kind of communicator: rounds, then duplicates that are not freed.
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const int rounds = atoi(argv[1]), duplicates = atoi(argv[2]), pair[2] = {0, 1}, extent = 4, periods = 0;
    MPI_Comm half, dup, idup, cart, small = MPI_COMM_NULL, between, merged, made;
    MPI_Group world, two;
    MPI_Request request;
    double sent[64] = {0}, received[4 * 64];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(half, &dup);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &periods, 1, &cart);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, pair, &two);
    if (rank < 2) MPI_Comm_create_group(MPI_COMM_WORLD, two, 5, &small);
    MPI_Comm_create(MPI_COMM_WORLD, two, &made);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 7, &between);
    MPI_Intercomm_merge(between, rank % 2, &merged);
    MPI_Comm_idup(merged, &idup, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < rounds; i++) {
        MPI_Allreduce(sent, received, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Alltoall(sent, 16, MPI_DOUBLE, received, 16, MPI_DOUBLE, cart);
        MPI_Bcast(sent, 64, MPI_DOUBLE, 1, dup);
        MPI_Barrier(between);
        MPI_Barrier(merged);
        MPI_Ireduce(sent, received, 8, MPI_DOUBLE, MPI_SUM, 3, idup, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (small != MPI_COMM_NULL) MPI_Barrier(small);
        if (made != MPI_COMM_NULL) MPI_Barrier(made);
    }
    for (int i = 0; i < duplicates; i++) MPI_Comm_dup(MPI_COMM_SELF, &dup);
    MPI_Barrier(dup);
    for (int i = 0; i < 20; i++) { /* MPI reuses the handle */
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Scan(sent, received, 1, MPI_DOUBLE, MPI_SUM, dup);
        MPI_Comm_free(&dup);
    }
    MPI_Finalize();
    return 0;
}
