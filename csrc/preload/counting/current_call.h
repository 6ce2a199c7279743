/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The current MPI call of this thread. Wrappers of MPI calls set the current call. Sources read the current call when
 * they see a message.
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
    /* True if the call is MPI_Start or MPI_Startall. Messages of this call count for the calls that created
     * the requests. */
    bool starts_request;
    /* True if the call is nonblocking, and its count argument is 0. */
    bool moves_nothing;
    /* The tag that MPI will probably use for the call's internal messages; 0 if MPI uses no internal tag. */
    int tag;
    /* The communicator argument; 0 if there is none. */
    long communicator;
    /* Address of the end of the wrapper's stack frame. */
    uintptr_t frame;
    /* The `ibp_call` of the current call; between calls, the `ibp_call` of the last call. If only one thread can be in
     * MPI, wrappers that only pass a send on do not set `call`. */
    struct ibp_call *call;
};

extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_current_call ibp_current_call;

/* Return the communicator argument of the current call; 0 without this argument, or if the handle belongs to another
 * MPI library. */
static inline ibp_handle ibp_current_communicator(void)
{
    return ibp_mpi.is_behind_layer ? 0 : IBP_HANDLE(ibp_current_call.communicator);
}

/* Return the number of the current `ibp_call`; IBP_OPERATION_UNWANTED while counting is off. */
unsigned ibp_current_call_number(void);

/* The personality routine of wrappers. When an exception unwinds the stack, the unwinder calls this routine for each
 * frame of a wrapper. */
IBP_INTERNAL int ibp_personality(int version, int actions, uint64_t language, void *exception, void *context);

/* Make ibp_personality the personality routine of the enclosing function. On processors other than x86-64 and AArch64,
 * ibprof does not notice exceptions. */
#if defined(__x86_64__) || defined(__aarch64__)
#define IBP_NAMES_PERSONALITY __asm__ volatile(".cfi_personality 0x1b, ibp_personality") /* 0x1b: relative, 4 bytes */
#else
#define IBP_NAMES_PERSONALITY ((void)0)
#endif

/* Set the current call to `current`, with the stack frame of the calling wrapper. */
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

/* Return whether this thread is in a wrapped call. If the wrapper's frame no longer exists, the program has left the
 * current call by a non-local exit. */
static inline __attribute__((always_inline)) bool ibp_is_within_call(void)
{
    return ibp_current_call.operation && ibp_stack_end < ibp_current_call.frame;
}

/* While several threads are in MPI: set the `ibp_call` of a send that the wrapper only passes on. Return false if the
 * site is not in the cache, or if a call is current, even if the program has left this call by a non-local exit. */
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
