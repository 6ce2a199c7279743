/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each rank polls for a message that never comes. A signal handler interrupts the rank for half of the time, as other
 * processes may. Each rank prints the seconds by its own clock: RANK OPERATION LINE SECONDS.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#define POLLS 1000
#define SECONDS 2.0

static void interrupt(int signal)
{
    const struct timespec pause = {0, 5000000};

    (void)signal;
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    double begin, seconds = 0;
    int rank, flag, line = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGALRM, interrupt);
    setitimer(ITIMER_REAL, &often, NULL);
    while (seconds < SECONDS) {
        begin = MPI_Wtime();
        for (int i = 0; i < POLLS; i++) {
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            line = __LINE__ - 1;
        }
        seconds += MPI_Wtime() - begin;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d IPROBE %d %.6f\n", rank, line, seconds);
    MPI_Finalize();
    return 0;
}
