/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sessions of MPI-4 that end and begin, with and without MPI_Init. A ring of messages of BYTES each:
 *
 *     sessions one BYTES       in a session
 *     sessions again BYTES     and once more in another, when the first one has ended
 *     sessions within BYTES    and once more on MPI_COMM_WORLD, after the end of the session, which began before MPI_Init
 *     sessions around BYTES    on MPI_COMM_WORLD, and once more in a session that outlives MPI_Finalize
 *     sessions asked BYTES     on MPI_COMM_WORLD, after a session that only answered a query
 *     sessions left BYTES      on MPI_COMM_WORLD, with a session that is still open at MPI_Finalize
 *     sessions empty BYTES     no messages: a session that begins and ends
 *     sessions self BYTES      in a session whose first communicator has one process
 *     sessions alone BYTES     no messages: a session whose only communicator has one process
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static MPI_Session session;
static int bytes;

static void send_around(MPI_Comm comm)
{
    char *from = calloc(1, (size_t)bytes), *into = calloc(1, (size_t)bytes);
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    MPI_Sendrecv(from, bytes, MPI_BYTE, (me + 1) % ranks, 1, into, bytes, MPI_BYTE, (me + ranks - 1) % ranks, 1, comm,
                 MPI_STATUS_IGNORE);
    free(from);
    free(into);
}

static void begin(void)
{
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
}

static MPI_Comm make_from(const char *set)
{
    MPI_Group group;
    MPI_Comm comm;

    MPI_Group_from_session_pset(session, set, &group);
    MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

static MPI_Comm make_world(void)
{
    return make_from("mpi://WORLD");
}

static void end(MPI_Comm comm)
{
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "one";
    const int rounds = strcmp(what, "again") ? 1 : 2;
    int sets;
    MPI_Comm comm;

    bytes = argc > 2 ? atoi(argv[2]) : 1000;
    if (!strcmp(what, "one") || !strcmp(what, "again")) {
        for (int round = 0; round < rounds; round++) {
            begin();
            comm = make_world();
            send_around(comm);
            end(comm);
        }
    } else if (!strcmp(what, "self") || !strcmp(what, "alone")) {
        begin();
        comm = make_from("mpi://SELF");
        if (!strcmp(what, "self")) {
            MPI_Comm_free(&comm);
            comm = make_world();
            send_around(comm);
        }
        end(comm);
    } else if (!strcmp(what, "within") || !strcmp(what, "around")) {
        const int ends_first = !strcmp(what, "within");

        begin();
        comm = make_world();
        if (ends_first) send_around(comm);
        MPI_Init(&argc, &argv);
        if (ends_first) end(comm);
        send_around(MPI_COMM_WORLD);
        MPI_Finalize();
        if (!ends_first) send_around(comm);
        if (!ends_first) end(comm);
    } else {
        begin();
        MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
        if (strcmp(what, "left")) MPI_Session_finalize(&session);
        if (!strcmp(what, "empty")) return 0;
        MPI_Init(&argc, &argv);
        send_around(MPI_COMM_WORLD);
        MPI_Finalize();
        if (!strcmp(what, "left")) MPI_Session_finalize(&session);
    }
    return 0;
}
