/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A ring of partitioned sends, each started twice.
 *
 *     partitioned BYTES       total of all partitions, a multiple of their number
 */
#include <mpi.h>
#include <stdlib.h>

#define PARTITIONS 4
#define STARTS 2

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 1000;
    char *from = calloc(1, (size_t)bytes), *into = calloc(1, (size_t)bytes);
    MPI_Request requests[2];
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Psend_init(from, PARTITIONS, bytes / PARTITIONS, MPI_BYTE, (me + 1) % ranks, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(into, PARTITIONS, bytes / PARTITIONS, MPI_BYTE, (me + ranks - 1) % ranks, 1, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[1]);
    for (int start = 0; start < STARTS; start++) {
        MPI_Startall(2, requests);
        for (int part = 0; part < PARTITIONS; part++) MPI_Pready(part, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Finalize();
    free(from);
    free(into);
    return 0;
}
