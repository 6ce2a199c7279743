/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A lone rank with more communicators than have names. It creates communicators of a group of the last one, after
 * others were freed.
 */
#include <mpi.h>

#define MANY 500
#define GROUPS 10

int main(int argc, char **argv)
{
    MPI_Comm made[MANY], of_group;
    MPI_Group group;

    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; i++) MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    for (int i = 0; i < MANY - 1; i++) MPI_Comm_free(&made[i]);
    MPI_Comm_group(made[MANY - 1], &group);
    for (int i = 0; i < GROUPS; i++) {
        MPI_Comm_create_group(made[MANY - 1], group, i, &of_group);
        MPI_Comm_free(&of_group);
    }
    MPI_Group_free(&group);
    MPI_Comm_free(&made[MANY - 1]);
    MPI_Finalize();
    return 0;
}
