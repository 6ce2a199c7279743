/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A ring of messages of 8 bytes to 3 MB, by each kind of send, with sender's and receiver's buffers contiguous or with
 * gaps. Each receive names its source: MPICH 5.0.2 hangs in its own rendezvous from MPI_ANY_SOURCE.
 *
 *     rendezvous
 */
#include "tally.h"

#include <mpi.h>
#include <string.h>

#define LARGEST (3 << 20)

static const int sizes[] = {8, 200, 4096, 20000, 300000, LARGEST};

static int me, ranks, left, next;
static char *from, *into;

/* Return a datatype of this size: bytes, or blocks of 8 bytes with gaps of 8. */
static MPI_Datatype make_type(int bytes, int has_gaps)
{
    MPI_Datatype type;

    if (has_gaps)
        MPI_Type_vector(bytes / 8, 8, 16, MPI_BYTE, &type);
    else
        MPI_Type_contiguous(bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Check what was received: bytes of the left neighbour, at the places that the datatype covers. */
static void check(int bytes, int has_gaps, int mark)
{
    for (int i = 0; i < bytes; i++)
        if (into[has_gaps ? i / 8 * 16 + i % 8 : i] != (char)(left + mark)) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange(int bytes, int gaps_from, int gaps_into)
{
    MPI_Datatype sent = make_type(bytes, gaps_from), received = make_type(bytes, gaps_into);
    MPI_Request requests[2], persistent;

    for (int kind = 0; kind < 4; kind++) {
        const int mark = 1 + kind;

        memset(from, me + mark, 2 * (size_t)bytes);
        memset(into, 0, 2 * (size_t)bytes);
        MPI_Irecv(into, 1, received, left, kind, MPI_COMM_WORLD, &requests[0]);
        switch (kind) {
        case 0:
            MPI_Send(from, 1, sent, next, kind, MPI_COMM_WORLD);
            tally_add("SEND", me, next, bytes);
            break;
        case 1:
            MPI_Ssend(from, 1, sent, next, kind, MPI_COMM_WORLD);
            tally_add("SSEND", me, next, bytes);
            break;
        case 2:
            MPI_Isend(from, 1, sent, next, kind, MPI_COMM_WORLD, &requests[1]);
            MPI_Barrier(MPI_COMM_WORLD); /* part of the message may be sent here */
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            tally_add("ISEND", me, next, bytes);
            break;
        default:
            MPI_Send_init(from, 1, sent, next, kind, MPI_COMM_WORLD, &persistent);
            MPI_Start(&persistent);
            MPI_Wait(&persistent, MPI_STATUS_IGNORE);
            MPI_Request_free(&persistent);
            tally_add("SEND_INIT", me, next, bytes);
        }
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        check(bytes, gaps_into, mark);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&sent);
    MPI_Type_free(&received);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (me + 1) % ranks;
    left = (me + ranks - 1) % ranks;
    from = malloc(2 * LARGEST);
    into = malloc(2 * LARGEST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int gaps = 0; gaps < 4; gaps++) exchange(sizes[i], gaps & 1, gaps >> 1);
    free(from);
    free(into);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
