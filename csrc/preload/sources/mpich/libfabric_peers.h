/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Whom MPI sends to through libfabric: an index into a table of addresses, where the address can be looked up.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PEERS_H

#include "counting/addresses.h"
#include "sources/mpich/libfabric_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* What we know of an endpoint. */
struct ibp_fi_known_endpoint {
    struct ibp_fi_endpoint *object;
    struct ibp_fi_domain *domain;
    bool named;
    /* Key: index and 1. */
    struct ibp_peers peers;
    /* And 1. */
    uint64_t last_index;
    uint32_t last_number;
};

/* An endpoint, or a table of addresses, was made. Returns what is known of the endpoint; NULL when there are too many. */
struct ibp_fi_known_endpoint *ibp_fi_add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain);
void ibp_fi_add_addresses(struct ibp_fi_av *av, struct ibp_fi_domain *domain);

/* Enters the addresses of this process. Returns how many endpoints there are. */
unsigned ibp_fi_enter_own_names(void);

/* Whether there were more endpoints than can be known. */
bool ibp_fi_is_beyond_limit(void);

/* The number in counters of the peer that an endpoint knows by an index. */
uint32_t ibp_fi_peer_of(struct ibp_fi_known_endpoint *endpoint, uint64_t index);

#endif
