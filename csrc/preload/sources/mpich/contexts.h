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

/* Enter a context's communicator, unless one is known, or it has another such context; 0 is none. */
void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator);

/* Return the communicator of a context; 0 when it is unknown. */
ibp_handle ibp_mpich_communicator_of(uint32_t context);

/* Return whether a context is that of a group within an intercommunicator, which has another one besides. */
bool ibp_mpich_is_local(uint32_t context);

/* Return whether the context of a communicator is known, and its kind. */
bool ibp_mpich_has_context(ibp_handle communicator, bool is_local);

/* Return the call that took a tag of a context whose communicator was freed since; IBP_OPERATION_NONE where there is
 * none. */
unsigned ibp_mpich_call_of_freed(uint32_t context, uint32_t tag);

/* Forget a freed communicator whose context was not known. */
unsigned ibp_mpich_call_of_freed_guessed(uint32_t context, uint32_t tag);

/* Forget a communicator that is about to be freed, but for its pending collectives. */
void ibp_mpich_forget_communicator(ibp_handle communicator);

#endif
