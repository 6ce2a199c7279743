/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Count messages of the current call, and messages of calls that have returned.
 */
#ifndef IBPROF_COUNTING_COUNT_H
#define IBPROF_COUNTING_COUNT_H

#include "counting/calls.h"
#include "counting/context.h"
#include "counting/counters.h"
#include "counting/origins.h"
#include "counting/periodic.h"
#include "libmpi/lock.h"
#include "platform/system.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Set when a window or a partitioned request was created. ibprof counts their bytes from the arguments of calls,
 * because MPI may move the data later. */
extern IBP_INTERNAL bool ibp_counts_arguments;

/* Return the number of the origin of an operation's sent bytes, created if needed. The origin has the site of the
 * present call if the present call is of this operation. */
uint32_t ibp_origin_sent_slowly(unsigned operation);

/* Return the context of the present call if it is of this operation; otherwise the operation's context. */
struct ibp_context *ibp_context_sending(unsigned operation);

static inline uint32_t ibp_origin_sent(unsigned operation)
{
    const struct ibp_recent *recent = &ibp_get_here()->send;

    if (IBP_UNLIKELY(ibp_threads_multiple) || IBP_UNLIKELY(recent->operation != operation) ||
        IBP_UNLIKELY(!recent->origin))
        return ibp_origin_sent_slowly(operation);
    return recent->origin;
}

/* Return the number of the origin of bytes received by an operation. */
static inline uint32_t ibp_origin_received(unsigned operation)
{
    const uint32_t origin = ibp_origins_without_site[operation];

    return IBP_LIKELY(origin) ? origin : ibp_origin_at_site(operation, IBP_SITE_UNKNOWN);
}

/* Return the key of a counter in the present region. */
static inline uint64_t ibp_key_here(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer)
{
    const bool is_received = direction == IBP_DIRECTION_RECEIVED;

    return IBP_SLOT_KEY(is_received ? ibp_origin_received(operation) : ibp_origin_sent(operation), kind, direction,
                        peer);
}

/* Count one message, with the lock held. The operation must be wanted. */
static inline void ibp_count_locked(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                                    uint64_t bytes)
{
    const struct ibp_slot *slot = ibp_slot_made(ibp_key_here(operation, kind, direction, peer));

    ibp_add(slot->amount, bytes);
    ibp_add_size(slot->bins, bytes);
}

/* Count one message of a call, even if the call has returned. The call's operation must be wanted. */
void ibp_count_of(struct ibp_call *call, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                  uint64_t bytes);

/* Count one message of the present call if it is of this operation. The operation must be wanted. */
static inline void ibp_count(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                             uint64_t bytes)
{
    if (IBP_UNLIKELY(ibp_periodic_in_messages)) ibp_periodic_check_now();
    ibp_lock();
    ibp_count_locked(operation, kind, direction, peer, bytes);
    ibp_unlock();
}

#endif
