/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The minimum that any preloaded tool does: wrappers that pass on their call and its result, and count nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static volatile int noted;

/* An integer and a pointer both take one register or one stack slot. */
#define P5 long a, long b, long c, long d, long e
#define P6 P5, long f
#define P7 P6, long g
#define P8 P7, long h
#define A1 a
#define A5 a, b, c, d, e
#define A6 A5, f
#define A7 A6, g
#define A8 A7, h

#define WRAPPER(name, parameters, arguments)                                                                           \
    static int find_##name parameters;                                                                                 \
    static int(*next_##name) parameters = find_##name;                                                                 \
    static int find_##name parameters                                                                                  \
    {                                                                                                                  \
        void *found = dlsym(RTLD_NEXT, #name);                                                                         \
                                                                                                                       \
        memcpy(&next_##name, &found, sizeof found);                                                                    \
        return next_##name arguments;                                                                                  \
    }                                                                                                                  \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return noted = next_##name arguments;                                                                          \
    }

WRAPPER(MPI_Barrier, (long a), (A1))
WRAPPER(MPI_Bcast, (P5), (A5))
WRAPPER(MPI_Gather, (P8), (A8))
WRAPPER(MPI_Scatter, (P8), (A8))
WRAPPER(MPI_Allgather, (P7), (A7))
WRAPPER(MPI_Alltoall, (P7), (A7))
WRAPPER(MPI_Reduce, (P7), (A7))
WRAPPER(MPI_Allreduce, (P6), (A6))
WRAPPER(MPI_Send, (P6), (A6))
WRAPPER(MPI_Isend, (P7), (A7))
WRAPPER(MPI_Recv, (P7), (A7))
WRAPPER(MPI_Irecv, (P7), (A7))
