/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of each kind around a ring of ranks, and to rank 0, which receives them with wildcards in any order.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { ITEMS = 100, TO_ROOT = 3 };

static int rank, size;
static double sent[ITEMS], received[64 * ITEMS];

/* Rank 0 posts receives from any sender, every third with any tag, and waits for them in two parts. */
static void receive_any(void)
{
    MPI_Request requests[64];
    const int count = TO_ROOT * (size - 1);
    int which, done = 0;

    for (int i = 0; i < count; i++)
        MPI_Irecv(received + i * ITEMS, ITEMS, MPI_DOUBLE, MPI_ANY_SOURCE, i % 3 ? 7 : MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[i]);
    while (done < count / 2) {
        MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
        done++;
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    const int rounds = atoi(argv[1]);
    MPI_Request requests[4], persistent[2];
    MPI_Comm reversed;
    MPI_Message message;
    int up, down, flag;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    up = (rank + 1) % size;
    down = (rank + size - 1) % size;
    MPI_Send_init(sent, 10, MPI_DOUBLE, up, 11, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(received, 10, MPI_DOUBLE, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &persistent[1]);
    for (int i = 0; i < rounds; i++) {
        MPI_Irecv(received, ITEMS, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(received + ITEMS, ITEMS, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(sent, ITEMS, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(sent, ITEMS, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(sent, 10, MPI_DOUBLE, size - 1 - up, 3, received, 10, MPI_DOUBLE, size - 1 - down, 3, reversed,
                     MPI_STATUS_IGNORE);
        MPI_Send(sent, 1, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
        MPI_Startall(2, persistent);
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
        for (int j = 0; rank && j < TO_ROOT; j++) MPI_Send(sent, j == 1 ? 2 : 50, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        if (!rank) receive_any();
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(sent, 5, MPI_DOUBLE, up, 12, MPI_COMM_WORLD, &requests[0]);
        MPI_Mprobe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(received, 5, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
        do MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        while (!flag);
#if !defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION >= 5
        MPI_Isendrecv(sent, 3, MPI_DOUBLE, up, 13, received, 3, MPI_DOUBLE, down, 13, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
#endif
    }
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Finalize();
    return 0;
}
