/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/contexts.h"
#include "counting/addresses.h"
#include "libmpi/lock.h"

/* The lowest bits distinguish parts of one communicator. */
#define PREFIX_SHIFT 4

static struct ibp_peers communicator_of; /* key: prefix of the context, plus 1; address: the handle */

/* Return the key of a context, which is never 0. */
static uint64_t key_of(uint32_t context)
{
    return (context >> PREFIX_SHIFT) + 1;
}

void ibp_mpich_enter_context(uint32_t context, ibp_handle communicator)
{
    struct ibp_peer *entry = communicator ? ibp_peer_enter(&communicator_of, key_of(context)) : NULL;

    if (entry && !entry->address) entry->address = (uint64_t)communicator;
}

ibp_handle ibp_mpich_communicator_of(uint32_t context)
{
    const struct ibp_peer *entry = ibp_peer_find(&communicator_of, key_of(context));

    return entry ? (ibp_handle)entry->address : 0;
}

/* Return the entry of a communicator; NULL when its context is unknown. */
static struct ibp_peer *find_mapped(ibp_handle communicator)
{
    for (uint64_t i = 0; communicator_of.place && i <= communicator_of.mask; i++)
        if (communicator_of.place[i].key && communicator_of.place[i].address == (uint64_t)communicator)
            return &communicator_of.place[i];
    return NULL;
}

bool ibp_mpich_has_context(ibp_handle communicator)
{
    return find_mapped(communicator);
}

void ibp_mpich_forget_communicator(ibp_handle communicator)
{
    struct ibp_peer *entry;

    ibp_lock();
    entry = find_mapped(communicator);
    if (entry) entry->address = 0;
    ibp_unlock();
}
