/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The current MPI call of this thread. Wrappers of MPI calls set it. Sources read it when they see a message.
 */
#ifndef IBPROF_COUNTING_CURRENT_CALL_H
#define IBPROF_COUNTING_CURRENT_CALL_H

#include "counting/calls.h"
#include "counting/context.h"
#include "counting/repeats.h"
#include "counting/wrapped_calls.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/stack.h"
#include "platform/system.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_current_call {
    /* IBP_OPERATION_NONE outside of MPI calls. */
    uint16_t operation;
    uint8_t kind;            /* enum ibp_call_kind */
    /* The call is MPI_Start or MPI_Startall. Its messages count for the calls that created the requests. */
    bool starts_request;
    /* The call is nonblocking and has a count of 0. */
    bool moves_nothing;
    /* The internal tag that MPI will probably use for the call; 0 if MPI uses none. */
    int tag;
    /* The communicator argument; 0 if there is none. */
    long communicator;
    /* The end of the wrapper's stack frame. */
    uintptr_t frame;
    /* The call. This member remains set after the call has returned. For sends, it is set only while several threads
     * are in MPI. */
    struct ibp_call *call;
};

extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_current_call ibp_current_call;

/* Return the communicator of the call; 0 if there is none, or if the handle belongs to another MPI library. */
static inline ibp_handle ibp_current_communicator(void)
{
    return ibp_mpi.is_behind_layer ? 0 : IBP_HANDLE(ibp_current_call.communicator);
}

/* Return the number of the current call. */
unsigned ibp_current_call_number(void);

/* The personality routine of wrappers. When an exception unwinds the stack, the unwinder calls it for each frame of a
 * wrapper. */
IBP_INTERNAL int ibp_personality(int version, int actions, uint64_t language, void *exception, void *context);

/* Make ibp_personality the personality routine of the enclosing function. On other processors, ibprof does not notice
 * exceptions. */
#if defined(__x86_64__) || defined(__aarch64__)
#define IBP_NAMES_PERSONALITY __asm__ volatile(".cfi_personality 0x1b, ibp_personality") /* 0x1b: relative, 4 bytes */
#else
#define IBP_NAMES_PERSONALITY ((void)0)
#endif

/* Enter a call: `current` becomes the current call, with the frame of the calling function. */
static inline __attribute__((always_inline)) void ibp_enter(struct ibp_call *call, struct ibp_current_call current)
{
    IBP_NAMES_PERSONALITY;
    current.operation = call->operation;
    current.frame = ibp_stack_end;
    current.call = call;
    ibp_current_call = current;
    ibp_set_here(&call->context);
    ibp_repeats = ibp_no_repeats;
}

/* Return whether this thread is in a wrapped call. If the frame of the current call no longer exists, the program left
 * the call by a non-local exit. */
static inline __attribute__((always_inline)) bool ibp_is_within_call(void)
{
    return ibp_current_call.operation && ibp_stack_end < ibp_current_call.frame;
}

/* For several threads in MPI: set the call of a send that the wrapper only passes on. Return false if the call may be
 * wrong: inside another call, which the program may have left by a non-local exit, or at a new site. */
static inline bool ibp_set_call_among_threads(unsigned operation, const void *address)
{
    struct ibp_call *call;

    call = ibp_call_cached_among_threads(operation, address);
    if (IBP_UNLIKELY(!call) || IBP_UNLIKELY(ibp_current_call.operation)) return false;
    ibp_current_call.call = call;
    return true;
}

static inline void ibp_leave(void)
{
    ibp_current_call.operation = IBP_OPERATION_NONE;
    ibp_current_call.kind = 0;
    ibp_current_call.starts_request = false;
    ibp_set_here(ibp_between);
    ibp_repeats = ibp_repeats_between;
}

#endif
