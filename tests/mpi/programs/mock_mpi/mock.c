/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Mock MPI libraries. An unknown handle ends the program by abort.
 *
 * By default, a separate MPI: a job is one process, and nothing is sent. With -DINNER="path", a layer that translates
 * handles for Open MPI, and opens Open MPI with the flags HOW. With -DINNER=NULL, the layer is linked with Open MPI.
 * Options: -DWITHOUT_PMPI leaves out PMPI names. -DWITH_OBJECTS adds objects with Open MPI's names, as in layers for
 * programs of Open MPI. -DOF_MPICH translates for MPICH instead.
 */
#define _GNU_SOURCE
#include "mpi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mock_object mock_objects[256];
static unsigned used = MOCK_FIRST_FREE;

static struct mock_object *checked(struct mock_object *object)
{
    const uintptr_t offset = (uintptr_t)object - (uintptr_t)mock_objects;

    if (offset % sizeof *object || offset / sizeof *object - 1 >= used - 1) abort();
    return object;
}

static void **made(struct mock_object **into)
{
    if (used == sizeof mock_objects / sizeof *mock_objects) abort();
    *into = &mock_objects[used++];
    return &(*into)->inner;
}

#define COMM(handle) (checked(handle)->inner)
#define KEPT(handle) (&checked(*(handle))->inner)
#define MADE(handle) made(handle)

#ifdef OF_MPICH
#define STATUS(status) ((status) ? (status) : (void *)1)
#else
#define STATUS(status) (status)
#endif

#ifdef INNER
static void *find(const char *name)
{
    static void *inner;
    const char *path = INNER;
    void *found;

    if (path && !inner) inner = dlopen(path, RTLD_NOW | HOW);
    found = dlsym(path ? inner : RTLD_NEXT, name);
    if (!found) fprintf(stderr, "the layer finds no %s\n", name);
    return found ? found : (abort(), NULL);
}

#ifdef OF_MPICH
static void begin(void)
{
    static const uintptr_t handles[] = {
        [MOCK_WORLD] = 0x44000000, [MOCK_SELF] = 0x44000001, [MOCK_BYTE] = 0x4c00010d, [MOCK_NO_INFO] = 0x1c000000};

    for (int i = MOCK_WORLD; i <= MOCK_NO_INFO; i++) mock_objects[i].inner = (void *)handles[i];
}
#else
static void begin(void)
{
    mock_objects[MOCK_WORLD].inner = find("ompi_mpi_comm_world");
    mock_objects[MOCK_SELF].inner = find("ompi_mpi_comm_self");
    mock_objects[MOCK_BYTE].inner = find("ompi_mpi_byte");
    mock_objects[MOCK_NO_INFO].inner = find("ompi_mpi_info_null");
}
#endif

#define DO(name, arguments)                                                                                            \
    static int (*inner)();                                                                                             \
                                                                                                                       \
    if (!mock_objects[MOCK_WORLD].inner) begin();                                                                      \
    if (!inner) *(void **)&inner = find("MPI_" #name);                                                                 \
    return inner arguments
#else
#define DO(name, arguments)                                                                                            \
    ignore arguments;                                                                                                  \
    return 0
/* Results that a caller may use are the results of a single rank. */
static void ignore()
{
}
#endif

#ifdef WITHOUT_PMPI
#define ALIAS(name, parameters)
#else
#define ALIAS(name, parameters) int PMPI_##name parameters __attribute__((alias("MPI_" #name)));
#endif

#define CALL(name, parameters, arguments)                                                                              \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        DO(name, arguments);                                                                                           \
    }                                                                                                                  \
    ALIAS(name, parameters)
MOCK_CALLS

int MPI_Get_library_version(char *text, int *length)
{
    *length = sprintf(text, "%s", "Mock MPI 1.0\nof nobody");
    return 0;
}
ALIAS(Get_library_version, (char *text, int *length))

int MPI_Get_version(int *version, int *subversion)
{
    *version = 3;
    *subversion = 1;
    return 0;
}
ALIAS(Get_version, (int *version, int *subversion))

#ifdef WITH_OBJECTS
void *ompi_mpi_comm_world[64], *ompi_mpi_comm_self[64], *ompi_mpi_byte[64];
#endif
