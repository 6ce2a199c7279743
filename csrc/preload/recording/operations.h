/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Operations, which bytes are counted under, in the order of mpi.def; and the filter IBPROF.
 */
#ifndef IBPROF_RECORDING_OPERATIONS_H
#define IBPROF_RECORDING_OPERATIONS_H

#include "platform/system.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_operation {
    /* Outside of any wrapped call. */
    IBP_OPERATION_NONE,
    /* MPI sent it for an unknown call. */
    IBP_OPERATION_UNATTRIBUTED,
#define IBP_CALL(name, arguments, kind, communicator) IBP_OPERATION_##name,
#define IBP_POINT_TO_POINT(name) IBP_OPERATION_##name,
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT
    IBP_OPERATIONS,
    /* Started while counting was off: never counted, whichever call sends its messages. */
    IBP_OPERATION_UNWANTED = IBP_OPERATIONS
};

/* Return an operation's name: the call's in upper case, without MPI_. */
const char *ibp_operation_name(unsigned operation);

/* Return the name of an operation's call, without MPI_. */
const char *ibp_operation_call(unsigned operation);

/* Whether bytes of an operation are counted. */
extern IBP_INTERNAL bool ibp_operation_wanted[IBP_OPERATIONS + 1];

/* Set if IBPROF excludes any operation. */
extern IBP_INTERNAL bool ibp_operations_filtered;

/* Parse IBPROF: names without MPI_, in any case, separated by commas or blanks. An empty list means all operations. A
 * list that contains only unknown names also means all, because a misspelt filter must not cost the run. Return the
 * number of unknown names, and list them in `unknown`. */
unsigned ibp_operations_select(const char *list, char *unknown, unsigned bytes);

/* List the names of all operations, separated by commas. */
void ibp_operations_list(char *into, unsigned bytes);

#endif
