/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Uses six operations between all ranks. Each rank prints its resident memory in KiB and the Unix time in seconds at which it
 * called MPI_Finalize.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 1000

static long resident_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) kib = atol(line + 6);
    if (status) fclose(status);
    return kib;
}

int main(int argc, char **argv)
{
    int me, ranks;
    char *from, *into;
    struct timespec now;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc((size_t)ranks, BYTES);
    into = calloc((size_t)ranks, BYTES);
    MPI_Bcast(from, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Alltoall(from, BYTES, MPI_BYTE, into, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(from, BYTES, MPI_BYTE, into, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allreduce(from, into, BYTES / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int step = 0; step < ranks; step++)
        MPI_Sendrecv(from, BYTES, MPI_BYTE, (me + step) % ranks, 0, into, BYTES, MPI_BYTE, (me + ranks - step) % ranks,
                     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%ld %lld.%09ld\n", resident_kib(), (long long)now.tv_sec, now.tv_nsec);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
