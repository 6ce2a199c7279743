/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two programs connect while they run: by MPI_Comm_spawn of any command, or by a port with its name in a file. A
 * program may be unrecorded.
 *
 *     joined spawn COMMAND...      runs COMMAND on as many ranks; COMMAND ends with `joined child`
 *     joined accept|connect FILE
 *
 * Each rank sends to all ranks of the other side, then over a merged communicator of both sides, then to the next rank
 * of its side. The program notes its messages (tally.h); OTHERS are the ranks of the other side.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tally.h"

#define OTHERS (-1)
#define BYTES 70000

static int me, ranks;

static MPI_Comm spawn(int argc, char **argv)
{
    MPI_Comm others;

    if (argc < 3) abort();
    MPI_Comm_spawn(argv[2], argv + 3, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    return others;
}

static MPI_Comm accept_others(const char *path)
{
    char port[MPI_MAX_PORT_NAME] = "", unfinished[4096];
    MPI_Comm others;

    if (!me) {
        FILE *file;

        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(unfinished, sizeof unfinished, "%s.unfinished", path);
        file = fopen(unfinished, "w");
        if (!file || fputs(port, file) < 0 || fclose(file) || rename(unfinished, path)) abort();
    }
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    if (!me) MPI_Close_port(port);
    return others;
}

static MPI_Comm connect_to_others(const char *path)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm others;

    if (!me) {
        FILE *file = NULL;

        while (!file) {
            usleep(10000);
            file = fopen(path, "r");
        }
        if (!fgets(port, sizeof port, file)) abort();
        fclose(file);
    }
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    return others;
}

static void send_to_others(MPI_Comm others)
{
    static char from[BYTES], into[BYTES];
    int there;

    MPI_Comm_remote_size(others, &there);
    for (int i = 0; i < there; i++) {
        const int receiver = (me + i) % there, sender = (me + there - i) % there, bytes = 1000 * (me + 1) + i;
        MPI_Request request;

        MPI_Irecv(into, BYTES, MPI_BYTE, sender, 0, others, &request);
        tally_add("SEND", me, OTHERS, bytes);
        MPI_Send(from, bytes, MPI_BYTE, receiver, 0, others);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(others);
        tally_add("ISSEND", me, OTHERS, BYTES);
        MPI_Issend(from, BYTES, MPI_BYTE, receiver, 1, others, &request);
        MPI_Recv(into, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 1, others, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* A shift by half of all ranks sends from each side to the other. */
static void shift_in_both(MPI_Comm others, int is_high)
{
    static char from[3000], into[3000];
    MPI_Comm both;
    int mine, size;

    MPI_Intercomm_merge(others, is_high, &both);
    MPI_Comm_rank(both, &mine);
    MPI_Comm_size(both, &size);
    tally_add("SENDRECV", me, OTHERS, sizeof from);
    MPI_Sendrecv(from, sizeof from, MPI_BYTE, (mine + size / 2) % size, 0, into, sizeof into, MPI_BYTE,
                 (mine + size / 2) % size, 0, both, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, from, 100, MPI_BYTE, MPI_BOR, both);
    MPI_Comm_free(&both);
}

int main(int argc, char **argv)
{
    static char from[500], into[500];
    MPI_Comm others;
    int is_child;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) return 2;
    is_child = !strcmp(argv[1], "child");
    if (is_child)
        MPI_Comm_get_parent(&others);
    else if (!strcmp(argv[1], "spawn"))
        others = spawn(argc, argv);
    else
        others = !strcmp(argv[1], "accept") ? accept_others(argv[2]) : connect_to_others(argv[2]);
    send_to_others(others);
    shift_in_both(others, is_child || !strcmp(argv[1], "connect"));
    MPI_Comm_disconnect(&others);
    tally_add("SENDRECV", me, (me + 1) % ranks, sizeof from);
    MPI_Sendrecv(from, sizeof from, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE,
                 (me + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
