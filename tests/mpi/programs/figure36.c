/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two broadcasts of 100,000 bytes with a pause between them, each followed by a mark. Totals grow from mark to mark;
 * MPI_Finalize is the third mark.
 */
#include "ibprof.h"

#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char buffer[100000];

    MPI_Init(&argc, &argv);
    MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, 0, MPI_COMM_WORLD);
    IBPROF_REGION();
    usleep(100 * 1000);
    MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, 0, MPI_COMM_WORLD);
    IBPROF_REGION();
    MPI_Finalize();
    return 0;
}
