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

/* True after the program created a window or a partitioned request. MPI may send the data of windows and partitioned
 * requests at any later time, so ibprof counts these data from the arguments of calls. */
extern IBP_INTERNAL bool ibp_counts_arguments;

/* Return the origin of the bytes that an operation sends, created if needed. If the current call has this operation,
 * the origin includes the call's site. */
uint32_t ibp_origin_sent_slowly(unsigned operation);

/* Return the context of the current call if the call has this operation; otherwise the context of
 * ibp_calls[operation]. */
struct ibp_context *ibp_context_sending(unsigned operation);

static inline uint32_t ibp_origin_sent(unsigned operation)
{
    const struct ibp_recent *recent = &ibp_get_here()->send;

    if (IBP_UNLIKELY(ibp_threads_multiple) || IBP_UNLIKELY(recent->operation != operation) ||
        IBP_UNLIKELY(!recent->origin))
        return ibp_origin_sent_slowly(operation);
    return recent->origin;
}

/* Return the origin of the bytes that an operation receives. This origin has no site. */
static inline uint32_t ibp_origin_received(unsigned operation)
{
    const uint32_t origin = ibp_origins_without_site[operation];

    return IBP_LIKELY(origin) ? origin : ibp_origin_at_site(operation, IBP_SITE_UNKNOWN);
}

static inline uint64_t ibp_key_here(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer)
{
    const bool is_received = direction == IBP_DIRECTION_RECEIVED;

    return IBP_SLOT_KEY(is_received ? ibp_origin_received(operation) : ibp_origin_sent(operation), kind, direction,
                        peer);
}

/* As ibp_count, but the lock must be held. */
static inline void ibp_count_locked(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                                    uint64_t bytes)
{
    const struct ibp_slot *slot = ibp_slot_made(ibp_key_here(operation, kind, direction, peer));

    ibp_add(slot->amount, bytes);
    ibp_add_size(slot->bins, bytes);
}

/* Count one message of a call. The call may have returned. The call's operation must be in ibp_operation_wanted. */
void ibp_count_of(struct ibp_call *call, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                  uint64_t bytes);

/* Count one message of an operation. The operation must be in ibp_operation_wanted. If the current call has this
 * operation, the message counts for the call's site. */
static inline void ibp_count(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                             uint64_t bytes)
{
    if (IBP_UNLIKELY(ibp_periodic_in_messages)) ibp_periodic_check_now();
    ibp_lock();
    ibp_count_locked(operation, kind, direction, peer, bytes);
    ibp_unlock();
}

#endif
