/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers in libfabric. A peer is an index into an address vector, which contains the peer's address.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H

#include "counting/addresses.h"
#include "sources/mpich/libfabric_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* An endpoint that MPI opened. */
struct ibp_fi_known_endpoint {
    struct ibp_fi_endpoint *object;
    struct ibp_fi_domain *domain;
    bool named;
    /* The key is the index plus 1. */
    struct ibp_peers peers;
    /* The index of the last message's peer, plus 1. */
    uint64_t last_index;
    uint32_t last_number;
};

/* Remember a new endpoint or address vector. Return the endpoint's entry; NULL if the table is full. */
struct ibp_fi_known_endpoint *ibp_fi_add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain);
void ibp_fi_add_addresses(struct ibp_fi_av *av, struct ibp_fi_domain *domain);

/* Enter the addresses of this process. Return the number of endpoints. */
unsigned ibp_fi_enter_own_names(void);

/* Return whether there were more endpoints than entries. */
bool ibp_fi_is_beyond_limit(void);

/* Return the number that counters use for a peer. `index`: the peer's index in the address vector of the endpoint. */
uint32_t ibp_fi_peer_of(struct ibp_fi_known_endpoint *endpoint, uint64_t index);

#endif
