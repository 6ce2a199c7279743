/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent point-to-point: every kind of send, started one by one and together, on two communicators. Requests are
 * freed and created again, so that new requests have the addresses of old requests.
 *
 *     persistent [LIVES ROUNDS]
 */
#include "tally.h"

#include <mpi.h>

#define KINDS 4
#define LARGEST (128 << 10)

static const char *const names[KINDS] = {"SEND_INIT", "SSEND_INIT", "BSEND_INIT", "RSEND_INIT"};

static int me, ranks, rounds = 30;
static char *from, *into[KINDS];

static void live_once(MPI_Comm comm, int sign, int life)
{
    /* In the reversed communicator, the next rank is the previous rank of MPI_COMM_WORLD. */
    const int here = sign > 0 ? me : ranks - 1 - me, distance = 1 + life % ranks;
    const int to = (here + distance) % ranks, source = (here + ranks - distance % ranks) % ranks;
    const int world_to = sign > 0 ? to : ranks - 1 - to;
    MPI_Request sends[KINDS], receives[KINDS];
    int bytes[KINDS];

    for (int kind = 0; kind < KINDS; kind++) {
        bytes[kind] = life % 3 ? 100 * (life + 1) + kind : LARGEST - 1000 * life - kind;
        MPI_Recv_init(into[kind], LARGEST, MPI_BYTE, source, kind, comm, &receives[kind]);
    }
    MPI_Send_init(from, bytes[0], MPI_BYTE, to, 0, comm, &sends[0]);
    MPI_Ssend_init(from, bytes[1], MPI_BYTE, to, 1, comm, &sends[1]);
    MPI_Bsend_init(from, bytes[2], MPI_BYTE, to, 2, comm, &sends[2]);
    MPI_Rsend_init(from, bytes[3], MPI_BYTE, to, 3, comm, &sends[3]);
    for (int round = 0; round < rounds; round++) {
        MPI_Startall(KINDS, receives);
        MPI_Barrier(comm); /* a ready send needs its receive */
        if (round % 2)
            MPI_Startall(KINDS, sends);
        else
            for (int kind = 0; kind < KINDS; kind++) MPI_Start(&sends[kind]);
        for (int kind = 0; kind < KINDS; kind++) tally_add(names[kind], me, world_to, bytes[kind]);
        MPI_Waitall(KINDS, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(KINDS, receives, MPI_STATUSES_IGNORE);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Request_free(&sends[kind]);
        MPI_Request_free(&receives[kind]);
    }
}

int main(int argc, char **argv)
{
    const int room = 16 << 20, lives = argc > 2 ? atoi(argv[1]) : 10;
    MPI_Comm reversed;
    MPI_Request never;

    if (argc > 2) rounds = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(1, LARGEST);
    for (int kind = 0; kind < KINDS; kind++) into[kind] = malloc(LARGEST);
    MPI_Buffer_attach(malloc((size_t)room), room);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    for (int life = 0; life < lives; life++) {
        live_once(MPI_COMM_WORLD, 1, life);
        live_once(reversed, -1, life);
    }
    MPI_Send_init(from, 1000, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &never);
    MPI_Request_free(&never);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
