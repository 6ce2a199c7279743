/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Threads send at the same time, each pair of threads with a separate tag, while one thread makes collectives.
 *
 *     threads [MESSAGES]
 */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#define THREADS 4

static int me, ranks, messages = 2000;

static void *exchange(void *which)
{
    const int thread = (int)(long)which, bytes = 100 + thread;
    char from[256] = "", into[256];
    MPI_Request request;

    for (int i = 0; i < messages; i++) {
        MPI_Irecv(into, sizeof into, MPI_BYTE, (me + ranks - 1) % ranks, thread, MPI_COMM_WORLD, &request);
        if (thread % 2)
            MPI_Send(from, bytes, MPI_BYTE, (me + 1) % ranks, thread, MPI_COMM_WORLD);
        else
            MPI_Ssend(from, bytes, MPI_BYTE, (me + 1) % ranks, thread, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!thread && i % 20 == 0) MPI_Bcast(from, 50, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;

    if (argc > 1) messages = atoi(argv[1]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) return 77;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (long thread = 0; thread < THREADS; thread++)
        if (pthread_create(&threads[thread], NULL, exchange, (void *)thread)) abort();
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    MPI_Finalize();
    return 0;
}
