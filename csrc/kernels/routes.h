/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One step of a packet, and one tree of steps: what all kernels that follow routes are made of.
 *
 * A place is a switch (below routes->switches) or, beyond, switches + the reason why a path ends.
 */
#ifndef IBP_ROUTES_H
#define IBP_ROUTES_H

#include <stdbool.h>

#include "ibprof_kernels.h"

/* Where leaving by `hop` leads a packet that is for `port`. */
static inline uint32_t ibp_arrive(const struct ibp_routes *routes, const struct ibp_hop *hop, int32_t port)
{
    if (hop->to >= 0 && (uint32_t)hop->to < routes->switches) return (uint32_t)hop->to;
    return routes->switches + (hop->to == port + (int32_t)routes->switches ? IBP_DELIVERED : IBP_WRONG_END);
}

/* Take one step from a switch towards a LID, which is that of `port`: the next place, and the link end passed. */
static inline uint32_t ibp_step(const struct ibp_routes *routes, uint32_t lid, int32_t port, uint32_t at, int32_t *end)
{
    *end = IBP_NONE;
    if (routes->port_switch[port] == (int32_t)at) return routes->switches + IBP_DELIVERED;
    if (!routes->has_table[at]) return routes->switches + IBP_MISSING_TABLE;
    uint32_t egress = lid < routes->lids ? routes->egress[(size_t)lid * routes->switches + at] : 255;
    if (egress == 255) return routes->switches + IBP_UNREACHABLE;
    if (egress == 0) return routes->switches + IBP_WRONG_END;
    if (egress >= routes->width) return routes->switches + IBP_UNKNOWN_PORT;
    const struct ibp_hop *hop = &routes->hop[(size_t)at * routes->width + egress];
    if (hop->end == IBP_NONE) return routes->switches + IBP_UNKNOWN_PORT;
    *end = hop->end;
    return ibp_arrive(routes, hop, port);
}

/* Send a packet from its source: the place it comes to, and the link end passed (IBP_NONE when a switch sends). */
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

/* One step that is known: what comes to `place` leaves over `end` for `next` (the number of switches: for the destination). */
struct ibp_tree_step {
    uint16_t place;
    uint16_t next;
    uint32_t end;
};

/* The in-tree of one destination, as far as it was asked for. */
struct ibp_tree {
    const struct ibp_routes *routes;
    uint32_t lid;
    int32_t port;
    uint8_t *state;             /* [switch]: 0 not visited, 1 being visited, 2 + reason */
    struct ibp_tree_step *by;   /* [switch]: its step, where it has one */
    uint16_t *visited;          /* all switches visited; those whose packets arrive come after their next place */
    uint32_t visits;
    uint16_t *stack;
};

int ibp_tree_init(struct ibp_tree *tree, const struct ibp_routes *routes);
void ibp_tree_fini(struct ibp_tree *tree);

/* Turn to another destination, whose LID a port has. */
void ibp_tree_plant(struct ibp_tree *tree, uint32_t lid);

/* Follow the path from a switch as far as it is not known yet. */
void ibp_tree_visit(struct ibp_tree *tree, uint32_t place);

/* How a packet that is at a place ends. */
static inline enum ibp_reason ibp_tree_reason(struct ibp_tree *tree, uint32_t place)
{
    if (place >= tree->routes->switches) return (enum ibp_reason)(place - tree->routes->switches);
    if (!tree->state[place]) ibp_tree_visit(tree, place);
    return (enum ibp_reason)(tree->state[place] - 2);
}

/* Whether a switch is where the destination itself is: packets that are there take no further step. */
static inline bool ibp_tree_is_root(const struct ibp_tree *tree, uint32_t place)
{
    return tree->routes->port_switch[tree->port] == (int32_t)place;
}

/* The steps of a destination's kept tree; NULL where it is not kept, or where packets of some leaf do not arrive. */
const struct ibp_tree_step *ibp_trees_steps(const struct ibp_trees *trees, uint32_t lid, uint32_t *count);

#endif
