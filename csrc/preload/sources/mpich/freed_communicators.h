/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Freed communicators: when the program freed the communicator, nonblocking collectives on it were pending. The pending
 * collectives still send messages. MPICH may reuse the communicator's handle at once, but the context only after the
 * collectives have ended. All functions require the lock.
 */
#ifndef IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H
#define IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H

#include "libmpi/communicators.h"

#include <stdint.h>

/* Remember the tags of a communicator that is about to be freed. `key`: the key of the communicator's context; 0 if the
 * context is unknown. */
void ibp_mpich_keep_freed(uint64_t key, struct ibp_communicator *communicator);

/* Return the number of the `ibp_call` with this tag on a freed communicator with this key; IBP_OPERATION_NONE if
 * unknown. */
unsigned ibp_mpich_freed_call(uint64_t key, uint32_t tag);

/* Like ibp_mpich_freed_call, for a key that belongs to no known communicator: search the freed communicators that were
 * kept with key 0. If exactly one of these communicators has the tag, store the key for this communicator. Otherwise
 * return IBP_OPERATION_NONE. */
unsigned ibp_mpich_freed_call_guessed(uint64_t key, uint32_t tag);

/* Forget the freed communicator of a context, because a new communicator has this context. */
void ibp_mpich_drop_freed(uint64_t key);

#endif
