/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives are posted in one region, and their messages arrive in another region, in calls of other operations.
 * Meanwhile other calls receive on the communicator. Some ranks free the communicator, and new communicators with
 * reversed ranks reuse the handle. The notes contain the received bytes of RECV, RECV_INIT, SENDRECV and ISENDRECV, for
 * each sending rank.
 *
 *     pending_receives single|multiple      the level of threads
 */
#include "tally.h"

#include <ibprof.h>
#include <mpi.h>
#include <string.h>

#define LIVES 40
#define PENDING 3

static int me, ranks;

static MPI_Comm make(int reversed)
{
    MPI_Comm made;

    MPI_Comm_split(MPI_COMM_WORLD, 0, reversed ? ranks - me : me, &made);
    return made;
}

static int world_rank(int rank, int reversed)
{
    return reversed ? ranks - 1 - rank : rank;
}

/* Each rank receives from the previous rank, by a blocking call that sends and receives. */
static void exchange(MPI_Comm communicator, int reversed, int bytes)
{
    const int here = world_rank(me, reversed), from = (here + ranks - 1) % ranks;
    char out[64] = "", in[64];

    MPI_Sendrecv(out, bytes, MPI_CHAR, (here + 1) % ranks, 1, in, bytes, MPI_CHAR, from, 1, communicator,
                 MPI_STATUS_IGNORE);
    tally_add("SENDRECV", world_rank(from, reversed), me, bytes);
}

/* Post receives on both communicators, some from any source. */
static void post(MPI_Comm one, MPI_Comm other, int reversed, char (*in)[64], MPI_Request *requests)
{
    ibprof_region_begin("posting");
    for (int i = 0; i < PENDING; i++) {
        const int from = (world_rank(me, reversed) + i) % ranks, from_other = (world_rank(me, !reversed) + i) % ranks;

        MPI_Irecv(in[i], 64, MPI_CHAR, from, 10 + i, one, &requests[i]);
        MPI_Irecv(in[PENDING + i], 64, MPI_CHAR, i ? from_other : MPI_ANY_SOURCE, 20 + i, other,
                  &requests[PENDING + i]);
    }
    ibprof_region_end();
}

static void send_to(MPI_Comm communicator, int reversed, int tag, int bytes)
{
    for (int i = 0; i < PENDING; i++) {
        const int here = world_rank(me, reversed), to = (here + 2 * ranks - i) % ranks;
        char out[64] = "";

        MPI_Send(out, bytes + i, MPI_CHAR, to, tag + i, communicator);
        tally_add("RECV", me, world_rank(to, reversed), bytes + i);
    }
}

/* A rank's first message on a communicator is a receive. The rank frees the communicator before the message arrives. */
static void receive_first(int life)
{
    const int frees = (me + life) % ranks, bytes = 30 + life % 7, is_persistent = life / ranks % 2;
    MPI_Comm fresh = make(0);
    MPI_Request request = MPI_REQUEST_NULL;
    char in[64], out[64] = "";

    if (!frees && is_persistent) {
        MPI_Recv_init(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 1, fresh, &request);
        MPI_Start(&request);
    } else if (!frees) {
        MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 1, fresh, &request);
    }
    if (!frees) MPI_Comm_free(&fresh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (frees == 1) MPI_Send(out, bytes, MPI_CHAR, (me + ranks - 1) % ranks, 1, fresh);
    if (frees == 1) tally_add(is_persistent ? "RECV_INIT" : "RECV", me, (me + ranks - 1) % ranks, bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (is_persistent && !frees) MPI_Request_free(&request);
    if (frees) MPI_Comm_free(&fresh);
}

/* The same with MPI_Isendrecv, which Open MPI has from version 5 on, next to MPI_Irecv, in either order. */
static void receive_both(int life)
{
#if !defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION >= 5
    const int frees = (me + life) % ranks, before = (me + ranks - 1) % ranks, after = (me + 1) % ranks;
    MPI_Comm fresh = make(0);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    char in[2][64], out[64] = "";

    for (int i = 0; i < 2 && !frees; i++)
        if (i == life % 2)
            MPI_Irecv(in[i], 64, MPI_CHAR, MPI_ANY_SOURCE, 1, fresh, &requests[i]);
        else
            MPI_Isendrecv(out, 4, MPI_CHAR, after, 2, in[i], 64, MPI_CHAR, MPI_ANY_SOURCE, 3, fresh, &requests[i]);
    if (!frees) MPI_Comm_free(&fresh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (frees == 1) {
        MPI_Send(out, 20 + life % 3, MPI_CHAR, before, 1, fresh);
        MPI_Send(out, 40 + life % 5, MPI_CHAR, before, 3, fresh);
        MPI_Recv(in[0], 64, MPI_CHAR, before, 2, fresh, MPI_STATUS_IGNORE);
        tally_add("RECV", me, before, 20 + life % 3);
        tally_add("ISENDRECV", me, before, 40 + life % 5);
        tally_add("RECV", before, me, 4);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (frees) MPI_Comm_free(&fresh);
#else
    (void)life;
#endif
}

static void live(int life)
{
    const int reversed = life % 2, frees = (me + life) % 2;
    MPI_Comm one = make(reversed), other = make(!reversed), next;
    MPI_Request requests[2 * PENDING];
    char in[2 * PENDING][64], bytes[8] = "";

    exchange(one, reversed, 3);
    post(one, other, reversed, in, requests);
    exchange(one, reversed, 1 + life % 5);
    exchange(other, !reversed, 2);
    MPI_Bcast(bytes, 5, MPI_CHAR, life % ranks, one);
    MPI_Bcast(bytes, 5, MPI_CHAR, life % ranks, other);
    send_to(other, !reversed, 20, 7);
    /* Some ranks free a communicator with pending receives, and create a communicator. Then the other ranks send. */
    if (frees) send_to(one, reversed, 10, 11 + life % 3);
    if (frees) MPI_Comm_free(&one);
    next = make(!reversed);
    exchange(next, !reversed, 9);
    if (!frees) send_to(one, reversed, 10, 11 + life % 3);
    ibprof_region_begin("completing");
    for (int i = 2 * PENDING; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    exchange(next, !reversed, 8);
    ibprof_region_end();
    if (one != MPI_COMM_NULL) MPI_Comm_free(&one);
    MPI_Comm_free(&next);
    MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
    const int level = argc > 1 && !strcmp(argv[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int provided;

    MPI_Init_thread(&argc, &argv, level, &provided);
    if (provided < level) return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int life = 0; life < LIVES; life++) {
        live(life);
        receive_first(life);
        receive_both(life);
    }
    MPI_Finalize();
    tally_write(me);
    return 0;
}
