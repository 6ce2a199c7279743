/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Operations: what bytes are counted under, numbered in the order of mpi.def; and IBPROF, which says which are wanted.
 */
#ifndef IBPROF_RECORDING_OPERATIONS_H
#define IBPROF_RECORDING_OPERATIONS_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_operation {
    /* Outside of any wrapped call. */
    IBP_OPERATION_NONE,
    /* Sent by MPI on behalf of a call that could not be told. */
    IBP_OPERATION_UNATTRIBUTED,
#define IBP_CALL(name, arguments, kind, communicator) IBP_OPERATION_##name,
#define IBP_POINT_TO_POINT(name) IBP_OPERATION_##name,
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT
    IBP_OPERATIONS,
    /* Was started while counting was off: never counted, whoever sends its messages. */
    IBP_OPERATION_UNWANTED = IBP_OPERATIONS
};

/* The operation's name: the call's in upper case, without MPI_. */
const char *ibp_operation_name(unsigned operation);

/* Whether bytes of an operation are counted. */
extern IBP_INTERNAL bool ibp_operation_wanted[IBP_OPERATIONS + 1];

/* Whether IBPROF leaves any out. */
extern IBP_INTERNAL bool ibp_operations_filtered;

/* Reads IBPROF: names without MPI_, of any case, with commas or blanks between; empty means all. So does a list of none but
 * unknown names: a misspelt filter must not cost the run.
 * Returns the number of unknown names, and lists them in `unknown`. */
unsigned ibp_operations_select(const char *list, char *unknown, unsigned bytes);

/* Names of all operations, with commas between. */
void ibp_operations_list(char *into, unsigned bytes);

#endif
