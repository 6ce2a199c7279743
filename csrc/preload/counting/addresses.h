/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers by their address on the network. Whose rank an address is only their own recording says, and whoever reads all of
 * them finds it there: asking at run time would take a collective call, which hangs where one process is not preloaded.
 */
#ifndef IBPROF_COUNTING_ADDRESSES_H
#define IBPROF_COUNTING_ADDRESSES_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enters an address of this process, or of a peer when something is sent to it first. Returns the peer's number in counters;
 * IBP_PEER_UNKNOWN when there is no memory. */
uint32_t ibp_address_of_own(const void *address, size_t bytes);
uint32_t ibp_address_of_peer(const void *address, size_t bytes);

/* Whether a peer's number is this process. */
bool ibp_address_is_own(uint32_t peer);

/* Writes what was entered before the recording was opened. */
void ibp_addresses_record(void);

/* Numbers by key: what a layer calls a peer, an endpoint or an index, which is never 0. */
struct ibp_peers {
    struct ibp_peer {
        uint64_t key;
        /* Of the layer's, for its own use. */
        uint64_t address;
        /* Of ibp_address_of_peer; 0 until it was asked for. */
        uint32_t number;
    } *place;
    uint64_t mask, used;
};

/* The entry of a key, made if it is new; NULL when there is no memory. Valid until another one is made. */
struct ibp_peer *ibp_peer_enter(struct ibp_peers *peers, uint64_t key);
struct ibp_peer *ibp_peer_find(const struct ibp_peers *peers, uint64_t key);
void ibp_peers_clear(struct ibp_peers *peers);

#endif
