/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The in-tree of one destination: the hops from all switches to it, each followed once.
 */
#ifndef IBP_ROUTES_IN_TREE_H
#define IBP_ROUTES_IN_TREE_H

#include <stdbool.h>

#include "routes/step.h"

/* One step that is known: what comes to `place` leaves over `end` for `next` (the number of switches: for the
 * destination). */
struct ibp_tree_step {
    uint16_t place;
    uint16_t next;
    uint32_t end;
};

/* The in-tree of one destination, as far as it was visited. */
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

#endif
