/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Internal tags of Open MPI. The tag of an internal message shows the message's operation. If the messages of a call
 * may be sent after the call has returned, Open MPI allocates a tag of the communicator for the call. The tag is known
 * before the first message. See docs/decisions/0003.
 */
#ifndef IBPROF_SOURCES_OPENMPI_TAGS_H
#define IBPROF_SOURCES_OPENMPI_TAGS_H

#include "libmpi/communicators.h"
#include "platform/system.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Start two nonblocking barriers on MPI_COMM_SELF, to find where the object of a communicator stores the next tag.
 * Return whether the offset was found. */
bool ibp_openmpi_tags_probe(void);

/* Open MPI allocates counted tags in decreasing order, from the first tag to the lowest tag. The probe finds the first
 * tag. */
#define IBP_OPENMPI_LOWEST_COUNTED_TAG (-(INT32_MAX / 2) + 1)
extern IBP_INTERNAL int ibp_openmpi_first_counted_tag;

static inline bool ibp_openmpi_tag_is_counted(int tag)
{
    return tag <= ibp_openmpi_first_counted_tag && tag >= IBP_OPENMPI_LOWEST_COUNTED_TAG;
}

void ibp_openmpi_before_tag(void);
void ibp_openmpi_after_tag(int error);

/* Return the number of the `ibp_call` that sent a message with a counted tag. Open MPI may send the message in any
 * later call. */
unsigned ibp_openmpi_tagged_call(struct ibp_communicator *communicator, int tag);

/* Return `operation`, or IBP_OPERATION_UNWANTED while counting is off. */
static inline unsigned ibp_openmpi_starting_operation(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

#endif
