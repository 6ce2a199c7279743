/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Operations of messages that leave after their call has returned. Each such call allocates the next tag of its
 * communicator, so the tag identifies the call.
 */
#ifndef IBPROF_SOURCES_MPICH_COUNTED_TAGS_H
#define IBPROF_SOURCES_MPICH_COUNTED_TAGS_H

#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Return the operation of a message that starts now. */
static inline unsigned ibp_mpich_starting(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

/* Return the number of the call that a collective's message belongs to. The lock must be held. */
unsigned ibp_mpich_counted_call(uint32_t context, uint32_t tag);

/* Return the number of the call that a collective's message without such a tag belongs to; IBP_OPERATION_NONE for the
 * present call. Blocking collectives complete the creation of a duplicate, in any call that makes progress. The lock
 * must be held. */
unsigned ibp_mpich_committing_call(uint32_t context);

/* Return whether a message showed that tags were counted wrongly before. */
bool ibp_mpich_counted_wrongly(void);

/* Return whether a call allocated such a tag. Its messages may leave in any later call. */
bool ibp_mpich_has_taken_tags(void);

/* See sources/source.h. */
void ibp_mpich_before_tag(void);
void ibp_mpich_after_tag(int error);
bool ibp_mpich_starts_take_tags(void);
void ibp_mpich_made_object(ibp_handle communicator);

#endif
