/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Operations, in the order of mpi.def: the MPI calls for which bytes are counted. The variable IBPROF selects them.
 */
#ifndef IBPROF_RECORDING_OPERATIONS_H
#define IBPROF_RECORDING_OPERATIONS_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_operation {
    /* Not an operation: messages that MPI sends outside of wrapped calls. */
    IBP_OPERATION_NONE,
    /* Not an operation: messages that MPI sends for an unknown call. */
    IBP_OPERATION_UNATTRIBUTED,
#define IBP_CALL(name, arguments, kind, communicator) IBP_OPERATION_##name,
#define IBP_POINT_TO_POINT(name) IBP_OPERATION_##name,
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT
    IBP_OPERATIONS,
    /* Not an operation: a call that the program started while counting was off. Messages of this call are never
     * counted, whichever later call sends them. */
    IBP_OPERATION_UNWANTED = IBP_OPERATIONS
};

/* Return the name of an operation: the name of the MPI call in upper case, without MPI_. */
const char *ibp_operation_name(unsigned operation);

/* Return the name of an operation's MPI call, without MPI_. */
const char *ibp_operation_call(unsigned operation);

/* [operation], true if bytes of the operation are counted. */
extern IBP_INTERNAL bool ibp_operation_wanted[IBP_OPERATIONS + 1];

/* True if IBPROF excludes at least one operation. */
extern IBP_INTERNAL bool ibp_operations_filtered;

/* Parse the value of IBPROF: names of operations in upper or lower case, separated by commas, blanks, semicolons or
 * colons. An empty list selects all operations. A list of only unknown names also selects all operations, so that a
 * misspelt name does not cause an empty recording. Return the number of unknown names, and write them to `unknown`. */
unsigned ibp_operations_select(const char *list, char *unknown, unsigned bytes);

/* List the names of all operations, separated by commas. */
void ibp_operations_list(char *into, unsigned bytes);

#endif
