/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The in-tree of a destination: the routes from all switches to the destination. Each hop is computed only once.
 */
#ifndef IBP_ROUTES_IN_TREE_H
#define IBP_ROUTES_IN_TREE_H

#include <stdbool.h>

#include "routes/step.h"

/* A step: packets at switch `place` leave by link direction `end` to switch `next`. If the step ends at the
 * destination, `next` is the number of switches. */
struct ibp_tree_step {
    uint16_t place;
    uint16_t next;
    uint32_t end;
};

/* The visited part of the in-tree of one destination. */
struct ibp_tree {
    const struct ibp_routes *routes;
    uint32_t lid;
    int32_t port;
    uint8_t *state; /* [switch]: 0: not visited; 1: being visited; 2 + reason why the switch's path ends */
    struct ibp_tree_step *by; /* [switch]: the step from a visited switch, if one exists */
    /* All visited switches. If packets from a switch arrive at the destination, `visited` contains the next switch on
     * the path before this switch. */
    uint16_t *visited;
    uint32_t visits;
    uint16_t *stack;
};

int ibp_tree_init(struct ibp_tree *tree, const struct ibp_routes *routes);
void ibp_tree_fini(struct ibp_tree *tree);

/* Begin the in-tree of another destination, the port with the LID `lid`. */
void ibp_tree_begin(struct ibp_tree *tree, uint32_t lid);

/* Compute all unknown steps of the path from a switch. */
void ibp_tree_visit(struct ibp_tree *tree, uint32_t place);

/* Return how the path from a place (step.h) ends. */
static inline enum ibp_reason ibp_tree_reason(struct ibp_tree *tree, uint32_t place)
{
    if (place >= tree->routes->switches) return (enum ibp_reason)(place - tree->routes->switches);
    if (!tree->state[place]) ibp_tree_visit(tree, place);
    return (enum ibp_reason)(tree->state[place] - 2);
}

/* Return whether a switch is the destination. */
static inline bool ibp_tree_is_root(const struct ibp_tree *tree, uint32_t place)
{
    return tree->routes->port_switch[tree->port] == (int32_t)place;
}

#endif
