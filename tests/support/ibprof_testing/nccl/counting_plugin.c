/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A profiler plug-in of the version VERSION. It counts events, and writes a line of JSON to NEXT_LOG at the end.
 * Handles point to the plug-in's memory. The plug-in fails if a call passes another handle.
 */
#define _GNU_SOURCE
#include "nccl/profiler_abi.h"

#include <stdio.h>
#include <stdlib.h>

struct handle {
    int magic;
    unsigned long type;
    struct handle *parent;
};
#define MAGIC 0x4e455854

static long collectives, operations, is_open, bytes, orphans, failures;

static int start(void *context, void **handle, void *given)
{
    struct ibp_nccl_event_5 *event = given;
    const unsigned long type = VERSION < 5 ? *(uint8_t *)given : event->type;
    struct handle *made = calloc(1, sizeof *made), *parent = event->parent;

    (void)context;
    made->magic = MAGIC;
    made->type = type;
    made->parent = parent;
    if (type == IBP_NCCL_COLL) __atomic_fetch_add(&collectives, 1, __ATOMIC_RELAXED);
    if (type == IBP_NCCL_PROXY_OP) __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
    if (type == IBP_NCCL_PROXY_OP && (!parent || parent->magic != MAGIC || parent->type != IBP_NCCL_COLL)) orphans++;
    if (type == IBP_NCCL_PROXY_STEP && (!parent || parent->magic != MAGIC || parent->type != IBP_NCCL_PROXY_OP))
        orphans++;
    __atomic_fetch_add(&is_open, 1, __ATOMIC_RELAXED);
    *handle = made;
    return 0;
}

static int stop(void *given)
{
    const struct handle *handle = given;

    if (handle->magic != MAGIC) failures++;
    __atomic_fetch_sub(&is_open, 1, __ATOMIC_RELAXED);
    return 0;
}

static int record(void *given, int state, void *arguments)
{
    const struct handle *handle = given;

    if (handle->magic != MAGIC) failures++;
    if (VERSION >= 4 && state == IBP_NCCL_SEND_WAIT && arguments)
        __atomic_fetch_add(&bytes, (long)((union ibp_nccl_state_arguments *)arguments)->proxy_step.bytes,
                           __ATOMIC_RELAXED);
    return 0;
}

static int finalize(void *context)
{
    FILE *log = getenv("NEXT_LOG") ? fopen(getenv("NEXT_LOG"), "a") : NULL;

    (void)context;
    if (!log) return 0;
    fprintf(log,
            "{\"version\": %d, \"collectives\": %ld, \"operations\": %ld, \"open\": %ld, \"bytes\": %ld, \"orphans\": "
            "%ld}\n",
            VERSION, collectives, operations, is_open, bytes, orphans + failures);
    fclose(log);
    return 0;
}

static int begin(void **context, int *mask)
{
    *context = &collectives;
    *mask = IBP_NCCL_COLL | IBP_NCCL_P2P | IBP_NCCL_PROXY_OP | IBP_NCCL_PROXY_STEP;
    return 0;
}

#if VERSION < 4
#define INIT .init_1 = begin
#elif VERSION == 4
static int init(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                ibp_nccl_logger *logger)
{
    (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)logger;
    return begin(context, mask);
}
#define INIT .init_4 = init
#else
static int init(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,
                ibp_nccl_logger *logger)
{
    (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)logger;
    return begin(context, mask);
}
#define INIT .init_5 = init
#endif

#define NAME(version) ncclProfiler_v##version
#define NAMED(version) NAME(version)
extern const struct ibp_nccl_profiler NAMED(VERSION);
const struct ibp_nccl_profiler NAMED(VERSION) = {
    .name = "counting", INIT, .start = start, .stop = stop, .record = record, .finalize = finalize};
