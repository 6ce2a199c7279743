// SPDX-License-Identifier: Apache-2.0
// A problem of n bytes divided among the ranks: divided_work N ROUNDS. In a round, each rank sleeps n / ranks
// microseconds, as if it computed, sends an eighth of its part to the next rank, transposes the data, and sums up a
// number. Rank 0 prints the seconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void rest(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left));
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    double n = strtod(argv[1], NULL);
    int block = (int)(n / ranks / ranks), edge = (int)(n / ranks / 8);
    char *sent = calloc((size_t)block * (size_t)ranks + (size_t)edge, 2);
    char *received = sent + (size_t)block * (size_t)ranks + edge;
    double one = 1, sum;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int round = 0; round < atoi(argv[2]); ++round) {
        rest(n * 1e-6 / ranks);
        MPI_Sendrecv(sent, edge, MPI_CHAR, (rank + 1) % ranks, 0, received, edge, MPI_CHAR, (rank + ranks - 1) % ranks,
                     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Alltoall(sent, block, MPI_CHAR, received, block, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - begin);
    free(sent);
    MPI_Finalize();
    return 0;
}
