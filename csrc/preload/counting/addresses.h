/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers by their network address. Only a peer's own recording shows which rank has an address; readers of all
 * recordings find it there. Asking at run time would need a collective call, which hangs where one process is not
 * preloaded.
 */
#ifndef IBPROF_COUNTING_ADDRESSES_H
#define IBPROF_COUNTING_ADDRESSES_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enter an address of this process, or of a peer at the first message to it. Return the peer's number in counters;
 * IBP_PEER_UNKNOWN when there is no memory. */
uint32_t ibp_address_of_own(const void *address, size_t bytes);
uint32_t ibp_address_of_peer(const void *address, size_t bytes);

/* Return whether a peer's number means this process. */
bool ibp_address_is_own(uint32_t peer);

/* Record the addresses that were entered before the recording was opened. */
void ibp_addresses_record(void);

/* Peers' numbers by a key of the network layer, such as an endpoint or an index, which is never 0. */
struct ibp_peers {
    struct ibp_peer {
        uint64_t key;
        /* For the layer's own use. */
        uint64_t address;
        /* From ibp_address_of_peer; 0 until then. */
        uint32_t number;
    } *place;
    uint64_t mask, used;
};

/* Return the entry of a key, made if needed; NULL when there is no memory. Valid until another one is made. */
struct ibp_peer *ibp_peer_enter(struct ibp_peers *peers, uint64_t key);
struct ibp_peer *ibp_peer_find(const struct ibp_peers *peers, uint64_t key);
void ibp_peers_clear(struct ibp_peers *peers);

#endif
