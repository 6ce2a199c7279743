/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Counted tags: tags of calls whose messages may be sent after the call has returned. For each of these calls, MPICH
 * allocates the next tag of the communicator. So the tag of a message identifies the call.
 */
#ifndef IBPROF_SOURCES_MPICH_COUNTED_TAGS_H
#define IBPROF_SOURCES_MPICH_COUNTED_TAGS_H

#include "libmpi/handles.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Return `operation`, or IBP_OPERATION_UNWANTED while counting is off. */
static inline unsigned ibp_mpich_starting(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

/* Return the number of the `ibp_call` that sent a collective's message with a counted tag. The lock must be held. */
unsigned ibp_mpich_counted_call(uint32_t context, uint32_t tag);

/* For a collective's message without a counted tag: return the number of the `ibp_call` of MPI_Comm_idup that sent the
 * message; IBP_OPERATION_NONE if the present call sent the message. MPI_Comm_idup ends with blocking collectives, which
 * MPICH may execute in any later call. The lock must be held. */
unsigned ibp_mpich_committing_call(uint32_t context);

/* Return whether a message has shown that ibprof counted the tags of a communicator wrongly. */
bool ibp_mpich_counted_wrongly(void);

/* Return whether the program has made a call for which MPICH allocates a tag. MPICH may send the messages of such a
 * call in any later call. */
bool ibp_mpich_has_taken_tags(void);

/* See sources/source.h. */
void ibp_mpich_before_tag(void);
void ibp_mpich_after_tag(int error);
bool ibp_mpich_starts_take_tags(void);
void ibp_mpich_made_object(ibp_handle communicator);

#endif
