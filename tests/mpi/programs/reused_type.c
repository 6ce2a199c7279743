/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A rank sends to itself at one line: many messages of a small datatype, then a few messages of a large datatype with
 * the same handle. The rank prints the seconds inside MPI_Send, by its own clock, and 1 if the handle is the same.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALL = 3000, LARGE = 40, BYTES = 4 << 20 };

static double seconds;

static void exchange(MPI_Datatype type, int count, const char *sent, char *received)
{
    for (int i = 0; i < count; i++) {
        MPI_Request request;
        double begin;

        MPI_Irecv(received, 1, type, 0, 1, MPI_COMM_SELF, &request);
        begin = MPI_Wtime();
        MPI_Send(sent, 1, type, 0, 1, MPI_COMM_SELF);
        seconds += MPI_Wtime() - begin;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    char *const sent = calloc(1, 2 * BYTES), *const received = calloc(1, 2 * BYTES);
    MPI_Datatype small, large, before;

    MPI_Init(&argc, &argv);
    MPI_Type_vector(2, 1, 2, MPI_CHAR, &small);
    MPI_Type_commit(&small);
    before = small;
    exchange(small, SMALL, sent, received);
    MPI_Type_free(&small);
    MPI_Type_vector(BYTES / 2, 1, 2, MPI_CHAR, &large);
    MPI_Type_commit(&large);
    exchange(large, LARGE, sent, received);
    printf("%.6f %d\n", seconds, large == before);
    MPI_Type_free(&large);
    MPI_Finalize();
    return 0;
}
