/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each rank sends 20 messages of 1,000 bytes to the next rank, pauses, and sends 5 messages of 100 bytes to the
 * previous rank. Then the rank ends or is killed. There are only point-to-point calls.
 *
 *     bursts end|kill
 */
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char from[1000], into[1000];
static int me, ranks;

static void send(int bytes, int distance)
{
    MPI_Request request;

    MPI_Irecv(into, sizeof into, MPI_BYTE, (me + ranks - distance) % ranks, 0, MPI_COMM_WORLD, &request);
    MPI_Send(from, bytes, MPI_BYTE, (me + distance) % ranks, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 20; i++) {
        send(1000, 1);
        usleep(10 * 1000);
    }
    usleep(400 * 1000);
    for (int i = 0; i < 5; i++) send(100, ranks - 1);
    if (argc > 1 && !strcmp(argv[1], "kill")) {
        usleep(300 * 1000); /* until all ranks are here */
        raise(SIGKILL);
    }
    MPI_Finalize();
    return 0;
}
