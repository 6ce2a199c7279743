/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each rank sends 1,000 bytes to the next rank, and after some time 500 more; then the rank ends or is killed. At
 * barriers, recordings in a node's own storage may be copied.
 *
 *     copied end|kill
 */
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char from[1000], into[1000];
static int me, ranks;

static void send(int bytes)
{
    MPI_Sendrecv(from, bytes, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE, (me + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    send(1000);
    usleep(1200 * 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    send(500);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "kill")) raise(SIGKILL);
    MPI_Finalize();
    return 0;
}
