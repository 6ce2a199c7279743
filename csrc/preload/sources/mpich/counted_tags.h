/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Operations of messages that may be sent after their call has returned. For each such call, MPICH allocates the next
 * tag of the communicator, so the tag identifies the call.
 */
#ifndef IBPROF_SOURCES_MPICH_COUNTED_TAGS_H
#define IBPROF_SOURCES_MPICH_COUNTED_TAGS_H

#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Return the operation for which a message that starts now is counted. */
static inline unsigned ibp_mpich_starting(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

/* Return the number of the call to which a collective's message with a counted tag belongs. The lock must be held. */
unsigned ibp_mpich_counted_call(uint32_t context, uint32_t tag);

/* Return the number of the call to which a collective's message without a counted tag belongs; IBP_OPERATION_NONE: the
 * present call. MPI_Comm_idup ends with blocking collectives. MPICH may execute these in any later call. The lock must
 * be held. */
unsigned ibp_mpich_committing_call(uint32_t context);

/* Return whether a message has shown that tags were counted wrongly before. */
bool ibp_mpich_counted_wrongly(void);

/* Return whether MPICH allocated a tag for any call so far. Messages of such a call may be sent in any later call. */
bool ibp_mpich_has_taken_tags(void);

/* See sources/source.h. */
void ibp_mpich_before_tag(void);
void ibp_mpich_after_tag(int error);
bool ibp_mpich_starts_take_tags(void);
void ibp_mpich_made_object(ibp_handle communicator);

#endif
