/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open and close the contexts of all calls, and set the region of the contexts.
 */
#ifndef IBPROF_COUNTING_CONTEXTS_H
#define IBPROF_COUNTING_CONTEXTS_H

#include "libmpi/handles.h"

#include <stdint.h>

/* Open the contexts: messages on MPI_COMM_WORLD belong to ibp_here and need no classification. `world`: the handle of
 * MPI_COMM_WORLD. If `world` is 0, close the contexts: each message is classified. */
void ibp_contexts_set(ibp_handle world);

/* Count in another region from now on. Pointers to counters are forgotten, because each region has separate
 * counters. */
void ibp_contexts_enter_region(uint32_t region);

#endif
