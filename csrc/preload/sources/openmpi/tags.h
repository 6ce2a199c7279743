/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The operation of Open MPI's internal messages. A call that sends after it has returned uses an internal tag, which is
 * known before its first message. See docs/decisions/0003.
 */
#ifndef IBPROF_SOURCES_OPENMPI_TAGS_H
#define IBPROF_SOURCES_OPENMPI_TAGS_H

#include "libmpi/communicators.h"
#include "platform/system.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Find the offset of a communicator's next tag, by two nonblocking barriers of this process alone. Return whether it
 * was found. */
bool ibp_openmpi_tags_probe(void);

/* Tags are allocated one by one from the first tag, which the probe finds, down to the lowest tag. */
#define IBP_OPENMPI_LOWEST_COUNTED_TAG (-(INT32_MAX / 2) + 1)
extern IBP_INTERNAL int ibp_openmpi_first_counted_tag;

static inline bool ibp_openmpi_tag_is_counted(int tag)
{
    return tag <= ibp_openmpi_first_counted_tag && tag >= IBP_OPENMPI_LOWEST_COUNTED_TAG;
}

/* Called before and after the current call, which allocates a tag of its communicator. */
void ibp_openmpi_before_tag(void);
void ibp_openmpi_after_tag(int error);

/* Return the number of the call that started a message with a counted tag. Any call may send the message. */
unsigned ibp_openmpi_tagged_call(struct ibp_communicator *communicator, int tag);

/* Return the operation under which messages started now are counted. */
static inline unsigned ibp_openmpi_starting_operation(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

#endif
