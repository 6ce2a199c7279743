/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#ifndef IBP_SPREAD_KEPT_TREES_H
#define IBP_SPREAD_KEPT_TREES_H

#include "ibprof_kernels/spread.h"
#include "routes/in_tree.h"

/* The steps of a destination's kept tree; NULL where it is not kept, or where packets of some leaf do not arrive. */
const struct ibp_tree_step *ibp_trees_steps(const struct ibp_trees *trees, uint32_t lid, uint32_t *count);

#endif
