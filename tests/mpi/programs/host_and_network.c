/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages within a host between calls that use the network. Ranks 0 and 1 share a host, and ranks 2 and 3.
 *
 *     host_and_network groups       intercommunicators are made; MPICH 5 uses the network for this, even within a host
 *     host_and_network allreduce    all ranks reduce
 *     host_and_network pending      all ranks reduce while messages within the host are pending
 */
#include <mpi.h>
#include <string.h>

#define ROUNDS 20
#define ITEMS 1000

static int me;

static void send_within_host(void)
{
    int from = me, into;

    if (me % 2 == 0) {
        MPI_Send(&from, 1, MPI_INT, me + 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&into, 1, MPI_INT, me + 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&into, 1, MPI_INT, me - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&from, 1, MPI_INT, me - 1, 0, MPI_COMM_WORLD);
    }
}

static void join_groups(void)
{
    MPI_Comm half, both;

    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < 2 ? 2 : 0, 5, &both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    static int from[ITEMS], into[ITEMS];
    MPI_Request request = MPI_REQUEST_NULL;

    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 0; i < ROUNDS; i++) {
        if (!strcmp(argv[1], "groups")) join_groups();
        if (!strcmp(argv[1], "allreduce")) MPI_Allreduce(from, into, ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (!strcmp(argv[1], "pending")) MPI_Iallreduce(from, into, ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        for (int message = 0; message < 5; message++) send_within_host();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
