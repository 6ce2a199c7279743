/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * With -DPLUGIN a library that calls MPI. Otherwise a program without MPI that opens such a library: PATH HOW.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#ifdef PLUGIN
#include <mpi.h>

int run(void)
{
    static char buffer[1000];
    int rank;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(buffer, 500, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(buffer, 500, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return rank;
}
#else
#include <dlfcn.h>

int main(int argc, char **argv)
{
    const int flags = !strcmp(argv[2], "global") ? RTLD_GLOBAL : !strcmp(argv[2], "deep") ? RTLD_DEEPBIND : RTLD_LOCAL;
    void *plugin =
        !strcmp(argv[2], "namespace") ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_LAZY) : dlopen(argv[1], RTLD_LAZY | flags);
    int (*run)(void) = NULL;

    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&run = dlsym(plugin, "run");
    if (!run) return 2;
    if (!run()) printf("done\n");
    return 0;
}
#endif
