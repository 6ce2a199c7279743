/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The scalar product of two vectors: each rank adds up its own part, a reduction adds up the parts.
 *
 *     mpirun -n P ./scalar_product N
 *
 * Sends (p - 1) 8 bytes, whichever tree the reduction uses.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    double part = 0, sum = 0;
    int rank, ranks;
    long n;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n = argc > 1 ? atol(argv[1]) : 1000000;
    for (long i = rank; i < n; i += ranks) part += (double)i * 2.0;
    MPI_Reduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && sum != (double)n * (double)(n - 1)) {
        fprintf(stderr, "the sum is %.17g\n", sum);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
