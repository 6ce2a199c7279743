/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The ranks are late by turns. Rank 1 waits in MPI_Recv, rank 0 in MPI_Barrier. In between, both compute. Each rank
 * prints a line for each call and each computation: OPERATION BEGIN END, in seconds of Unix time. COMPUTE is outside of
 * calls. Two ranks.
 *
 *     waits_over_time SECONDS
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(double seconds)
{
    const double begin = now();

    while (now() - begin < seconds) continue;
}

static struct {
    int rank;
    const char *operation;
    double begin, end;
} spans[16];
static int count;

#define SPAN(operation_, what)                                                                                         \
    do {                                                                                                               \
        spans[count].operation = operation_;                                                                           \
        spans[count].begin = now();                                                                                    \
        what;                                                                                                          \
        spans[count++].end = now();                                                                                    \
    } while (0)

int main(int argc, char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD;
    double seconds;
    char byte = 0;
    int rank;

    MPI_Init(&argc, &argv);
    seconds = atof(argv[1]);
    MPI_Comm_rank(world, &rank);
    MPI_Barrier(world);
    SPAN("COMPUTE", compute(seconds));
    MPI_Barrier(world);
    if (!rank) {
        SPAN("COMPUTE", compute(seconds));
        MPI_Send(&byte, 1, MPI_CHAR, 1, 0, world);
    } else {
        SPAN("RECV", MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, world, MPI_STATUS_IGNORE));
    }
    if (rank) {
        SPAN("COMPUTE", compute(seconds));
        MPI_Barrier(world);
    } else {
        SPAN("BARRIER", MPI_Barrier(world));
    }
    for (int i = 0; i < count; i++) printf("%d %s %.6f %.6f\n", rank, spans[i].operation, spans[i].begin, spans[i].end);
    fflush(stdout);
    if (argc > 2 && !strcmp(argv[2], "kill")) raise(SIGKILL);
    MPI_Finalize();
    return 0;
}
