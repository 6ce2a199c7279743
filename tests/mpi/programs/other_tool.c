/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Another tool that is preloaded: it counts broadcasts by the profiling interface of MPI, and says how many there were.
 */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    calls++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Finalize(void)
{
    int me;

    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (!me) printf("%d broadcasts\n", calls);
    return PMPI_Finalize();
}
