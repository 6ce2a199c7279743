/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * NCCL's work, independent of the version of its interface: communicators, tasks (collectives, sends, receives),
 * operations of proxies, and their steps.
 *
 * Communicators, tasks and flows have records in the recording. Each step adds to them, so that a killed job keeps
 * them. They are never freed, so a handle stays valid in any order of NCCL's starts and stops. Only operations are in
 * flight; they come from a pool of fixed size.
 */
#ifndef IBPROF_NCCL_EVENTS_H
#define IBPROF_NCCL_EVENTS_H

#include "ibprof_nccl.h"

#include <stdbool.h>
#include <stdint.h>

/* The type of an event: the first member of each struct behind a handle. */
enum ibp_nccl_handle { IBP_NCCL_HANDLE_NONE, IBP_NCCL_HANDLE_TASK, IBP_NCCL_HANDLE_OPERATION, IBP_NCCL_HANDLE_STEP };

struct ibp_nccl_context;

struct ibp_nccl_communicator_facts {
    uint64_t hash;
    const char *name;
    /* 0 ranks: unknown. */
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

/* Find libibprof.so next to this library and open the recording, once. Return whether there is one. */
bool ibp_nccl_open(const void *caller);

/* Begin a communicator; NULL when there is no memory. The facts may follow. */
struct ibp_nccl_context *ibp_nccl_begin(unsigned interface, const struct ibp_nccl_communicator_facts *facts);
void ibp_nccl_describe(struct ibp_nccl_context *context, const struct ibp_nccl_communicator_facts *facts);
void ibp_nccl_end(struct ibp_nccl_context *context);

/* Return a handle; NULL where the event is not recorded. For an operation of another process, the context is
 * ignored. */
void *ibp_nccl_start_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts);
void *ibp_nccl_start_operation(struct ibp_nccl_context *context, void *task,
                               const struct ibp_nccl_operation_facts *facts);
void *ibp_nccl_start_step(void *operation, int step);

/* Note the device that a step used. */
void ibp_nccl_note_device(void *step, int device);

void ibp_nccl_record(void *handle, int state, uint64_t bytes);
void ibp_nccl_stop_event(void *handle);

/* Print one line a job. */
void ibp_nccl_say(const char *about, const char *text);

#endif
