/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each rank sends 1,000 bytes to the next rank, then the job ends before MPI_Finalize.
 *
 *     killed one|all|abort|exit|segv|sleep [calls]
 *
 * Before the end, ranks 0, 2, ... make further calls at one line. Each such call sends 8 bytes to the next rank.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "all";
    const int calls = argc > 2 ? atoi(argv[2]) : 0;
    static char from[1000], into[1000];
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv(from, sizeof from, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE,
                 (me + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < calls && (me ^ 1) < ranks; i++) {
        if (me % 2)
            MPI_Recv(into, 8, MPI_BYTE, me - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(from, 8, MPI_BYTE, me + 1, 1, MPI_COMM_WORLD);
    }
    if (!me) puts("sent");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000); /* Open MPI 5's launcher may lose what ranks wrote just before their end */
    if (!strcmp(how, "all") || (!strcmp(how, "one") && me == 1)) raise(SIGKILL);
    if (!strcmp(how, "abort") && me == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "exit")) _exit(3);
    if (!strcmp(how, "segv") && me == 1) raise(SIGSEGV);
    sleep(60); /* wait for a signal, but not for ever */
    return 1;
}
