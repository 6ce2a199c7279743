/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A map from contexts to communicators. Each MPICH message contains a context: a number that identifies the
 * communicator. The contexts of communicators are learnt from messages.
 */
#ifndef IBPROF_SOURCES_MPICH_CONTEXTS_H
#define IBPROF_SOURCES_MPICH_CONTEXTS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

/* Store which communicator a context belongs to. Do nothing if the context already has a communicator, if the
 * communicator already has a context of this kind, or if `communicator` is 0. */
void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator);

/* Return the communicator of a context; 0 if the communicator is unknown. */
ibp_handle ibp_mpich_communicator_of(uint32_t context);

/* Return whether a context is for messages within the local group of an intercommunicator. */
bool ibp_mpich_is_local(uint32_t context);

/* Return whether a communicator's context is known. `is_local`: true for the context of messages within the local group
 * of an intercommunicator, false for the context of all other messages. */
bool ibp_mpich_has_context(ibp_handle communicator, bool is_local);

/* Return the number of the `ibp_call` of a message with this context and tag on a freed communicator;
 * IBP_OPERATION_NONE if unknown. */
unsigned ibp_mpich_call_of_freed(uint32_t context, uint32_t tag);

/* Like ibp_mpich_call_of_freed, for a context that belongs to no known communicator: search freed communicators of
 * unknown context. */
unsigned ibp_mpich_call_of_freed_guessed(uint32_t context, uint32_t tag);

/* Forget a communicator that is about to be freed, but remember its pending collectives. */
void ibp_mpich_forget_communicator(ibp_handle communicator);

#endif
