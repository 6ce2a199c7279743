/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A signal handler leaves blocking calls of rank 1 by siglongjmp before their messages arrive. Calls from deeper frames
 * follow. Rank 1 writes the seconds inside its calls into a file, by its own clock: RANK OPERATION LINE SECONDS.
 * Two ranks.
 *
 *     left_waits ROUNDS SECONDS [FILE]
 */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define LINES 200

static struct {
    const char *operation;
    double seconds;
} of_line[LINES];

static MPI_Comm world;
static char bytes[64];
static sigjmp_buf back;
static volatile double begin;
static volatile int left, is_waiting;

#define TIMED(operation_, call)                                                                                        \
    do {                                                                                                               \
        begin = MPI_Wtime();                                                                                           \
        if (!sigsetjmp(back, 1)) {                                                                                     \
            is_waiting = 1;                                                                                            \
            call;                                                                                                      \
        }                                                                                                              \
        is_waiting = 0;                                                                                                \
        of_line[__LINE__].seconds += MPI_Wtime() - begin;                                                              \
        of_line[__LINE__].operation = operation_;                                                                      \
    } while (0)

static void on_alarm(int number)
{
    (void)number;
    if (!is_waiting) return; /* on a busy machine, the signal comes early */
    left++;
    siglongjmp(back, 1);
}

static void leave_after(double seconds)
{
    struct itimerval timer;

    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_usec = (suseconds_t)(seconds * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void compute(double seconds)
{
    const double first = MPI_Wtime();

    while (MPI_Wtime() - first < seconds) continue;
}

static void go_deep(int depth)
{
    volatile char room[4096];

    room[0] = room[sizeof room - 1] = 0;
    if (depth) {
        go_deep(depth - 1);
    } else {
        TIMED("RECV", MPI_Recv(bytes, 8, MPI_CHAR, 0, 1, world, MPI_STATUS_IGNORE));
        compute(0.001);
    }
    room[1] = room[2];
}

static void go_deep_together(int depth)
{
    volatile char room[4096];

    room[0] = room[sizeof room - 1] = 0;
    if (depth)
        go_deep_together(depth - 1);
    else
        TIMED("ALLREDUCE", MPI_Allreduce(MPI_IN_PLACE, bytes + 32, 8, MPI_CHAR, MPI_MAX, world));
    room[1] = room[2];
}

int main(int argc, char **argv)
{
    const int rounds = atoi(argv[1]);
    const double late = atof(argv[2]);
    FILE *file;
    int rank;

    /* A handler may leave libevent while it holds a lock. Then the end of Open MPI waits forever, also without ibprof.
     * If libevent polls once in 100 s, the lock is rarely held. Messages within a host need no events. */
    setenv("OMPI_MCA_mpi_event_tick_rate", "100000000", 1);
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    signal(SIGALRM, on_alarm);
    for (int round = 0; round < rounds; round++) {
        if (!rank) {
            compute(2 * late);
            MPI_Send(bytes, 8, MPI_CHAR, 1, 9, world);
            MPI_Send(bytes, 8, MPI_CHAR, 1, 1, world);
            compute(2 * late);
            MPI_Barrier(world);
        } else {
            leave_after(late);
            TIMED("RECV", MPI_Recv(bytes + 16, 8, MPI_CHAR, 0, 9, world, MPI_STATUS_IGNORE));
            go_deep(4);
            leave_after(late);
            TIMED("BARRIER", MPI_Barrier(world));
        }
        go_deep_together(4);
    }
    if (rank && argc > 3) {
        file = fopen(argv[3], "w");
        for (int line = 0; file && line < LINES; line++)
            if (of_line[line].operation)
                fprintf(file, "%d %s %d %.9f\n", rank, of_line[line].operation, line, of_line[line].seconds);
        if (file) fclose(file);
    }
    if (rank) fprintf(stderr, "%d left\n", left);
    MPI_Finalize();
    return 0;
}
