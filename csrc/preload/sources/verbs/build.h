/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Posting requests that are built step by step: the wr_ functions of a struct ibv_qp_ex.
 */
#ifndef IBPROF_SOURCES_VERBS_BUILD_H
#define IBPROF_SOURCES_VERBS_BUILD_H

#include "sources/verbs/abi.h"

#include <stdint.h>

/* Hook the wr_ functions of a queue pair that was created with some of them, and mlx5's additional functions. */
void ibp_verbs_hook_builders(struct ibp_verbs_qp *qp, uint64_t operations);
void ibp_mlx5_hook_builders(struct ibp_mlx5_qp_ex *mlx5);

#endif
