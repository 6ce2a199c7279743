/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One step of a packet along its route.
 *
 * A place is the index of a switch. The place at the end of a path is `switches` + the enum ibp_reason of the end.
 */
#ifndef IBP_ROUTES_STEP_H
#define IBP_ROUTES_STEP_H

#include "ibprof_kernels/routes.h"

/* Return the place after `hop`, for a packet with the destination `port`. */
static inline uint32_t ibp_arrive(const struct ibp_routes *routes, const struct ibp_hop *hop, int32_t port)
{
    if (hop->to >= 0 && (uint32_t)hop->to < routes->switches) return (uint32_t)hop->to;
    return routes->switches + (hop->to == port + (int32_t)routes->switches ? IBP_DELIVERED : IBP_WRONG_END);
}

/* Take one step from a switch towards `lid`, the LID of `port`. Return the next place. Set `end` to the link direction;
 * to IBP_NONE if the packet uses no link. */
static inline uint32_t ibp_step(const struct ibp_routes *routes, uint32_t lid, int32_t port, uint32_t at, int32_t *end)
{
    *end = IBP_NONE;
    if (routes->port_switch[port] == (int32_t)at) return routes->switches + IBP_DELIVERED;
    if (!routes->has_table[at]) return routes->switches + IBP_MISSING_TABLE;
    uint32_t egress = lid < routes->lids ? routes->egress[(size_t)lid * routes->switches + at] : IBP_NO_PORT;
    if (egress == IBP_NO_PORT) return routes->switches + IBP_UNREACHABLE;
    if (egress == 0) return routes->switches + IBP_WRONG_END;
    if (egress >= routes->width) return routes->switches + IBP_UNKNOWN_PORT;
    const struct ibp_hop *hop = &routes->hop[(size_t)at * routes->width + egress];
    if (hop->end == IBP_NONE) return routes->switches + IBP_UNKNOWN_PORT;
    *end = hop->end;
    return ibp_arrive(routes, hop, port);
}

/* Take the first step from the source. Return the next place. Set `end` to the link direction; to IBP_NONE if the
 * packet uses no link, as when the source is a switch. */
static inline uint32_t ibp_start(const struct ibp_routes *routes, int32_t source_lid, int32_t destination_lid,
                                 int32_t *end)
{
    int32_t source = routes->lid_port[source_lid], port = routes->lid_port[destination_lid];
    *end = IBP_NONE;
    if (source == IBP_NONE || port == IBP_NONE) return routes->switches + IBP_UNKNOWN_LID;
    if (source == port) return routes->switches + IBP_SAME_PORT;
    if (routes->port_switch[source] != IBP_NONE) return (uint32_t)routes->port_switch[source];
    const struct ibp_hop *first = &routes->first[source];
    if (first->end == IBP_NONE) return routes->switches + IBP_UNKNOWN_PORT;
    *end = first->end;
    return ibp_arrive(routes, first, port);
}

#endif
