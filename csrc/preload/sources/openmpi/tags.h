/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which operation a message of Open MPI's own belongs to: what sends on after its call has returned does so under an internal
 * tag, which is known before its first message. See docs/decisions/0003.
 */
#ifndef IBPROF_SOURCES_OPENMPI_TAGS_H
#define IBPROF_SOURCES_OPENMPI_TAGS_H

#include "libmpi/communicators.h"
#include "platform/system.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds where a communicator keeps its next tag, with two nonblocking barriers of this process alone. Returns whether it was
 * found. */
bool ibp_openmpi_tags_probe(void);

/* Tags from the first, which the probe finds, down to the lowest are taken one by one. */
#define IBP_OPENMPI_LOWEST_COUNTED_TAG (-(INT32_MAX / 2) + 1)
extern IBP_INTERNAL int ibp_openmpi_first_counted_tag;

static inline bool ibp_openmpi_tag_is_counted(int tag)
{
    return tag <= ibp_openmpi_first_counted_tag && tag >= IBP_OPENMPI_LOWEST_COUNTED_TAG;
}

/* Before and after the current call, which takes a tag of its communicator. */
void ibp_openmpi_before_tag(void);
void ibp_openmpi_after_tag(bool succeeded);

/* The operation of a message under a counted tag: of the call that started it, in whichever call it is sent. */
unsigned ibp_openmpi_tagged_operation(struct ibp_communicator *communicator, int tag);

/* What the call that this thread is in starts now. */
static inline unsigned ibp_openmpi_starting_operation(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

#endif
