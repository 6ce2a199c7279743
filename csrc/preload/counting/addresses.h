/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers that are known only by their network address. A peer's recording has its address and its rank, so readers need
 * the recordings of all processes. To exchange the ranks at run time, ibprof would need a collective call, which hangs
 * if one process is not preloaded.
 */
#ifndef IBPROF_COUNTING_ADDRESSES_H
#define IBPROF_COUNTING_ADDRESSES_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ibp_address_of_own: enter an address of this process. ibp_address_of_peer: enter the address of a peer, unless it is
 * entered already. Both return the number that counters use for the address, or IBP_PEER_UNKNOWN if memory is
 * exhausted. */
uint32_t ibp_address_of_own(const void *address, size_t bytes);
uint32_t ibp_address_of_peer(const void *address, size_t bytes);

/* Return whether a peer's number is the number of this process. */
bool ibp_address_is_own(uint32_t peer);

/* Record the addresses that were entered before the recording was opened. */
void ibp_addresses_record(void);

/* A map from a key of the network layer, such as an endpoint or an index, to the number of the peer. Keys are never
 * 0. */
struct ibp_peers {
    struct ibp_peer {
        uint64_t key;
        /* For use by the network layer. */
        uint64_t address;
        /* The result of ibp_address_of_peer; 0 before the call. */
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
