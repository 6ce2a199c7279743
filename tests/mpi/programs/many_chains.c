/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sends 2^13 bytes, each byte by a different chain of callers. At each of 13 levels, one of two lines calls the next.
 */
#include <mpi.h>

static int rank;
static volatile int sum;

static __attribute__((noinline, noclone)) void branch(unsigned depth)
{
    char byte = 0;

    if (!depth) {
        if (rank == 0)
            MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD); /* @send */
        else
            MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        branch(depth - 1);
        sum++;
        branch(depth - 1);
    }
    sum++;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    branch(13);
    MPI_Finalize();
    return 0;
}
