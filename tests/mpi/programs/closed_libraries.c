/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two libraries are opened, called and closed in turn, so the second library gets the addresses of the first. With
 * -DCLOSED=1 or 2, this file is a library. A comment at each call states the bytes that the line sends on two ranks.
 *
 *     closed_libraries FIRST SECOND
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void called(void);

#ifdef CLOSED
void called(void)
{
    char bytes[2] = {0};

#if CLOSED == 1
    MPI_Bcast(bytes, CLOSED, MPI_CHAR, 0, MPI_COMM_WORLD); /* BCAST 40 */
#else
    MPI_Bcast(bytes, CLOSED, MPI_CHAR, 0, MPI_COMM_WORLD); /* BCAST 80 */
#endif
}
#else
#define ROUNDS 40

static void *call_once(const char *path)
{
    void *library = dlopen(path, RTLD_NOW), *place;
    void (*function)(void);

    if (!library || !(place = dlsym(library, "called"))) abort();
    memcpy(&function, &place, sizeof place);
    function();
    dlclose(library);
    return place;
}

int main(int argc, char **argv)
{
    int shared = 0;

    MPI_Init(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        void *const first = call_once(argv[1]), *const second = call_once(argv[2]);

        shared += first == second;
    }
    printf("%d rounds at the same address\n", shared);
    MPI_Finalize();
    return 0;
}
#endif
