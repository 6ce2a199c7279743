/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The contexts of all calls: open, closed, or moved to another region.
 */
#ifndef IBPROF_COUNTING_CONTEXTS_H
#define IBPROF_COUNTING_CONTEXTS_H

#include "libmpi/handles.h"

#include <stdint.h>

/* Open the contexts: from now on, ibp_here is the context of messages on MPI_COMM_WORLD, whose handle is `world`. With
 * 0, close the contexts: from now on, each message is classified. */
void ibp_contexts_set(ibp_handle world);

/* Count in another region from now on. Remembered counters are forgotten, because each region has separate counters. */
void ibp_contexts_enter_region(uint32_t region);

#endif
