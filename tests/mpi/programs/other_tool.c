/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Another preloaded tool. It counts broadcasts by the profiling interface of MPI, and prints the number of broadcasts.
 * The tool passes on sends, and starts and completions of requests.
 */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    calls++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Start(MPI_Request *request)
{
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request *requests)
{
    return PMPI_Startall(count, requests);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Finalize(void)
{
    int me;

    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (!me) printf("%d broadcasts\n", calls);
    return PMPI_Finalize();
}
