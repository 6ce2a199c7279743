/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers in libfabric. A peer is identified by an index into an address vector, which contains the addresses of all
 * peers.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H

#include "counting/addresses.h"
#include "sources/mpich/libfabric_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_fi_known_endpoint {
    struct ibp_fi_endpoint *object;
    struct ibp_fi_domain *domain;
    bool named;
    /* A map to peers; the key of a peer is its index plus 1. */
    struct ibp_peers peers;
    /* `last_index`: index of the peer of the last message, plus 1. `last_number`: the number that represents this peer
     * in counters. */
    uint64_t last_index;
    uint32_t last_number;
};

/* Remember a new endpoint or a new address vector. ibp_fi_add_endpoint returns NULL if the table of endpoints is
 * full. */
struct ibp_fi_known_endpoint *ibp_fi_add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain);
void ibp_fi_add_addresses(struct ibp_fi_av *av, struct ibp_fi_domain *domain);

/* Enter the addresses of this process (counting/addresses.h). Return the number of known endpoints. */
unsigned ibp_fi_enter_own_names(void);

/* Return whether MPI opened more endpoints than the table can contain. */
bool ibp_fi_is_beyond_limit(void);

/* Return the number that represents a peer in counters. `index`: the peer's index in the endpoint's address vector. */
uint32_t ibp_fi_peer_of(struct ibp_fi_known_endpoint *endpoint, uint64_t index);

#endif
