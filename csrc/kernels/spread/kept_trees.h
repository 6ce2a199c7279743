/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_SPREAD_KEPT_TREES_H
#define IBP_SPREAD_KEPT_TREES_H

#include "ibprof_kernels/spread.h"
#include "routes/in_tree.h"

/* Return the steps of a destination's in-tree; NULL if the tree is not kept. */
const struct ibp_tree_step *ibp_trees_steps(const struct ibp_trees *trees, uint32_t lid, uint32_t *count);

#endif
