/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Times every call: reads the clock before and after each call, and sums the times by operation and return address.
 * The library is preloaded twice. Before libibprof.so, compiled with -DOUTSIDE, it only notes the return address. After
 * libibprof.so it reads the clock, so that the times include MPI's work but not ibprof's. One thread at a time may call
 * MPI, in C or C++.
 *
 * At its end, each rank writes lines to the file that EVERY_CALL and the rank's number name:
 *
 *     OPERATION OBJECT ADDRESS CALLS NANOSECONDS
 */
#define _GNU_SOURCE
#include "calls/arguments.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Within a call, MPI may call its own functions by their public names. */
extern int every_call_depth;

/* The return address of the program's present call. */
extern const void *every_call_place;

#ifdef OUTSIDE

EXPORT const void *every_call_place;

/* A jump, so that ibprof sees the program's own address. */
#define IBP_CALL(name, count, ...)                                                                                     \
    EXPORT int MPI_##name(PARAMETERS_##count);                                                                         \
    EXPORT int MPI_##name(PARAMETERS_##count)                                                                          \
    {                                                                                                                  \
        static int (*next)(PARAMETERS_##count);                                                                        \
                                                                                                                       \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, "MPI_" #name);                                                   \
        if (!every_call_depth) every_call_place = __builtin_return_address(0);                                         \
        return next(ARGUMENTS_##count);                                                                                \
    }

#else

#define PLACES 65536

EXPORT int every_call_depth;

static struct place {
    const char *operation;
    const void *address;
    uint64_t calls, ns;
} places[PLACES];

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void add(const char *operation, const void *address, uint64_t ns)
{
    uint64_t i = ((uintptr_t)address ^ (uintptr_t)operation) * UINT64_C(0x9e3779b97f4a7c15) >> 48;

    while (places[i].calls && (places[i].address != address || places[i].operation != operation)) i = (i + 1) % PLACES;
    places[i].operation = operation;
    places[i].address = address;
    places[i].calls++;
    places[i].ns += ns;
}

#define IBP_CALL(name, count, ...)                                                                                     \
    EXPORT int MPI_##name(PARAMETERS_##count);                                                                         \
    EXPORT int MPI_##name(PARAMETERS_##count)                                                                          \
    {                                                                                                                  \
        static int (*next)(PARAMETERS_##count);                                                                        \
        uint64_t begin;                                                                                                \
        int result;                                                                                                    \
                                                                                                                       \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, "MPI_" #name);                                                   \
        if (every_call_depth) return next(ARGUMENTS_##count);                                                          \
        every_call_depth++;                                                                                            \
        begin = now();                                                                                                 \
        result = next(ARGUMENTS_##count);                                                                              \
        add(#name, every_call_place, now() - begin);                                                                   \
        every_call_depth--;                                                                                            \
        return result;                                                                                                 \
    }

static void write_place(FILE *file, const struct place *place)
{
    struct link_map *object = NULL;
    char program[4096] = "";
    Dl_info found;

    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return;
    if (!dladdr1(place->address, &found, (void **)&object, RTLD_DL_LINKMAP)) return;
    fprintf(file, "%s %s %lu %lu %lu\n", place->operation, *object->l_name ? object->l_name : program,
            (unsigned long)((uintptr_t)place->address - object->l_addr), (unsigned long)place->calls,
            (unsigned long)place->ns);
}

/* Bring all pages into memory before the first call, so that no call pays for one. */
static __attribute__((constructor)) void touch_all(void)
{
    memset(places, 1, sizeof places);
    memset(places, 0, sizeof places);
}

static __attribute__((destructor)) void write_all(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *prefix = getenv("EVERY_CALL");
    char path[4096];
    FILE *file;

    if (!rank || !prefix) return;
    snprintf(path, sizeof path, "%s.%s", prefix, rank);
    file = fopen(path, "w");
    if (!file) return;
    for (int i = 0; i < PLACES; i++)
        if (places[i].calls) write_place(file, &places[i]);
    fclose(file);
}

#endif

/* In both variants: the calls that ibprof wraps. */
#define IBP_POINT_TO_POINT(name)
#define IBP_SEND IBP_CALL
#define IBP_SEND_INIT IBP_CALL
#define IBP_TIMED IBP_CALL
#include "mpi.def"
IBP_CALL(Start, 1)
IBP_CALL(Startall, 2)
