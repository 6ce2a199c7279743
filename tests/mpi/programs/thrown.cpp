/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An error handler leaves calls with wrong arguments by an exception. Then rank 1 waits for rank 0 in calls from deeper
 * frames, and writes the seconds in these calls, by its own clock, to a file: RANK OPERATION LINE SECONDS. Two ranks.
 *
 *     thrown ROUNDS SECONDS [FILE]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

namespace
{

struct failure {};

struct {
    const char *operation;
    double seconds;
} of_line[100];

MPI_Comm world;
char bytes[64];
int rank, caught;

#define TIMED(operation_, call)                                                                                        \
    do {                                                                                                               \
        const double begin = MPI_Wtime();                                                                              \
        call;                                                                                                          \
        of_line[__LINE__].seconds += MPI_Wtime() - begin;                                                              \
        of_line[__LINE__].operation = operation_;                                                                      \
    } while (0)

#define FAIL(call)                                                                                                     \
    try {                                                                                                              \
        call;                                                                                                          \
    } catch (const failure &) {                                                                                        \
        caught++;                                                                                                      \
    }

void on_error(MPI_Comm *, int *, ...)
{
    throw failure();
}

void compute(double seconds)
{
    const double first = MPI_Wtime();

    while (MPI_Wtime() - first < seconds) continue;
}

void go_deep(int depth, double late)
{
    volatile char room[4096];

    room[0] = room[sizeof room - 1] = 0;
    if (depth) {
        go_deep(depth - 1, late);
    } else if (rank) {
        TIMED("RECV", MPI_Recv(bytes, 8, MPI_CHAR, 0, 1, world, MPI_STATUS_IGNORE));
        FAIL(MPI_Bcast(bytes, -1, MPI_CHAR, 0, world));
        TIMED("BARRIER", MPI_Barrier(world));
    } else {
        compute(late);
        MPI_Send(bytes, 8, MPI_CHAR, 1, 1, world);
        compute(late);
        MPI_Barrier(world);
    }
    room[1] = room[2];
}

} // namespace

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    const double late = argc > 2 ? atof(argv[2]) : 0;
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(world, handler);
    for (int round = 0; round < rounds; round++) {
        FAIL(MPI_Bcast(bytes, -1, MPI_CHAR, 0, world));
        FAIL(MPI_Send(bytes, -1, MPI_CHAR, 0, 1, world));
        go_deep(4, late);
    }
    if (rank) printf("%d caught\n", caught);
    if (FILE *file = rank && argc > 3 ? fopen(argv[3], "w") : nullptr) {
        for (int line = 0; line < 100; line++)
            if (of_line[line].operation)
                fprintf(file, "%d %s %d %.9f\n", rank, of_line[line].operation, line, of_line[line].seconds);
        fclose(file);
    }
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
