/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank 1 receives messages that were sent long before. Small messages come first, then large messages, which MPI copies
 * without waiting. Rank 1 prints the seconds inside calls, by its own clock: RANK OPERATION LINE SECONDS. Two ranks.
 *
 *     early_messages SMALL LARGE BYTES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMED(operation, call)                                                                                         \
    do {                                                                                                               \
        const double begin = MPI_Wtime();                                                                              \
                                                                                                                       \
        call;                                                                                                          \
        seconds[operation] += MPI_Wtime() - begin;                                                                     \
        line[operation] = __LINE__;                                                                                    \
    } while (0)

enum { RECV, IRECV, OPERATIONS };

int main(int argc, char **argv)
{
    static const char *const names[OPERATIONS] = {"RECV", "IRECV"};
    const int small = argc > 1 ? atoi(argv[1]) : 1, large = argc > 2 ? atoi(argv[2]) : 1;
    const int most = argc > 3 ? atoi(argv[3]) : 1;
    char *const buffer = calloc(2, (size_t)most);
    double seconds[OPERATIONS] = {0};
    int line[OPERATIONS] = {0}, rank;
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < small + large; round++) {
        const int bytes = round < small ? 1 : most;

        if (!rank) {
            MPI_Isend(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(buffer, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[1]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank) {
            TIMED(RECV, MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            TIMED(IRECV, MPI_Irecv(buffer + most, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &requests[0]));
        }
        MPI_Waitall(rank ? 1 : 2, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; rank && i < OPERATIONS; i++) printf("%d %s %d %.9f\n", rank, names[i], line[i], seconds[i]);
    MPI_Finalize();
    free(buffer);
    return 0;
}
