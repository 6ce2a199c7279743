/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A rank starts children: by fork alone, by a shell, or by MPI_Comm_spawn. Then each rank sends 1,000 bytes to the next
 * rank.
 *
 *     children fork|shell|spawn
 *     children spawn N             N children
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void have_child(const char *how, char *program, int children)
{
    int me, status = 0, number = 42;
    MPI_Comm child;

    if (!strcmp(how, "fork")) {
        if (!fork()) exit(0); /* run everything that exit does in a copy of this process */
        wait(&status);
    } else if (!strcmp(how, "shell")) {
        status = system("echo child; exit 3") != 3 << 8;
    } else {
        MPI_Comm_spawn(program, (char *[]){"child", NULL}, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        MPI_Bcast(&number, 1, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT, child);
        MPI_Comm_disconnect(&child);
    }
    if (status) abort();
}

int main(int argc, char **argv)
{
    static char from[1000], into[1000];
    MPI_Comm parent;
    int me, ranks, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Bcast(&number, 1, MPI_INT, 0, parent);
        printf("spawned %d\n", number);
        MPI_Comm_disconnect(&parent);
    } else {
        if (!strcmp(argv[1], "spawn") || !me) have_child(argv[1], argv[0], argc > 2 ? atoi(argv[2]) : 1);
        MPI_Sendrecv(from, sizeof from, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE,
                     (me + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
