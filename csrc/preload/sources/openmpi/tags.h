/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Internal tags of Open MPI, which show the operation of internal messages. A call that sends after it has returned has
 * an internal tag, which ibprof knows before the first message. See docs/decisions/0003.
 */
#ifndef IBPROF_SOURCES_OPENMPI_TAGS_H
#define IBPROF_SOURCES_OPENMPI_TAGS_H

#include "libmpi/communicators.h"
#include "platform/system.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Find the offset of the next tag in communicators, by two nonblocking barriers on MPI_COMM_SELF. Return whether it was
 * found. */
bool ibp_openmpi_tags_probe(void);

/* Counted tags: Open MPI allocates them one after the other, from the first tag, which the probe finds, down to the
 * lowest tag. */
#define IBP_OPENMPI_LOWEST_COUNTED_TAG (-(INT32_MAX / 2) + 1)
extern IBP_INTERNAL int ibp_openmpi_first_counted_tag;

static inline bool ibp_openmpi_tag_is_counted(int tag)
{
    return tag <= ibp_openmpi_first_counted_tag && tag >= IBP_OPENMPI_LOWEST_COUNTED_TAG;
}

/* Called before and after a call for which Open MPI allocates a tag (sources/source.h). */
void ibp_openmpi_before_tag(void);
void ibp_openmpi_after_tag(int error);

/* Return the number of the call to which a message with a counted tag belongs. Any later call may send the message. */
unsigned ibp_openmpi_tagged_call(struct ibp_communicator *communicator, int tag);

/* Return the operation for which messages that start now are counted. */
static inline unsigned ibp_openmpi_starting_operation(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

#endif
