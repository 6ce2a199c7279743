/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/contexts.h"
#include "counting/addresses.h"
#include "libmpi/lock.h"
#include "sources/mpich/freed_communicators.h"

/* The lowest 3 bits of a context distinguish uses of one communicator (mpir_contextid.h of MPICH 3.4 to 5.0). The next
 * bit marks the local context of an intercommunicator, for messages within the local group. Messages between the groups
 * have a context that the remote group chose, so its upper bits may differ from the local context. */
#define PREFIX_SHIFT 3
#define LOCAL_CONTEXT 8

static struct ibp_peers communicator_of; /* maps key_of(context) to the communicator's handle */

static uint64_t key_of(uint32_t context)
{
    return (context >> PREFIX_SHIFT) + 1;
}

static uint32_t context_of(const struct ibp_peer *entry)
{
    return (uint32_t)(entry->key - 1) << PREFIX_SHIFT;
}

bool ibp_mpich_is_local(uint32_t context)
{
    return context & LOCAL_CONTEXT;
}

/* Return the entry of a communicator's context; NULL if the context is unknown. `is_local`: true for the context
 * of messages within the local group of an intercommunicator. */
static struct ibp_peer *find_mapped(ibp_handle communicator, bool is_local)
{
    for (uint64_t i = 0; communicator_of.place && i <= communicator_of.mask; i++) {
        struct ibp_peer *entry = &communicator_of.place[i];

        if (entry->key && entry->address == (uint64_t)communicator && ibp_mpich_is_local(context_of(entry)) == is_local)
            return entry;
    }
    return NULL;
}

bool ibp_mpich_has_context(ibp_handle communicator, bool is_local)
{
    return find_mapped(communicator, is_local);
}

void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator)
{
    struct ibp_peer *entry = communicator ? ibp_peer_enter(&communicator_of, key_of(context)) : NULL;

    if (!entry || entry->address || ibp_mpich_has_context(communicator, ibp_mpich_is_local(context))) return;
    entry->address = (uint64_t)communicator;
    ibp_mpich_drop_freed(entry->key);
}

ibp_handle ibp_mpich_communicator_of(uint32_t context)
{
    const struct ibp_peer *entry = ibp_peer_find(&communicator_of, key_of(context));

    return entry ? (ibp_handle)entry->address : 0;
}

unsigned ibp_mpich_call_of_freed(uint32_t context, uint32_t tag)
{
    return ibp_mpich_freed_call(key_of(context), tag);
}

unsigned ibp_mpich_call_of_freed_guessed(uint32_t context, uint32_t tag)
{
    return ibp_mpich_freed_call_guessed(key_of(context), tag);
}

void ibp_mpich_forget_communicator(ibp_handle communicator)
{
    struct ibp_peer *local, *entry;
    struct ibp_communicator *known;

    ibp_lock();
    entry = find_mapped(communicator, false);
    local = find_mapped(communicator, true);
    known = ibp_communicator_enter(communicator);
    if (known) ibp_mpich_keep_freed(entry ? entry->key : 0, known);
    if (entry) entry->address = 0;
    if (local) local->address = 0;
    ibp_unlock();
}
