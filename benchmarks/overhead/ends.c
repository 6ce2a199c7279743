/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What each rank's processor does around MPI_Finalize: this program says when it enters and leaves it, and the same file, built
 * with -DWITHIN as a library behind whatever is preloaded, says when MPI itself does. Each rank prints the difference in us.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES 1000

double begun_us, ended_us;

#ifdef WITHIN

static double processor_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int MPI_Finalize(void)
{
    int result;

    begun_us = processor_us();
    result = PMPI_Finalize();
    ended_us = processor_us();
    return result;
}

#else

static double processor_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    char *from, *into;
    double entered_us;
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc((size_t)ranks, BYTES);
    into = calloc((size_t)ranks, BYTES);
    MPI_Bcast(from, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Alltoall(from, BYTES, MPI_BYTE, into, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(from, BYTES, MPI_BYTE, into, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allreduce(from, into, BYTES / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    entered_us = processor_us();
    MPI_Finalize();
    printf("%.1f\n", begun_us - entered_us + processor_us() - ended_us);
    return 0;
}

#endif
