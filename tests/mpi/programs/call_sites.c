/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A comment at each call states the bytes that the line sends on all ranks together. Two ranks.
 */
#include <mpi.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 4
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

#ifdef NO_PERSISTENT_COLLECTIVES
#define PERSISTENT 4
#else
#define PERSISTENT 6
#endif

static char bytes[1 << 16];

static inline __attribute__((always_inline)) void exchange(int length, int other)
{
    MPI_Request requests[2];

    MPI_Irecv(bytes + (1 << 15), length, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(bytes, length, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[1]); /* ISEND 3000 */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static int either(int rank, MPI_Comm communicator)
{
    int sum = 0;

    if (rank == 0) {
        MPI_Send(bytes, 10, MPI_CHAR, 1, 0, communicator); /* SEND 50 */
        return MPI_Send(bytes, 20, MPI_CHAR, 1, 0, communicator); /* SEND 100 */
    }
    MPI_Recv(bytes, 10, MPI_CHAR, 0, 0, communicator, MPI_STATUS_IGNORE);
    MPI_Recv(bytes, 20, MPI_CHAR, 0, 0, communicator, MPI_STATUS_IGNORE);
    return sum;
}

static void make_persistent(int other, MPI_Comm again, MPI_Request requests[6])
{
    MPI_Recv_init(bytes + (1 << 15), 40, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(bytes + (1 << 14), 50, MPI_CHAR, other, 2, again, &requests[1]);
    MPI_Send_init(bytes, 40, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[2]); /* SEND_INIT 400 */
    MPI_Send_init(bytes, 50, MPI_CHAR, other, 2, again, &requests[3]); /* SEND_INIT 500 */
#ifndef NO_PERSISTENT_COLLECTIVES
    MPI_Bcast_init(bytes, 8, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]); /* BCAST_INIT 40 */
    MPI_Bcast_init(bytes, 9, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]); /* BCAST_INIT 45 */
#endif
}

int main(int argc, char **argv)
{
    MPI_Request started[2], persistent[6];
    MPI_Comm again;
    int rank, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    make_persistent(!rank, again, persistent);
    for (int i = 0; i < 5; i++) {
        exchange(100, !rank);
        exchange(200, !rank);
        either(rank, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Ssend(bytes, 30, MPI_CHAR, 1, 0, again); /* SSEND 150 */
        else
            MPI_Recv(bytes, 30, MPI_CHAR, 0, 0, again, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* ALLREDUCE 40 */
        MPI_Allreduce(MPI_IN_PLACE, bytes, 3, MPI_CHAR, MPI_MAX, again); /* ALLREDUCE 30 */
        PMPI_Bcast(bytes, 7, MPI_CHAR, 0, again); /* BCAST 35 */
        MPI_Iallreduce(MPI_IN_PLACE, bytes, 5, MPI_CHAR, MPI_MAX, again, &started[0]); /* IALLREDUCE 50 */
        MPI_Iallreduce(MPI_IN_PLACE, bytes + 8, 6, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD, &started[1]); /* IALLREDUCE 60 */
        MPI_Waitall(2, started, MPI_STATUSES_IGNORE);
        MPI_Start(&persistent[0]);
        MPI_Startall(PERSISTENT - 1, persistent + 1);
        MPI_Waitall(PERSISTENT, persistent, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < PERSISTENT; i++) MPI_Request_free(&persistent[i]);
    MPI_Finalize();
    return 0;
}
