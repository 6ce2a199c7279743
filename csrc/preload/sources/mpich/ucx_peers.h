/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers in UCX: an endpoint, made from the address of the peer's worker. Both ends know the worker by its identifier.
 */
#ifndef IBPROF_SOURCES_MPICH_UCX_PEERS_H
#define IBPROF_SOURCES_MPICH_UCX_PEERS_H

#include "libmpi/lock.h"
#include "platform/system.h"

#include <stdint.h>

/* Hook the functions that make workers and endpoints. Return 0, or -1 when UCX lacks one that is needed. */
int ibp_ucx_hook_peers(void);

/* Return the number of workers that were made. */
unsigned ibp_ucx_workers(void);

/* The last endpoint, and the number of its peer: most messages go to the same peer as the one before. */
struct ibp_ucx_last_peer {
    const void *endpoint;
    uint32_t number;
};
extern IBP_INTERNAL struct ibp_ucx_last_peer ibp_ucx_last_peer;

/* Return the peer's number in counters of an endpoint that is not the last one. */
uint32_t ibp_ucx_find_peer(const void *endpoint);

/* Return the peer's number in counters of an endpoint. */
static inline uint32_t ibp_ucx_peer_of(const void *endpoint)
{
    if (!ibp_threads_multiple && endpoint == ibp_ucx_last_peer.endpoint) return ibp_ucx_last_peer.number;
    return ibp_ucx_find_peer(endpoint);
}

#endif
