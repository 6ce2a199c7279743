/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The properties of each wrapped call, derived from mpi.def. No other file classifies calls.
 */
#ifndef IBPROF_COUNTING_WRAPPED_CALLS_H
#define IBPROF_COUNTING_WRAPPED_CALLS_H

#include "platform/system.h"
#include "recording/operations.h"

#include <stdint.h>

#define IBP_NO_COMMUNICATOR (-1)

/* When and how a call sends; see mpi.def. */
enum ibp_call_kind {
    IBP_CALL_COLLECTIVE,
    IBP_CALL_BLOCKING,
    IBP_CALL_MAKING,
    IBP_CALL_NONBLOCKING,
    IBP_CALL_DUPLICATING,
    IBP_CALL_PERSISTENT,
    IBP_CALL_WINDOW,
    IBP_CALL_FREEING,
    IBP_CALL_SENDING
};

/* Bits for the properties of a call that require more of its wrapper than to enter and leave the call. */
enum ibp_call_needs {
    /* Its messages may be sent after it has returned, with an internal tag. */
    IBP_TAKES_TAG = 1,
    /* It creates an object from its communicator. */
    IBP_MAKES = 2,
    /* It frees a communicator or window. */
    IBP_FREES = 4,
    /* Its first arguments are those of MPI_Send. */
    IBP_IS_SENDRECV = 8,
    /* It sends. If the source distinguishes sends, the wrapper only passes it on. */
    IBP_SENDS = 16,
    /* It creates a request for sending. */
    IBP_KEEPS_REQUEST = 32,
    /* It sends nothing; the wrapper only passes it on and times it. */
    IBP_IS_ONLY_TIMED = 64,
    /* It waits in the progress loop of the MPI library, or returns at once. */
    IBP_WAITS_IN_PROGRESS = 128,
    /* Its wrapper calls through a table of functions (calls/long_path.h). */
    IBP_HAS_CHOICES = 256,
    /* A call with any of these bits never takes the short path. */
    IBP_NEEDS_LONG_PATH = IBP_TAKES_TAG | IBP_MAKES | IBP_FREES
};

/* The bits of an operation and a kind: a constant expression if both are constant. */
#define IBP_NEEDS_OF(operation, kind)                                                                                  \
    ((kind) == IBP_CALL_FREEING ? IBP_FREES                                                                            \
     : (kind) == IBP_CALL_NONBLOCKING || (kind) == IBP_CALL_DUPLICATING || (kind) == IBP_CALL_PERSISTENT               \
         ? IBP_TAKES_TAG                                                                                               \
     : (kind) == IBP_CALL_MAKING || (kind) == IBP_CALL_WINDOW ? IBP_MAKES                                              \
     : (operation) == IBP_OPERATION_Sendrecv || (operation) == IBP_OPERATION_Sendrecv_replace ||                       \
             (operation) == IBP_OPERATION_Isendrecv || (operation) == IBP_OPERATION_Isendrecv_replace                  \
         ? IBP_IS_SENDRECV                                                                                             \
         : 0)

struct ibp_wrapped_call {
    /* Number of arguments; 0 if the operation has no trampoline. */
    uint8_t arguments;
    uint8_t kind; /* enum ibp_call_kind */
    /* Position of the communicator argument, or IBP_NO_COMMUNICATOR. */
    int8_t communicator;
    uint16_t needs; /* of enum ibp_call_needs */
};

/* Properties of calls by operation. */
extern IBP_INTERNAL const struct ibp_wrapped_call ibp_wrapped_calls[IBP_OPERATIONS + 1];

#endif
