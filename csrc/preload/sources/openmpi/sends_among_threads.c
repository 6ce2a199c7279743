/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/sends.h"
#include "counting/communicator_contexts.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "counting/periodic.h"
#include "libmpi/datatypes.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"
#include "sources/openmpi/classify.h"

#include <stdbool.h>

/* Return the context of this thread's call; NULL if sites are not recorded, or if the call has another operation. */
static inline struct ibp_context *context_at_site(unsigned operation)
{
    struct ibp_call *call = ibp_sites_recorded ? ibp_current_call.call : NULL;

    return call && call->operation == operation ? &call->context : NULL;
}

/* If the last message at the call's site had the same peer and communicator, count the message; otherwise return
 * false. */
static inline bool see_recent_at_site(size_t count, ibp_handle datatype, int peer, ibp_handle communicator,
                                      unsigned operation)
{
    const struct ibp_context *at_site = context_at_site(operation);
    bool seen;

    if (IBP_UNLIKELY(!at_site) || !ibp_try_lock_among_threads()) return false;
    seen = IBP_LIKELY(at_site->sent_on == communicator) && IBP_LIKELY(at_site->send.peer == peer);
    if (IBP_LIKELY(seen)) ibp_openmpi_add_sent(at_site->send.amount, at_site->send.bins, count, datatype);
    ibp_unlock_among_threads();
    return seen;
}

/* If the last message on the communicator had the same peer and operation, count the message; otherwise return false.
 * This function does not check ibp_operation_wanted and ibp_datatype_size_offset, because see_known stores a last
 * message only if both are set. */
static inline __attribute__((always_inline)) bool see_recent(size_t count, ibp_handle datatype, int peer, int tag,
                                                             ibp_handle communicator, unsigned otherwise)
{
    const unsigned current = ibp_current_call.operation, operation = current ? current : otherwise;
    const struct ibp_context *context;
    bool seen;

    if (IBP_UNLIKELY(tag < (current ? ibp_lowest_tag_within : IBP_OPENMPI_LOWEST_USER_TAG))) return false;
    if (IBP_UNLIKELY(!ibp_is_active())) return false;
    if (IBP_UNLIKELY(ibp_sites_recorded)) return see_recent_at_site(count, datatype, peer, communicator, operation);
    if (!ibp_try_lock_among_threads()) return false;
    context = ibp_context_cached(communicator);
    seen = IBP_LIKELY(context != NULL) && IBP_LIKELY(context->send.peer == peer) &&
           IBP_LIKELY(context->send.origin == ibp_calls[operation].context.send.origin);
    if (IBP_LIKELY(seen)) ibp_openmpi_add_sent(context->send.amount, context->send.bins, count, datatype);
    ibp_unlock_among_threads();
    return seen;
}

/* Count a message whose counter exists already. Return false if the counter does not exist. */
static bool see_known(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator, unsigned otherwise)
{
    const unsigned operation = ibp_openmpi_operation_among_threads(tag, otherwise);
    struct ibp_context *context, *const at_site = context_at_site(operation);
    const struct ibp_slot *slot;

    if (!operation || !ibp_datatype_size_offset) return false;
    ibp_lock_among_threads();
    context = ibp_context_cached(communicator);
    if (!context) context = ibp_context_find(communicator);
    slot = context ? ibp_slot_known(ibp_origin_sent(operation), IBP_KIND_USER, IBP_DIRECTION_SENT,
                                    (int)ibp_context_peer(context, peer))
                   : NULL;
    if (slot) {
        ibp_openmpi_add_sent(slot->amount, slot->bins, count, datatype);
        ibp_recent_set(&context->send, slot, peer);
        if (at_site) ibp_context_move(at_site, communicator);
        if (at_site) ibp_recent_set(&at_site->send, slot, peer);
    }
    ibp_unlock_among_threads();
    return slot;
}

static __attribute__((noinline)) void see_other(size_t count, ibp_handle datatype, int peer, int tag,
                                                ibp_handle communicator, unsigned operation)
{
    if (ibp_periodic_in_messages) ibp_periodic_check_now();
    if (!see_known(count, datatype, peer, tag, communicator, operation))
        ibp_openmpi_see_any(count, datatype, peer, tag, communicator, operation);
}

static inline bool see(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                       unsigned operation)
{
    return IBP_LIKELY(!ibp_periodic_in_messages) && see_recent(count, datatype, peer, tag, communicator, operation);
}

static __attribute__((noinline)) int send_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                int tag, int mode, ibp_handle communicator)
{
    see_other(count, datatype, peer, tag, communicator, ibp_openmpi_blocking_operation(mode));
    return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
}

int ibp_openmpi_hook_send_among_threads(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                        int mode, ibp_handle communicator)
{
    if (IBP_LIKELY(see(count, datatype, peer, tag, communicator, ibp_openmpi_blocking_operation(mode))))
        return ibp_openmpi_next.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_other(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int isend_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                 int tag, int mode, ibp_handle communicator, void **request)
{
    see_other(count, datatype, peer, tag, communicator, ibp_openmpi_nonblocking_operation(mode));
    return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}

int ibp_openmpi_hook_isend_among_threads(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                         int mode, ibp_handle communicator, void **request)
{
    if (IBP_LIKELY(see(count, datatype, peer, tag, communicator, ibp_openmpi_nonblocking_operation(mode))))
        return ibp_openmpi_next.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_other(buffer, count, datatype, peer, tag, mode, communicator, request);
}
