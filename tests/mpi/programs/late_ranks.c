/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank 0 is late for each call of rank 1, by a stated time in a region without MPI calls. Each rank prints the seconds
 * inside its calls, by its own clock: RANK OPERATION LINE SECONDS. Two ranks.
 *
 *     late_ranks ROUNDS LATE_SECONDS [THREAD_LEVEL]
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES 200

static struct {
    const char *operation;
    double seconds;
} of_line[LINES];

#define TIMED(operation_, call)                                                                                        \
    do {                                                                                                               \
        const double begin_ = MPI_Wtime();                                                                             \
                                                                                                                       \
        call;                                                                                                          \
        of_line[__LINE__].seconds += MPI_Wtime() - begin_;                                                             \
        of_line[__LINE__].operation = operation_;                                                                      \
    } while (0)

static void compute(double seconds)
{
    const double begin = MPI_Wtime();

    ibprof_region_begin("computing");
    while (MPI_Wtime() - begin < seconds) continue;
    ibprof_region_end();
}

int main(int argc, char **argv)
{
    static char bytes[2][1 << 20];
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request requests[2];
    MPI_Status status;
    double late;
    int rank, rounds, flag, provided;

    if (argc > 3)
        MPI_Init_thread(&argc, &argv, atoi(argv[3]), &provided);
    else
        MPI_Init(&argc, &argv);
    rounds = atoi(argv[1]);
    late = atof(argv[2]);
    MPI_Comm_rank(world, &rank);
    for (int round = 0; round < rounds; round++) {
        if (!rank) compute(late);
        TIMED("BARRIER", MPI_Barrier(world));
        if (!rank) {
            compute(late);
            TIMED("SEND", MPI_Send(bytes[0], 8, MPI_CHAR, 1, 0, world));
            compute(late);
            TIMED("SEND", MPI_Send(bytes[0], 8, MPI_CHAR, 1, 0, world));
            compute(2 * late);
            TIMED("SEND", MPI_Send(bytes[0], 8, MPI_CHAR, 1, 0, world));
            compute(late);
            TIMED("RECV", MPI_Recv(bytes[1], 1 << 20, MPI_CHAR, 1, 0, world, &status));
            compute(late);
        } else {
            TIMED("RECV", MPI_Recv(bytes[1], 8, MPI_CHAR, 0, 0, world, &status));
            TIMED("IRECV", MPI_Irecv(bytes[1], 8, MPI_CHAR, 0, 0, world, &requests[0]));
            TIMED("WAIT", MPI_Wait(&requests[0], &status));
            TIMED("PROBE", MPI_Probe(0, 0, world, &status));
            TIMED("RECV", MPI_Recv(bytes[1], 8, MPI_CHAR, 0, 0, world, &status));
            TIMED("SSEND", MPI_Ssend(bytes[0], 1 << 20, MPI_CHAR, 0, 0, world));
        }
        TIMED("ALLREDUCE", MPI_Allreduce(MPI_IN_PLACE, bytes[0], 8, MPI_CHAR, MPI_MAX, world));
        if (!rank) compute(late);
        TIMED("SENDRECV",
              MPI_Sendrecv(bytes[0], 8, MPI_CHAR, !rank, 1, bytes[1], 8, MPI_CHAR, !rank, 1, world, &status));
        if (!rank) compute(late);
        TIMED("ISEND", MPI_Isend(bytes[0], 8, MPI_CHAR, !rank, 2, world, &requests[0]));
        TIMED("IRECV", MPI_Irecv(bytes[1], 8, MPI_CHAR, !rank, 2, world, &requests[1]));
        TIMED("WAITALL", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        if (!rank) compute(late);
        MPI_Ibarrier(world, &requests[0]);
        for (flag = 0; !flag;) TIMED("TEST", MPI_Test(&requests[0], &flag, &status));
    }
    for (int line = 0; line < LINES; line++)
        if (of_line[line].operation)
            printf("%d %s %d %.9f\n", rank, of_line[line].operation, line, of_line[line].seconds);
    MPI_Finalize();
    return 0;
}
