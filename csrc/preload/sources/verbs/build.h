/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of the wr_ functions of a struct ibv_qp_ex. A program calls several of these functions to build and post a work
 * request.
 */
#ifndef IBPROF_SOURCES_VERBS_BUILD_H
#define IBPROF_SOURCES_VERBS_BUILD_H

#include "sources/verbs/abi.h"

#include <stdint.h>

/* ibp_verbs_hook_builders: hook the wr_ functions of a queue pair. `operations`: the operations that the program
 * requested (enum ibv_qp_create_send_ops_flags). ibp_mlx5_hook_builders: hook the functions that only mlx5 has. */
void ibp_verbs_hook_builders(struct ibp_verbs_qp *qp, uint64_t operations);
void ibp_mlx5_hook_builders(struct ibp_mlx5_qp_ex *mlx5);

#endif
