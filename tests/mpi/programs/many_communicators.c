/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Ranks make communicators in each way, use them and free them. A forked copy of the process calls nothing. Each rank
 * prints by how many kB the used memory grew after the first tenth.
 *
 *     many_communicators COMMUNICATORS
 *
 * The messages are noted (tally.h).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tally.h"

#define KEPT 50

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!file || fscanf(file, "%*d %ld", &pages) != 1) abort();
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static MPI_Comm make(int number, int me)
{
    MPI_Comm made;
    MPI_Request request;

    switch (number % 3) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &made);
        break;
    default:
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return made;
}

static void use(MPI_Comm made, int me, int ranks)
{
    char from[8] = "", into[8];
    int mine, other, world_other, sum = 1;
    MPI_Group group, world;

    MPI_Comm_rank(made, &mine);
    other = (mine + 1) % ranks;
    MPI_Comm_group(made, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &other, world, &world_other);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    tally_add("SENDRECV", me, world_other, sizeof from);
    MPI_Sendrecv(from, sizeof from, MPI_BYTE, other, 0, into, sizeof into, MPI_BYTE, (mine + ranks - 1) % ranks, 0,
                 made, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, made);
    if (sum != ranks) abort();
}

/* Forked copies of this process end by different calls. */
static void fork_copies(void)
{
    for (int i = 0; i < 4; i++) {
        const pid_t copy = fork();

        if (!copy && i % 2) exit(0);
        if (!copy) _exit(0);
        waitpid(copy, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    const int communicators = argc > 1 ? atoi(argv[1]) : 10000;
    static MPI_Comm kept[KEPT];
    long before = 0;
    int me, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < communicators; i++) {
        if (i >= KEPT) MPI_Comm_free(&kept[i % KEPT]);
        kept[i % KEPT] = make(i, me);
        use(kept[i % KEPT], me, ranks);
        if (i == communicators / 2) fork_copies();
        if (i == communicators / 10) before = resident_kb();
    }
    printf("%ld\n", resident_kb() - before);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
