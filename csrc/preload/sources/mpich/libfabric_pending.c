/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_pending.h"
#include "counting/calls.h"
#include "platform/memory.h"
#include "recording/operations.h"

#include <string.h>

#define ANNOUNCEMENTS_MAX 4096

static struct ibp_fi_announcement *pending; /* the oldest is first; NULL before the first announcement */
static unsigned pending_count;
static unsigned unplaced_count;

void ibp_fi_pend(struct ibp_fi_announcement announcement)
{
    if (!pending) pending = ibp_memory_map(ANNOUNCEMENTS_MAX * sizeof *pending);
    if (pending && pending_count < ANNOUNCEMENTS_MAX)
        pending[pending_count++] = announcement;
    else
        unplaced_count++;
}

/* From index `from` on, return the index of the first announcement with this peer and context; pending_count if there
 * is none. */
static unsigned find(uint32_t peer, uint32_t context, unsigned from)
{
    while (from < pending_count && (pending[from].peer != peer || pending[from].context != context)) from++;
    return from;
}

bool ibp_fi_is_pending(uint32_t peer, uint32_t context)
{
    return unplaced_count || find(peer, context, 0) < pending_count;
}

/* If both calls are equal, return the call; if only their operations are equal, the operation; otherwise
 * IBP_OPERATION_UNATTRIBUTED. */
static unsigned join(unsigned call, unsigned other)
{
    const unsigned operation = ibp_call_by_number(call)->operation;

    if (call == other) return call;
    return operation == ibp_call_by_number(other)->operation ? operation : IBP_OPERATION_UNATTRIBUTED;
}

unsigned ibp_fi_settle(uint32_t peer, uint32_t context)
{
    const unsigned oldest = find(peer, context, 0);
    unsigned call;

    if (oldest == pending_count) {
        if (unplaced_count) unplaced_count--;
        return IBP_OPERATION_UNATTRIBUTED;
    }
    call = pending[oldest].call;
    for (unsigned i = find(peer, context, oldest + 1); i < pending_count; i = find(peer, context, i + 1))
        call = join(call, pending[i].call);
    pending_count--;
    memmove(&pending[oldest], &pending[oldest + 1], (pending_count - oldest) * sizeof *pending);
    return call;
}
