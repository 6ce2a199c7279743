/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library through which programs call MPI. A comment names each line that the test checks.
 */
#include <mpi.h>

int exchange(char *bytes, int count);
int visit(int (*callback)(char *), char *bytes);
int prepare(char *bytes, int count, MPI_Request *request);
int spread(char *bytes, int count);

static int rank(void)
{
    int number;

    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    return number;
}

int exchange(char *bytes, int count)
{
    int error;

    if (rank() == 0)
        error = MPI_Send(bytes, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD); /* @send */
    else
        error = MPI_Recv(bytes, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return error + bytes[0];
}

int visit(int (*callback)(char *), char *bytes)
{
    int sum = callback(bytes); /* @visit */

    return sum + bytes[1];
}

int prepare(char *bytes, int count, MPI_Request *request)
{
    int error;

    if (rank() == 0)
        error = MPI_Send_init(bytes, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD, request); /* @prepare */
    else
        error = MPI_Recv_init(bytes, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, request);
    return error + bytes[0];
}

int spread(char *bytes, int count)
{
    int error = MPI_Bcast(bytes, count, MPI_CHAR, 0, MPI_COMM_WORLD); /* @spread */

    return error + bytes[0];
}
