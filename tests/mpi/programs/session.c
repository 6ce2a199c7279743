/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A program of MPI-4 without MPI_Init: a broadcast and a ring of messages on a communicator made from a process set.
 *
 *     session BYTES
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 1000;
    char *from = calloc(1, (size_t)bytes), *into = calloc(1, (size_t)bytes);
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int me, ranks;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "session", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    MPI_Bcast(from, bytes, MPI_BYTE, 0, comm);
    MPI_Sendrecv(from, bytes, MPI_BYTE, (me + 1) % ranks, 1, into, bytes, MPI_BYTE, (me + ranks - 1) % ranks, 1, comm,
                 MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    free(from);
    free(into);
    return 0;
}
