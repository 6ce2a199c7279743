/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Random messages of every kind of send, received in every way, on communicators that order ranks differently. All ranks
 * draw the same numbers, so each rank knows the calls of all ranks.
 *
 *     point_to_point SEED [intra]      with intracommunicators alone
 */
#include "tally.h"

#include <mpi.h>

#define LARGEST (256 << 10)
#define ROUNDS 8
#define MESSAGES 40 /* a round */

enum mode { SEND, SSEND, BSEND, RSEND, ISEND, ISSEND, IBSEND, MODES, NOT_WAITING = ISEND };
enum taking { RECV, RECV_LARGER, RECV_INIT, PROBE, MPROBE, IMPROBE, TAKINGS, AFTER_PROBE = PROBE };

static const char *const names[MODES] = {"SEND", "SSEND", "BSEND", "RSEND", "ISEND", "ISSEND", "IBSEND"};
static const int sizes[] = {0, 1, 8, 1000, 4096, 20000, 70000, LARGEST};

static struct message {
    int sender, receiver, bytes;
    enum mode mode;
    enum taking taking;
    MPI_Comm comm;
} messages[MESSAGES];

static MPI_Comm duplicate, reversed, halves, other_half;
static int me, ranks;
static char *from, *into[MESSAGES];

static unsigned long state; /* state of the random numbers */

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(state >> 33) % below;
}

static MPI_Comm draw_communicator(int sender, int receiver)
{
    switch (draw(4)) {
    case 0:
        return MPI_COMM_WORLD;
    case 1:
        return duplicate;
    case 2:
        return reversed;
    default:
        return sender % 2 == receiver % 2 ? halves : other_half;
    }
}

static void draw_messages(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        struct message *message = &messages[i];

        message->sender = (int)draw((unsigned)ranks);
        message->receiver = (int)draw((unsigned)ranks);
        message->bytes = sizes[draw(sizeof sizes / sizeof *sizes)];
        message->taking = (enum taking)draw(TAKINGS);
        /* A rank that probes may wait in a send, so no rank may wait for a rank that probes. */
        message->mode = message->taking >= AFTER_PROBE ? (enum mode)(NOT_WAITING + draw(MODES - NOT_WAITING))
                                                       : (enum mode)draw(MODES);
        message->comm = draw_communicator(message->sender, message->receiver);
    }
}

/* Return a rank of MPI_COMM_WORLD as a rank of the communicator, or of its remote group. */
static int rank_in(MPI_Comm comm, int world_rank)
{
    MPI_Group world_group, group;
    int two_sides, rank;

    MPI_Comm_test_inter(comm, &two_sides);
    MPI_Comm_group(MPI_COMM_WORLD, &world_group);
    if (two_sides)
        MPI_Comm_remote_group(comm, &group);
    else
        MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(world_group, 1, &world_rank, group, &rank);
    MPI_Group_free(&world_group);
    MPI_Group_free(&group);
    return rank;
}

static void post_receive(int i, MPI_Request *request)
{
    const struct message *message = &messages[i];
    const int sender = rank_in(message->comm, message->sender);

    if (message->taking == RECV) {
        MPI_Irecv(into[i], message->bytes, MPI_BYTE, sender, i, message->comm, request);
    } else if (message->taking == RECV_LARGER) {
        MPI_Irecv(into[i], LARGEST, MPI_BYTE, MPI_ANY_SOURCE, i, message->comm, request);
    } else if (message->taking == RECV_INIT) {
        MPI_Recv_init(into[i], LARGEST, MPI_BYTE, sender, i, message->comm, request);
        MPI_Start(request);
    }
}

static void send(int i, MPI_Request *request)
{
    const struct message *message = &messages[i];
    const int receiver = rank_in(message->comm, message->receiver);

    switch (message->mode) {
    case SEND:
        MPI_Send(from, message->bytes, MPI_BYTE, receiver, i, message->comm);
        break;
    case SSEND:
        MPI_Ssend(from, message->bytes, MPI_BYTE, receiver, i, message->comm);
        break;
    case BSEND:
        MPI_Bsend(from, message->bytes, MPI_BYTE, receiver, i, message->comm);
        break;
    case RSEND:
        MPI_Rsend(from, message->bytes, MPI_BYTE, receiver, i, message->comm);
        break;
    case ISEND:
        MPI_Isend(from, message->bytes, MPI_BYTE, receiver, i, message->comm, request);
        break;
    case ISSEND:
        MPI_Issend(from, message->bytes, MPI_BYTE, receiver, i, message->comm, request);
        break;
    default:
        MPI_Ibsend(from, message->bytes, MPI_BYTE, receiver, i, message->comm, request);
    }
    tally_add(names[message->mode], me, message->receiver, message->bytes);
}

