// SPDX-License-Identifier: Apache-2.0
// The loop of `ibprof-latency measure` in C: half a round trip of 0 bytes in µs, the median of batches of 1,000.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { batches = 51, turns = 1000 };

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double took[batches];
    char nothing = 0;
    for (int batch = 0; batch < batches; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int turn = 0; turn < turns; turn++) {
            for (int part = 0; part < 2; part++) {
                if (part == rank) {
                    MPI_Send(&nothing, 0, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
                } else {
                    MPI_Recv(&nothing, 0, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
            }
        }
        took[batch] = (MPI_Wtime() - begin) / turns / 2 * 1e6;
    }
    qsort(took, batches, sizeof took[0], ascending);
    if (rank == 0) {
        printf("%.3f\n", took[batches / 2]);
    }
    MPI_Finalize();
    return 0;
}
