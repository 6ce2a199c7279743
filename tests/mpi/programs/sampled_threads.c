/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Several threads send messages and make collectives at the same time, each with a separate tag and communicator. Then
 * all threads send with the same tag. Then a thread receives messages that another thread probed.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 4, PROBED = 50 };

static int rank, size, rounds;
static MPI_Comm own[THREADS];

static void *run(void *argument)
{
    const int thread = (int)(intptr_t)argument, up = (rank + 1) % size, down = (rank + size - 1) % size;
    char sent[64] = "", received[64];
    MPI_Request requests[2];
    MPI_Comm made;

    for (int i = 0; i < rounds; i++) {
        MPI_Irecv(received, 64, MPI_CHAR, down, thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(sent, 64, MPI_CHAR, up, thread, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Irecv(received, 64, MPI_CHAR, down, 99, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(sent, 64, MPI_CHAR, up, 99, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(sent, received, 8, MPI_CHAR, MPI_MAX, own[thread]);
        if (i % 8) continue;
        MPI_Comm_dup(own[thread], &made);
        MPI_Irecv(received, 64, MPI_CHAR, MPI_ANY_SOURCE, 3, made, &requests[0]);
        MPI_Send(sent, 64, MPI_CHAR, up, 3, made);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Comm_free(&made);
    }
    return NULL;
}

static void *take_probed(void *nothing)
{
    char received[8];

    for (int i = 0; i < rounds; i++)
        MPI_Recv(received, 8, MPI_CHAR, (rank + size - 1) % size, PROBED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;

    rounds = atoi(argv[1]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < rounds; i++) MPI_Send("probed", 7, MPI_CHAR, (rank + 1) % size, PROBED, MPI_COMM_WORLD);
    MPI_Probe((rank + size - 1) % size, PROBED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_create(&threads[0], NULL, take_probed, NULL);
    pthread_join(threads[0], NULL);
    MPI_Finalize();
    return 0;
}
