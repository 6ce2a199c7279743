/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers in UCX. MPI creates an endpoint for each peer from the address of the peer's worker. The identifier of the
 * worker is the peer's address, because both processes know this identifier.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_PEERS_H
#define IBPROF_SOURCES_MPICH_UCX_PEERS_H

#include "libmpi/lock.h"
#include "platform/system.h"

#include <stdint.h>

/* Hook the functions that create workers and endpoints. Return 0, or -1 if UCX lacks a required function. */
int ibp_ucx_hook_peers(void);

unsigned ibp_ucx_workers(void);

/* Endpoint of the last message, and the number of the endpoint's peer. Most messages go to the same peer as the
 * previous message. */
struct ibp_ucx_last_peer {
    const void *endpoint;
    uint32_t number;
};
extern IBP_INTERNAL struct ibp_ucx_last_peer ibp_ucx_last_peer;

/* Like ibp_ucx_peer_of, without the cache. */
uint32_t ibp_ucx_find_peer(const void *endpoint);

/* Return the number that represents the peer of an endpoint in counters. */
static inline uint32_t ibp_ucx_peer_of(const void *endpoint)
{
    if (!ibp_threads_multiple && endpoint == ibp_ucx_last_peer.endpoint) return ibp_ucx_last_peer.number;
    return ibp_ucx_find_peer(endpoint);
}

#endif
