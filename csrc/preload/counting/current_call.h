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
    /* IBP_OPERATION_NONE outside of MPI calls. */
    uint16_t operation;
    uint8_t kind;            /* enum ibp_call_kind */
    /* The call is MPI_Start or MPI_Startall, whose messages are counted by their requests. */
    bool starts_request;
    /* The internal tag that the call is expected to take; 0 where it takes none. */
    int tag;
    /* The call's argument, not interpreted; 0 where it has none. */
    long communicator;
    /* The end of the wrapper's stack frame. */
    uintptr_t frame;
};

extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_current_call ibp_current_call;

/* Return the communicator of the call; 0 where it has none. */
static inline ibp_handle ibp_current_communicator(void)
{
    return IBP_HANDLE(ibp_current_call.communicator);
}

/* Whether the calls that send have to set this, because the source cannot distinguish them. */
extern IBP_INTERNAL bool ibp_labels_sends;

/* The personality routine of wrappers: an unwinder calls it for each wrapper's frame that it removes. */
IBP_INTERNAL int ibp_personality(int version, int actions, uint64_t language, void *exception, void *context);

/* Sets the personality routine of the function that contains it. On other machines exceptions are not noticed. */
#if defined(__x86_64__) || defined(__aarch64__)
#define IBP_NAMES_PERSONALITY __asm__ volatile(".cfi_personality 0x1b, ibp_personality") /* 0x1b: relative, 4 bytes */
#else
#define IBP_NAMES_PERSONALITY ((void)0)
#endif

/* Enter a call: set all members but the frame, which is that of the calling function. */
static inline __attribute__((always_inline)) void ibp_enter(struct ibp_current_call call)
{
    IBP_NAMES_PERSONALITY;
    call.frame = ibp_stack_end;
    ibp_current_call = call;
    ibp_set_here(&ibp_within[call.operation]);
}

/* Return whether this thread is in a wrapped call. A frame that no longer exists means that the call was left
 * unnoticed. */
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
