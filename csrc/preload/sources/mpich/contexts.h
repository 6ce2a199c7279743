/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The communicator of each context on the network, as far as messages have shown it.
 */
#ifndef IBPROF_SOURCES_MPICH_CONTEXTS_H
#define IBPROF_SOURCES_MPICH_CONTEXTS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

/* Enter the communicator of a context, unless the context has a known communicator or the communicator has another
 * context of this kind; 0 is no communicator. */
void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator);

/* Return the communicator of a context; 0 when it is unknown. */
ibp_handle ibp_mpich_communicator_of(uint32_t context);

/* Return whether a context belongs to a group within an intercommunicator, which has another context between the
 * groups. */
bool ibp_mpich_is_local(uint32_t context);

/* Return whether a communicator's context of a kind is known. */
bool ibp_mpich_has_context(ibp_handle communicator, bool is_local);

/* Return the call that allocated a tag of a context whose communicator was freed afterwards; IBP_OPERATION_NONE without
 * one. */
unsigned ibp_mpich_call_of_freed(uint32_t context, uint32_t tag);

/* Guess the call that allocated a tag: of a freed communicator whose context was not known. IBP_OPERATION_NONE without
 * such a call. */
unsigned ibp_mpich_call_of_freed_guessed(uint32_t context, uint32_t tag);

/* Forget a communicator that is about to be freed, except its pending collectives. */
void ibp_mpich_forget_communicator(ibp_handle communicator);

#endif
