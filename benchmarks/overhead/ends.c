/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Processor time of each rank around MPI_Finalize. This program notes when it enters and leaves the call. The same file,
 * built with -DWITHIN as a library that is preloaded last, notes when MPI itself enters and leaves the call. Each rank
 * prints the difference in µs, and the µs from entering MPI_Finalize to the end of the process.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES 1000

double begun_us, ended_us;

static double now_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static double processor_us(void)
{
    return now_us(CLOCK_THREAD_CPUTIME_ID);
}

#ifdef WITHIN

int MPI_Finalize(void)
{
    int result;

    begun_us = processor_us();
    result = PMPI_Finalize();
    ended_us = processor_us();
    return result;
}

#else

static double own_us, entered_at_us;

static __attribute__((destructor)) void tell(void)
{
    printf("%.1f %.1f\n", own_us, now_us(CLOCK_MONOTONIC) - entered_at_us);
    fflush(stdout);
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
    entered_at_us = now_us(CLOCK_MONOTONIC);
    entered_us = processor_us();
    MPI_Finalize();
    own_us = begun_us - entered_us + processor_us() - ended_us;
    return 0;
}

#endif
