/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Threads of rank 1 wait for messages of rank 0. The known times of waiting, in units of SECONDS:
 *
 *     thread A waits from 0 to 3 in MPI_Recv,
 *     thread B waits from 1 to 5 in MPI_Probe, so that two of these five units overlap,
 *     the main thread then waits alone, from 5 to 7.
 *
 * Rank 1 prints the time of its threads inside calls, and the overlap of this time, by its own clock. Two ranks.
 *
 *     overlapping_threads SECONDS
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TO_A, TO_B, TO_MAIN };

static double unit, start, entered[2], left[2];

static void sleep_until(double end)
{
    const double left = start + end - MPI_Wtime();

    if (left > 0) usleep((useconds_t)(left * 1e6));
}

static void *receive(void *nothing)
{
    char byte;

    entered[0] = MPI_Wtime();
    MPI_Recv(&byte, 1, MPI_CHAR, 0, TO_A, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    left[0] = MPI_Wtime();
    return nothing;
}

static void *probe(void *nothing)
{
    sleep_until(unit);
    entered[1] = MPI_Wtime();
    MPI_Probe(0, TO_B, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    left[1] = MPI_Wtime();
    return nothing;
}

int main(int argc, char **argv)
{
    static const double ends[] = {3, 5, 7};
    pthread_t threads[2];
    int rank, level;
    char byte = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE || argc < 2) return 1;
    unit = atof(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (!rank) {
        for (int to = TO_A; to <= TO_MAIN; to++) {
            sleep_until(ends[to] * unit);
            MPI_Send(&byte, 1, MPI_CHAR, 1, to, MPI_COMM_WORLD);
        }
    } else {
        double alone, both;

        pthread_create(&threads[0], NULL, receive, NULL);
        pthread_create(&threads[1], NULL, probe, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        MPI_Recv(&byte, 1, MPI_CHAR, 0, TO_B, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        alone = -MPI_Wtime();
        MPI_Recv(&byte, 1, MPI_CHAR, 0, TO_MAIN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        alone += MPI_Wtime();
        both = (left[0] < left[1] ? left[0] : left[1]) - (entered[0] > entered[1] ? entered[0] : entered[1]);
        printf("%.6f %.6f\n", left[0] - entered[0] + left[1] - entered[1] + alone, both);
    }
    MPI_Finalize();
    return 0;
}
