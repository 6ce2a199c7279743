/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The MPI call that this thread is in: set by the wrappers of MPI calls, read where bytes are seen.
 */
#ifndef IBPROF_COUNTING_CURRENT_CALL_H
#define IBPROF_COUNTING_CURRENT_CALL_H

#include "counting/context.h"
#include "libmpi/handles.h"
#include "platform/stack.h"
#include "platform/system.h"
#include "recording/operations.h"

#include <stdbool.h>
#include <stdint.h>

/* How a call sends; see mpi.def. */
enum ibp_call_kind {
    IBP_CALL_COLLECTIVE,
    IBP_CALL_BLOCKING,
    IBP_CALL_NONBLOCKING,
    IBP_CALL_DUPLICATING,
    IBP_CALL_PERSISTENT,
    IBP_CALL_WINDOW,
    IBP_CALL_FREEING,
    IBP_CALL_SENDING
};

struct ibp_current_call {
    /* IBP_OPERATION_NONE outside of any. */
    uint16_t operation;
    uint8_t kind;            /* enum ibp_call_kind */
    /* It is MPI_Start or MPI_Startall, which counts for itself. */
    bool starts_request;
    /* Internal one that it is expected to take; 0 where none is. */
    int tag;
    /* Its argument, unread; 0 where it has none. */
    long communicator;
    /* Of the wrapper, where its stack ends. */
    uintptr_t frame;
};

extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_current_call ibp_current_call;

/* The communicator of the call; 0 where it has none. */
static inline ibp_handle ibp_current_communicator(void)
{
    return IBP_HANDLE(ibp_current_call.communicator);
}

/* Whether the calls that send have to say which they are: the source cannot tell. */
extern IBP_INTERNAL bool ibp_labels_sends;

/* What an unwinder calls for the frame of a wrapper that it takes off the stack. */
IBP_INTERNAL int ibp_personality(int version, int actions, uint64_t language, void *exception, void *context);

/* Makes an unwinder call it for the frame of the function that this is in. Elsewhere exceptions are not noticed. */
#if defined(__x86_64__) || defined(__aarch64__)
#define IBP_NAMES_PERSONALITY __asm__ volatile(".cfi_personality 0x1b, ibp_personality") /* 0x1b: relative, 4 bytes */
#else
#define IBP_NAMES_PERSONALITY ((void)0)
#endif

/* Sets all but the frame, which is that of the function that this is in. */
static inline __attribute__((always_inline)) void ibp_enter(struct ibp_current_call call)
{
    IBP_NAMES_PERSONALITY;
    call.frame = ibp_stack_end;
    ibp_current_call = call;
    ibp_set_here(&ibp_within[call.operation]);
}

/* Whether this thread is in a wrapped call. One whose frame is gone was left in a way that nothing noticed. */
static inline __attribute__((always_inline)) bool ibp_is_within_call(void)
{
    return ibp_current_call.operation && ibp_stack_end < ibp_current_call.frame;
}

static inline void ibp_leave(void)
{
    ibp_current_call.operation = IBP_OPERATION_NONE;
    ibp_current_call.kind = 0;
    ibp_current_call.starts_request = false;
    ibp_set_here(ibp_between);
}

#endif
