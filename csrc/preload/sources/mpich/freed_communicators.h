/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators that the program freed while nonblocking collectives on them were pending. These collectives still send
 * messages. MPICH does not reuse the context before they end, but may reuse the handle at once. All functions require
 * the lock.
 */
#ifndef IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H
#define IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H

#include "libmpi/communicators.h"

#include <stdint.h>

/* Remember the calls for which tags were allocated on a communicator that is about to be freed. `key`: the key of its
 * context; 0 if the context is unknown. */
void ibp_mpich_keep_freed(uint64_t key, struct ibp_communicator *communicator);

/* Return the call to which a tag on a freed communicator with this context belongs; IBP_OPERATION_NONE if there is
 * none. */
unsigned ibp_mpich_freed_call(uint64_t key, uint32_t tag);

/* As ibp_mpich_freed_call, but guess the call among freed communicators whose context is unknown. The context of `key`
 * must belong to no other communicator. */
unsigned ibp_mpich_freed_call_guessed(uint64_t key, uint32_t tag);

/* Forget the freed communicator of a context, because a new communicator has this context. */
void ibp_mpich_drop_freed(uint64_t key);

#endif
