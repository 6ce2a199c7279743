/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A map from contexts to communicators. A context is the number by which MPICH's messages identify a communicator.
 * ibprof learns from messages which context a communicator has.
 */
#ifndef IBPROF_SOURCES_MPICH_CONTEXTS_H
#define IBPROF_SOURCES_MPICH_CONTEXTS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

/* Enter the communicator of a context. Do nothing if the communicator of the context is known, if the communicator has
 * another context of the same kind, or if `communicator` is 0. */
void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator);

/* Return the communicator of a context; 0 if unknown. */
ibp_handle ibp_mpich_communicator_of(uint32_t context);

/* Return whether a context is for messages within the local group of an intercommunicator. Messages between the groups
 * have another context. */
bool ibp_mpich_is_local(uint32_t context);

/* Return whether a context of a communicator is known. `is_local`: the context within the local group. */
bool ibp_mpich_has_context(ibp_handle communicator, bool is_local);

/* Return the call to which a tag belongs, if the program freed the communicator of the context after the call;
 * otherwise IBP_OPERATION_NONE. */
unsigned ibp_mpich_call_of_freed(uint32_t context, uint32_t tag);

/* Guess the call to which a tag belongs, among calls on freed communicators whose context is unknown. Return
 * IBP_OPERATION_NONE if there is none. */
unsigned ibp_mpich_call_of_freed_guessed(uint32_t context, uint32_t tag);

/* Forget a communicator that is about to be freed, but remember its pending collectives. */
void ibp_mpich_forget_communicator(ibp_handle communicator);

#endif
