/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Threads that send to themselves at the same lines, each under its own tag. Sometimes rank 1 instead waits at these
 * lines for rank 0, which is late. Meanwhile, one thread makes and frees communicators. Rank 1 prints the seconds that
 * its threads were inside MPI_Send and MPI_Wait, by its own clock.
 *
 * With Open MPI 4.1.4, threads that exchange messages between two ranks sometimes hang, also without ibprof.
 *
 *     repeated_threads ROUNDS DELAY_MICROSECONDS
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, RARE = 4000, MAKING = 512 };

static int rank, rounds;
static useconds_t delay;
static double sending[THREADS], waiting[THREADS];

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Send a message to rank `into`, and receive a message from rank `from`. */
static void exchange(int thread, int into, int from)
{
    double sent = 0, received, begin;
    MPI_Request request;

    MPI_Irecv(&received, 1, MPI_DOUBLE, from, thread, MPI_COMM_WORLD, &request);
    begin = now();
    MPI_Send(&sent, 1, MPI_DOUBLE, into, thread, MPI_COMM_WORLD);
    sending[thread] += now() - begin;
    begin = now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    waiting[thread] += now() - begin;
}

static void *play(void *argument)
{
    const int thread = (int)(intptr_t)argument;
    MPI_Comm made;

    for (int i = 0; i < rounds; i++) {
        const int is_rare = i % RARE == RARE - 1;

        if (is_rare && !rank) usleep(delay);
        exchange(thread, is_rare ? 1 - rank : rank, is_rare ? 1 - rank : rank);
        if (thread || i % MAKING) continue;
        MPI_Comm_dup(MPI_COMM_SELF, &made);
        MPI_Comm_free(&made);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    double sent = 0, waited = 0;
    int provided;

    if (argc < 3) return 2;
    rounds = atoi(argv[1]);
    delay = (useconds_t)atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, play, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        sent += sending[i];
        waited += waiting[i];
    }
    if (rank) printf("%.6f %.6f\n", sent, waited);
    MPI_Finalize();
    return 0;
}
