/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two threads of rank 1 wait at the same time, in separate calls, for late messages of rank 0. Rank 1 prints the
 * seconds of each call by the program's clock: OPERATION SECONDS. Two ranks.
 *
 *     late_threads SECONDS
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static double seconds, waited[2];

static void compute(double length)
{
    const double begin = MPI_Wtime();

    while (MPI_Wtime() - begin < length) continue;
}

static void *receive(void *nothing)
{
    const double begin = MPI_Wtime();
    char byte;

    MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    waited[0] = MPI_Wtime() - begin;
    return nothing;
}

static void *probe(void *nothing)
{
    const double begin = MPI_Wtime();

    MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    waited[1] = MPI_Wtime() - begin;
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int rank, level;
    char byte = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) return 1;
    seconds = atof(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) {
        compute(seconds);
        MPI_Send(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Send(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    } else {
        pthread_create(&threads[0], NULL, receive, NULL);
        pthread_create(&threads[1], NULL, probe, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        MPI_Recv(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("RECV %.6f\nPROBE %.6f\n", waited[0], waited[1]);
    }
    MPI_Finalize();
    return 0;
}
