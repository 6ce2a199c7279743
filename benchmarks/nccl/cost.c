/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Passes the events of ring collectives to a profiler plug-in of version 5, in NCCL's order, without any network:
 *
 *     cost PLUGIN COLLECTIVES
 *
 * Prints the number of calls, and the CPU time of the thread that made them, in ns.
 */
#define _GNU_SOURCE
#include "nccl/profiler_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEPS 32
#define OPERATIONS 4

static const struct ibp_nccl_profiler *plugin;
static void *context;
static long calls;

static void *start(struct ibp_nccl_event_5 *event, uint64_t type, void *parent)
{
    void *handle = NULL;

    event->type = type;
    event->parent = parent;
    plugin->start(context, &handle, event);
    calls++;
    return handle;
}

static void stop(void *handle)
{
    if (!handle) return;
    plugin->stop(handle);
    calls++;
}

static void record(void *handle, int state, size_t bytes)
{
    union ibp_nccl_state_arguments arguments = {.proxy_step = {bytes}};

    if (!handle) return;
    plugin->record(handle, state, &arguments);
    calls++;
}

static void *start_operation(void *task, int number)
{
    struct ibp_nccl_event_5 event = {
        .proxy_op = {getpid(), (uint8_t)(number / 2), 1 + number % 2, STEPS, 1 << 19, number % 2}};
    void *operation = start(&event, IBP_NCCL_PROXY_OP, task);

    record(operation, IBP_NCCL_IN_PROGRESS, 0);
    return operation;
}

static void run_step(void *operation, int number, bool is_send)
{
    struct ibp_nccl_event_5 event = {.proxy_step = {number}};
    void *step = start(&event, IBP_NCCL_PROXY_STEP, operation);

    record(step, is_send ? IBP_NCCL_SEND_GPU_WAIT : IBP_NCCL_RECV_WAIT, 0);
    record(step, is_send ? IBP_NCCL_SEND_PEER_WAIT : IBP_NCCL_RECV_FLUSH_WAIT, 1 << 19);
    record(step, is_send ? IBP_NCCL_SEND_WAIT : IBP_NCCL_RECV_GPU_WAIT, 1 << 19);
    stop(step);
}

static void run_collective(uint64_t number)
{
    struct ibp_nccl_event_5 of_group = {.group_api = {false, 1}};
    struct ibp_nccl_event_5 of_call = {.coll_api = {.function = "AllReduce", .count = 1000, .datatype = "ncclFloat32"}};
    struct ibp_nccl_event_5 of_task = {.coll = {.sequence = number,
                                                .function = "AllReduce",
                                                .count = 1000,
                                                .datatype = "ncclFloat32",
                                                .channels = 2,
                                                .algorithm = "RING",
                                                .protocol = "SIMPLE"}};
    void *group = start(&of_group, IBP_NCCL_GROUP_API, NULL);
    void *call = start(&of_call, IBP_NCCL_COLL_API, group);
    void *task = start(&of_task, IBP_NCCL_COLL, call), *operations[OPERATIONS];

    stop(call);
    stop(task);
    stop(group);
    for (int i = 0; i < OPERATIONS; i++) operations[i] = start_operation(task, i);
    for (int i = 0; i < STEPS * OPERATIONS; i++)
        run_step(operations[i % OPERATIONS], i / OPERATIONS, i % OPERATIONS % 2);
    for (int i = 0; i < OPERATIONS; i++) stop(operations[i]);
}

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

int main(int count, char **arguments)
{
    void *library = count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    struct timespec begin, end;
    int mask = 0;

    if (library) plugin = dlsym(library, "ncclProfiler_v5");
    if (!plugin || plugin->init_5(&context, 1, &mask, "cost", 1, 4, 0, logger)) {
        fprintf(stderr, "%s\n", count == 3 ? dlerror() : "usage: cost PLUGIN COLLECTIVES");
        return 2;
    }
    for (int i = 0; i < 100; i++) run_collective((uint64_t)i);
    calls = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < atoi(arguments[2]); i++) run_collective((uint64_t)i);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    printf("%ld %lld\n", calls, (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
    plugin->finalize(context);
    return 0;
}
