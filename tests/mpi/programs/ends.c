/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * ends HOW NUMBER: end with a status, by a signal or by MPI_Abort, after some seconds, or with some MiB of used memory.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    int sum = 1;

    MPI_Init(&argc, &argv);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 2 && !strcmp(argv[1], "signal")) raise(number);
    if (argc > 2 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, number);
    if (argc > 2 && !strcmp(argv[1], "sleep")) sleep((unsigned)number);
    for (int left = number; argc > 2 && !strcmp(argv[1], "memory") && left > 0; --left)
        memset(malloc(1 << 20), 1, 1 << 20);
    MPI_Finalize();
    return argc > 2 && !strcmp(argv[1], "status") ? number : 0;
}
