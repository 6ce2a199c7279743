/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libmlx5.so.1 on the made-up provider: queue pairs that a program may post to directly.
 */
#include "made_up_verbs.h"

#include <infiniband/mlx5dv.h>
#include <stdlib.h>

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted,
                                struct mlx5dv_qp_init_attr *special)
{
    struct ibv_qp *qp = calloc(1, sizeof(struct ibv_qp_ex) + 4096);

    (void)special;
    qp->context = context;
    qp->pd = wanted->pd;
    qp->qp_type = wanted->qp_type;
    return qp;
}

int mlx5dv_init_obj(struct mlx5dv_obj *object, uint64_t type)
{
    (void)object, (void)type;
    return 0;
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t in_bytes, void *out,
                                               size_t out_bytes)
{
    (void)context, (void)in, (void)in_bytes, (void)out_bytes;
    return out;
}
