/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Communicators that the program freed while nonblocking collectives on them were pending. These collectives continue
 * to send. MPICH keeps the context until they end, but the handle may be reused at once. Requires the lock.
 */
#ifndef IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H
#define IBPROF_SOURCES_MPICH_FREED_COMMUNICATORS_H

#include "libmpi/communicators.h"

#include <stdint.h>

/* Keep the calls that allocated tags of a communicator that is about to be freed. `key` is the key of its context; 0
 * where the context is unknown. */
void ibp_mpich_keep_freed(uint64_t key, struct ibp_communicator *communicator);

/* Return the call that allocated a tag on a freed communicator of this context; IBP_OPERATION_NONE without one. */
unsigned ibp_mpich_freed_call(uint64_t key, uint32_t tag);

/* Return the call that allocated a tag on a freed communicator whose context is unknown, for a context that belongs to
 * no other communicator. */
unsigned ibp_mpich_freed_call_guessed(uint64_t key, uint32_t tag);

/* Drop the calls of a context that another communicator has now. */
void ibp_mpich_drop_freed(uint64_t key);

#endif