static void receive_after_probe(int i)
{
    const struct message *message = &messages[i];
    const int sender = rank_in(message->comm, message->sender);
    MPI_Message matched;
    MPI_Request request;
    MPI_Status status;
    int found = 0;

    if (message->taking == PROBE) {
        MPI_Probe(sender, i, message->comm, &status);
        MPI_Recv(into[i], LARGEST, MPI_BYTE, sender, i, message->comm, &status);
    } else if (message->taking == MPROBE) {
        MPI_Mprobe(MPI_ANY_SOURCE, i, message->comm, &matched, &status);
        MPI_Mrecv(into[i], LARGEST, MPI_BYTE, &matched, MPI_STATUS_IGNORE);
    } else {
        while (!found) MPI_Improbe(sender, i, message->comm, &found, &matched, &status);
        MPI_Imrecv(into[i], LARGEST, MPI_BYTE, &matched, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void play_round(void)
{
    MPI_Request sends[MESSAGES], receives[MESSAGES];

    draw_messages();
    for (int i = 0; i < MESSAGES; i++) {
        sends[i] = receives[i] = MPI_REQUEST_NULL;
        if (messages[i].receiver == me && messages[i].taking < AFTER_PROBE) post_receive(i, &receives[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs its receive */
    for (int i = 0; i < MESSAGES; i++)
        if (messages[i].sender == me) send(i, &sends[i]);
    for (int i = 0; i < MESSAGES; i++)
        if (messages[i].receiver == me && messages[i].taking >= AFTER_PROBE) receive_after_probe(i);
    MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(MESSAGES, receives, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        if (receives[i] != MPI_REQUEST_NULL) MPI_Request_free(&receives[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange(int distance, int bytes)
{
    const int to = (me + distance) % ranks, source = (me + ranks - distance % ranks) % ranks;

    MPI_Sendrecv(from, bytes + me, MPI_BYTE, to, 1, into[0], LARGEST, MPI_BYTE, source, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    tally_add("SENDRECV", me, to, bytes + me);
    MPI_Sendrecv_replace(from, bytes, MPI_BYTE, rank_in(reversed, to), 2, rank_in(reversed, source), 2, reversed,
                         MPI_STATUS_IGNORE);
    tally_add("SENDRECV_REPLACE", me, to, bytes);
}

/* Datatypes with gaps, MPI_PROC_NULL, and receives with MPI_ANY_TAG. */
static void odd_ones(void)
{
    const int to = (me + 1) % ranks, source = (me + ranks - 1) % ranks;
    MPI_Datatype strided;
    MPI_Request request;

    MPI_Type_vector(50, 3, 7, MPI_DOUBLE, &strided);
    MPI_Type_commit(&strided);
    MPI_Irecv(into[0], 100, strided, source, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Send(from, 5, strided, to, 7, MPI_COMM_WORLD);
    tally_add("SEND", me, to, 5 * 50 * 3 * (long)sizeof(double));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&strided);

    MPI_Send(from, 100, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(into[0], 100, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(into[0], 100, MPI_BYTE, source, 8, MPI_COMM_WORLD, &request); /* no such message is ever sent */
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const size_t room = 64 << 20;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = calloc(1, LARGEST);
    for (int i = 0; i < MESSAGES; i++) into[i] = malloc(LARGEST);
    MPI_Buffer_attach(malloc(room), (int)room);
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &halves);
    /* Ranks of a half are in reverse order; the two highest ranks are in different halves. */
    other_half = MPI_COMM_WORLD;
    if (argc < 3)
        MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, ranks - 1 - ((ranks - 1) % 2 == me % 2), 3, &other_half);
    if (argc > 1) state = strtoul(argv[1], NULL, 10);
    for (int round = 0; round < ROUNDS; round++) play_round();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes - 1; i++) exchange((int)i, sizes[i]);
    odd_ones();
    tally_write(me);
    MPI_Finalize();
    return 0;
}
