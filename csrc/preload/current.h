/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The MPI call that this thread is in: set by the trampolines of mpi.c, read where bytes are seen.
 */
#ifndef IBPROF_CURRENT_H
#define IBPROF_CURRENT_H

#include "context.h"
#include "left_calls.h"
#include "libmpi.h"
#include "operations.h"
#include "system.h"

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

struct ibp_current {
    uint16_t operation;      /* IBP_OPERATION_NONE outside of any */
    uint8_t kind;            /* enum ibp_call_kind */
    bool starts_request;     /* it is MPI_Start or MPI_Startall, which counts for itself */
    int tag;                 /* internal one that it is expected to take; 0 where none is */
    long communicator;       /* its argument, unread; 0 where it has none */
    uintptr_t frame;         /* of the wrapper, where its stack ends */
};

extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_current ibp_current;

/* The communicator of the call; 0 where it has none. */
static inline ibp_handle ibp_current_communicator(void)
{
    return IBP_HANDLE(ibp_current.communicator);
}

/* Sets all but the frame, which is that of the function that this is in. */
static inline __attribute__((always_inline)) void ibp_enter(struct ibp_current call)
{
    IBP_TELLS_UNWINDER;
    call.frame = ibp_stack_end;
    ibp_current = call;
    ibp_set_here(&ibp_within[call.operation]);
}

/* Whether this thread is in a wrapped call. One whose frame is gone was left in a way that left_calls.c does not notice. */
static inline __attribute__((always_inline)) bool ibp_is_within_call(void)
{
    return ibp_current.operation && ibp_stack_end < ibp_current.frame;
}

static inline void ibp_leave(void)
{
    ibp_current.operation = IBP_OPERATION_NONE;
    ibp_current.kind = 0;
    ibp_current.starts_request = false;
    ibp_set_here(ibp_between);
}

#endif
