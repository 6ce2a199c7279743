/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "routes/in_tree.h"

#include <errno.h>
#include <stdlib.h>

int ibp_tree_init(struct ibp_tree *tree, const struct ibp_routes *routes)
{
    size_t switches = (size_t)routes->switches + 1; /* plus 1, because an allocation of 0 bytes may return NULL */
    *tree = (struct ibp_tree){.routes = routes,
                              .state = calloc(switches, sizeof *tree->state),
                              .by = malloc(switches * sizeof *tree->by),
                              .visited = malloc(switches * sizeof *tree->visited),
                              .stack = malloc(switches * sizeof *tree->stack)};
    if (tree->state && tree->by && tree->visited && tree->stack) return 0;
    ibp_tree_fini(tree);
    return -ENOMEM;
}

void ibp_tree_fini(struct ibp_tree *tree)
{
    free(tree->state);
    free(tree->by);
    free(tree->visited);
    free(tree->stack);
    *tree = (struct ibp_tree){0};
}

void ibp_tree_begin(struct ibp_tree *tree, uint32_t lid)
{
    for (uint32_t i = 0; i < tree->visits; i++) tree->state[tree->visited[i]] = 0;
    tree->visits = 0;
    tree->lid = lid;
    tree->port = tree->routes->lid_port[lid];
}

void ibp_tree_visit(struct ibp_tree *tree, uint32_t place)
{
    const uint32_t switches = tree->routes->switches;
    uint32_t depth = 0;
    while (place < switches && !tree->state[place]) {
        int32_t end;
        tree->state[place] = 1;
        tree->stack[depth++] = (uint16_t)place;
        uint32_t next = ibp_step(tree->routes, tree->lid, tree->port, place, &end);
        tree->by[place] =
            (struct ibp_tree_step){(uint16_t)place, (uint16_t)(next < switches ? next : switches), (uint32_t)end};
        place = next;
    }
    /* The path has reached a place with a known end, or returned to one of its own switches (a loop). */
    uint8_t state = place >= switches         ? (uint8_t)(2 + place - switches)
                    : tree->state[place] == 1 ? 2 + IBP_LOOP
                                              : tree->state[place];
    while (depth) {
        uint16_t back = tree->stack[--depth];
        tree->state[back] = state;
        tree->visited[tree->visits++] = back;
    }
}
