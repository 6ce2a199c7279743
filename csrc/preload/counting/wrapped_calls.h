/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The properties of each wrapped call, derived from mpi.def.
 */
#ifndef IBPROF_COUNTING_WRAPPED_CALLS_H
#define IBPROF_COUNTING_WRAPPED_CALLS_H

#include "platform/system.h"
#include "recording/operations.h"

#include <stdint.h>

#define IBP_NO_COMMUNICATOR (-1)

/* Classes of calls. mpi.def explains them. */
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

/* Bits: properties of a call that determine the work of the call's wrapper. */
enum ibp_call_needs {
    /* MPI may send the call's messages after the call has returned, with an internal tag. */
    IBP_TAKES_TAG = 1,
    /* The call creates a communicator, window or file from its communicator argument. */
    IBP_MAKES = 2,
    /* The call frees a communicator or window. */
    IBP_FREES = 4,
    /* The first arguments of the call are the arguments of MPI_Send. */
    IBP_IS_SENDRECV = 8,
    /* The call sends. If the source can see which call sent a message, the wrapper only passes the call on. */
    IBP_SENDS = 16,
    /* The call creates a request for sending. */
    IBP_KEEPS_REQUEST = 32,
    /* The call sends nothing: the wrapper only times the call. */
    IBP_IS_ONLY_TIMED = 64,
    /* The call waits in the progress loop of the MPI library, or returns at once. */
    IBP_WAITS_IN_PROGRESS = 128,
    /* The call's wrapper calls a chosen function (struct ibp_choices in calls/long_path.h). */
    IBP_HAS_CHOICES = 256,
    /* A call with any of these bits never takes the short path. */
    IBP_NEEDS_LONG_PATH = IBP_TAKES_TAG | IBP_MAKES | IBP_FREES
};

/* Properties (enum ibp_call_needs) of a call, from its operation and class (enum ibp_call_kind). The macro is a
 * constant expression if both arguments are constant. */
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

extern IBP_INTERNAL const struct ibp_wrapped_call ibp_wrapped_calls[IBP_OPERATIONS + 1];

#endif
