/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which communicator a context on the network belongs to, as far as messages have shown.
 */
#ifndef IBPROF_SOURCES_MPICH_CONTEXTS_H
#define IBPROF_SOURCES_MPICH_CONTEXTS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

/* Enter a context's communicator, unless one is known; 0 is none. */
void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator);

/* Return the communicator of a context; 0 when it is unknown. */
ibp_handle ibp_mpich_communicator_of(uint32_t context);

/* Return whether the context of a communicator is known. */
bool ibp_mpich_has_context(ibp_handle communicator);

/* Forget a communicator that is freed. */
void ibp_mpich_forget_communicator(ibp_handle communicator);

#endif
