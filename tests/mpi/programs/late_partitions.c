/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank 0 sends a partition late in each round, and rank 1 polls until the partition has arrived. Rank 1 prints the
 * number of polls, and their seconds by the program's clock.
 *
 *     late_partitions ROUNDS LATE_S
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES 1000
#define POLLS 50 /* between two readings of the clock */

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    const double late_s = argc > 2 ? atof(argv[2]) : 0;
    static char buffer[BYTES];
    MPI_Request request;
    double seconds = 0;
    long asked = 0;
    int me;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me)
        MPI_Precv_init(buffer, 1, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Psend_init(buffer, 1, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < rounds; round++) {
        int arrived = 0;

        MPI_Start(&request);
        if (!me) {
            usleep((useconds_t)(late_s * 1e6));
            MPI_Pready(0, request);
        }
        while (me && !arrived) {
            const double begin = MPI_Wtime();

            for (int each = 0; each < POLLS; each++, asked++) MPI_Parrived(request, 0, &arrived);
            seconds += MPI_Wtime() - begin;
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    if (me) printf("%ld %.9f\n", asked, seconds);
    MPI_Finalize();
    return 0;
}
