/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Six broadcasts of a large message, one after the other: enough to see whether the MPI splits each over the rails, takes one
 * rail for all, or one rail for each in turn.
 *
 *     mpicc $(ibprof lib --cflags) -o bcast bcast.c
 *     ibprof run -- mpirun -n 64 --oversubscribe ./bcast 262144       (bytes)
 */
#include <ibprof.h>
#include <mpi.h>
#include <stdlib.h>

enum { CALLS = 6, BYTES = 1 << 20 };

int main(int argc, char **argv)
{
    static const char *const names[CALLS] = {"bcast 1", "bcast 2", "bcast 3", "bcast 4", "bcast 5", "bcast 6"};
    int bytes = argc > 1 ? atoi(argv[1]) : BYTES;

    MPI_Init(&argc, &argv);
    char *message = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (!message || bytes < 1) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < CALLS; i++) {
        ibprof_region_begin(names[i]);
        MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        ibprof_region_end();
    }
    free(message);
    MPI_Finalize();
    return 0;
}
