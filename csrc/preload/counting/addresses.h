/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers that are known only by their network address. The recording of the peer contains the peer's address and rank,
 * so readers find the rank there. Processes do not exchange ranks at run time: a collective call of ibprof would hang
 * if one process does not preload ibprof.
 */
#ifndef IBPROF_COUNTING_ADDRESSES_H
#define IBPROF_COUNTING_ADDRESSES_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ibp_address_of_own: enter an address of this process. ibp_address_of_peer: enter a new address of a peer. Return the
 * number that represents the address as a peer in keys of counters (counting/counters.h). Return IBP_PEER_UNKNOWN if
 * there is no space. Before the recording is open, ibp_address_of_peer returns IBP_PEER_UNKNOWN. */
uint32_t ibp_address_of_own(const void *address, size_t bytes);
uint32_t ibp_address_of_peer(const void *address, size_t bytes);

bool ibp_address_is_own(uint32_t peer);

/* Record the addresses that were entered before the recording was opened. */
void ibp_addresses_record(void);

/* A map from a key of the network layer (endpoint, index, ...) to the number of the peer. Keys are never 0. */
struct ibp_peers {
    struct ibp_peer {
        uint64_t key;
        /* A value of the network layer, such as the identifier of UCX's worker; this file does not use the value. */
        uint64_t address;
        /* The result of ibp_address_of_peer; 0 before ibp_address_of_peer is called. */
        uint32_t number;
    } *place;
    uint64_t mask, used;
};

/* Return the entry of a key, created if needed; NULL if memory is exhausted. The pointer is valid until another entry
 * is created. */
struct ibp_peer *ibp_peer_enter(struct ibp_peers *peers, uint64_t key);
struct ibp_peer *ibp_peer_find(const struct ibp_peers *peers, uint64_t key);
void ibp_peers_clear(struct ibp_peers *peers);

#endif
