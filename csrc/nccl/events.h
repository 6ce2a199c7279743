/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Recording of NCCL's communicators, tasks (collectives, sends, receives), proxy operations and steps, for all versions
 * of the profiler interface.
 *
 * Communicators, tasks and flows are records in the recording. ibprof adds each step to these records immediately, so a
 * killed job loses nothing. Communicators, tasks and flows are never freed, so their handles remain valid in any order
 * of starts and stops. Only operations are freed; they come from a pool of fixed size.
 */
#ifndef IBPROF_NCCL_EVENTS_H
#define IBPROF_NCCL_EVENTS_H

#include "ibprof_nccl.h"

#include <stdbool.h>
#include <stdint.h>

/* The type of a handle. The type is the first member of each struct to which handles point. */
enum ibp_nccl_handle { IBP_NCCL_HANDLE_NONE, IBP_NCCL_HANDLE_TASK, IBP_NCCL_HANDLE_OPERATION, IBP_NCCL_HANDLE_STEP };

struct ibp_nccl_context;

struct ibp_nccl_communicator_facts {
    uint64_t hash;
    const char *name;
    /* `ranks` is 0 if unknown. */
    int rank, ranks, nodes;
};

/* Members may be NULL. */
struct ibp_nccl_task_facts {
    const char *function, *algorithm, *protocol;
    uint64_t bytes;
    unsigned channels;
};

struct ibp_nccl_operation_facts {
    bool is_own_process;
    int peer;
    uint8_t channel;
    bool is_send;
};

/* At the first call, find libibprof.so next to this library and open the recording. Return whether the recording is
 * open. */
bool ibp_nccl_open(const void *caller);

/* Begin a communicator. Return NULL if memory is exhausted. ibp_nccl_describe can set the properties of the
 * communicator later. */
struct ibp_nccl_context *ibp_nccl_begin(unsigned interface, const struct ibp_nccl_communicator_facts *facts);
void ibp_nccl_describe(struct ibp_nccl_context *context, const struct ibp_nccl_communicator_facts *facts);
void ibp_nccl_end(struct ibp_nccl_context *context);

/* Begin an event. Return the event's handle; NULL if the event is not recorded. For an operation of another process,
 * the context is ignored. */
void *ibp_nccl_start_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts);
void *ibp_nccl_start_operation(struct ibp_nccl_context *context, void *task,
                               const struct ibp_nccl_operation_facts *facts);
void *ibp_nccl_start_step(void *operation, int step);

void ibp_nccl_note_device(void *step, int device);

void ibp_nccl_record(void *handle, int state, uint64_t bytes);
void ibp_nccl_stop_event(void *handle);

/* Print a line on stderr, once per job. */
void ibp_nccl_say(const char *about, const char *text);

#endif
