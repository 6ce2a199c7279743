/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "recording/operations.h"

bool ibp_counts_arguments;

/* Return the context of the current call; between calls, ibp_between. With several threads in MPI, return the context
 * of this thread's current or last call; NULL before its first call. */
static struct ibp_context *present(void)
{
    if (!ibp_threads_multiple) return ibp_get_here();
    return ibp_current_call.call ? &ibp_current_call.call->context : NULL;
}

struct ibp_context *ibp_context_sending(unsigned operation)
{
    struct ibp_context *here = present();

    return here && here->send.operation == operation ? here : &ibp_calls[operation].context;
}

uint32_t ibp_origin_sent_slowly(unsigned operation)
{
    struct ibp_context *here = present(), *sending = ibp_context_sending(operation);

    if (here && sending != here && here->isend.operation == operation) return ibp_context_origin(here, &here->isend);
    return ibp_context_origin(sending, &sending->send);
}

void ibp_count_of(struct ibp_call *call, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer,
                  uint64_t bytes)
{
    const struct ibp_slot *slot;

    if (IBP_UNLIKELY(ibp_periodic_in_messages)) ibp_periodic_check_now();
    ibp_lock();
    slot = ibp_slot_made(IBP_SLOT_KEY(ibp_context_origin(&call->context, &call->context.send), kind, direction, peer));
    ibp_add(slot->amount, bytes);
    ibp_add_size(slot->bins, bytes);
    ibp_unlock();
}
