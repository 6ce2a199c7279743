/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One line calls MPI for two callers. Rank 0 is late for the calls of one caller.
 *
 *     two_callers CALLS SECONDS
 */
#include <mpi.h>
#include <stdlib.h>

static __attribute__((noinline)) void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    __asm__ volatile("" ::: "memory");
}

static void compute(double seconds)
{
    const double until = MPI_Wtime() + seconds;

    while (MPI_Wtime() < until) continue;
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 1;
    const double late_s = argc > 2 ? atof(argv[2]) : 0;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < calls; i++) {
        if (!rank) compute(late_s);
        meet();
    }
    for (int i = 0; i < calls; i++) meet();
    MPI_Finalize();
    return 0;
}
