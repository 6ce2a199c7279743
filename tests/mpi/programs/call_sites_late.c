/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A library that is opened late. A comment at each call states the bytes that the line sends on all ranks.
 */
#include <mpi.h>

void called_late(void);
void called_late(void)
{
    char bytes[17] = {0};

    MPI_Bcast(bytes, 17, MPI_CHAR, 0, MPI_COMM_WORLD); /* BCAST 17 */
}
