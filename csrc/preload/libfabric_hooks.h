/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What the parts of the libfabric source share: endpoints that are known, and tables of functions that ours are put into.
 */
#ifndef IBPROF_LIBFABRIC_HOOKS_H
#define IBPROF_LIBFABRIC_HOOKS_H

#include "addresses.h"
#include "libfabric.h"

#include <stdbool.h>
#include <stdint.h>

/* What we know of an endpoint. */
struct ibp_fi_known_endpoint {
    struct ibp_fi_endpoint *object;
    struct ibp_fi_domain *domain;
    bool named;
    struct ibp_peers peers; /* key: index and 1 */
    uint64_t last_index;    /* and 1 */
    uint32_t last_number;
};

/* A table of ours is preceded by its owner and by the table that it took the place of. */
struct ibp_fi_owned {
    struct ibp_fi_known_endpoint *owner;
    const void *original;
};
#define OWNED(table) ((const struct ibp_fi_owned *)(table) - 1)
#define ORIGINAL(table) ((__typeof__(table))OWNED(table)->original)

/* A copy of an object's table for ours to be put in; NULL when there is no memory, and the object keeps the one it has. */
void *ibp_fi_copy_table(void *table_of_object, struct ibp_fi_known_endpoint *owner);

/* Puts a function into a table, if the table is large enough to have the place. */
#define PUT(table, place, function)                                                                                    \
    do {                                                                                                               \
        if ((table)->bytes >= offsetof(__typeof__(*(table)), place) + sizeof(table)->place && (table)->place)          \
            (table)->place = function;                                                                                 \
    } while (0)

/* -- peers: libfabric_peers.c ------------------------------------------------------------------------------------------- */

/* An endpoint, or a table of addresses, was made. Returns what is known of the endpoint; NULL when there are too many. */
struct ibp_fi_known_endpoint *ibp_fi_add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain);
void ibp_fi_add_addresses(struct ibp_fi_av *av, struct ibp_fi_domain *domain);

/* Enters the addresses of this process. Returns how many endpoints there are. */
unsigned ibp_fi_enter_own_names(void);

/* Whether there were more endpoints than can be known. */
bool ibp_fi_is_beyond_limit(void);

/* The number in counters of the peer that an endpoint knows by an index. */
uint32_t ibp_fi_peer_of(struct ibp_fi_known_endpoint *endpoint, uint64_t index);

/* -- sends: libfabric_sends.c -------------------------------------------------------------------------------------------- */

/* Finds which layout this MPI's match bits have; MPI must be initialised. */
void ibp_fi_find_layout(void);

/* Puts ours before what sends and reads by an endpoint, or by one of its contexts. */
void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
