/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * stripe COUNT BYTES: rank 0 sends rank 1 COUNT messages of BYTES each.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    const int messages = atoi(arguments[1]), bytes = atoi(arguments[2]);
    char *buffer = calloc((size_t)bytes, 1);
    int rank;

    (void)count;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < messages; i++)
        if (rank == 0)
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    free(buffer);
    return 0;
}
