/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers in UCX. A peer is an endpoint, created from the address of the peer's worker. Both processes know the
 * identifier of the worker.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_PEERS_H
#define IBPROF_SOURCES_MPICH_UCX_PEERS_H

#include "libmpi/lock.h"
#include "platform/system.h"

#include <stdint.h>

/* Hook the functions that create workers and endpoints. Return 0, or -1 if UCX lacks a required function. */
int ibp_ucx_hook_peers(void);

/* Return the number of created workers. */
unsigned ibp_ucx_workers(void);

/* Cache of the endpoint of the last message, and the number of the endpoint's peer. Most messages go to the same peer
 * as the previous message. */
struct ibp_ucx_last_peer {
    const void *endpoint;
    uint32_t number;
};
extern IBP_INTERNAL struct ibp_ucx_last_peer ibp_ucx_last_peer;

/* Return the number that counters use for the peer of an endpoint that is not cached. */
uint32_t ibp_ucx_find_peer(const void *endpoint);

/* Return the number that counters use for the peer of an endpoint. */
static inline uint32_t ibp_ucx_peer_of(const void *endpoint)
{
    if (!ibp_threads_multiple && endpoint == ibp_ucx_last_peer.endpoint) return ibp_ucx_last_peer.number;
    return ibp_ucx_find_peer(endpoint);
}

#endif
