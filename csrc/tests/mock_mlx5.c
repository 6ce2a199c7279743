/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libmlx5.so.1 on the mock provider: queue pairs that a program may post to directly.
 */
#include "mock_verbs.h"

#include <infiniband/mlx5dv.h>

static struct mlx5dv_qp_ex mlx5_ex;
static int dc_addresses;

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted,
                                struct mlx5dv_qp_init_attr *special)
{
    (void)special;
    return mock_qp(context, wanted);
}

static void set_dc_addr(struct mlx5dv_qp_ex *qp, struct ibv_ah *handle, uint32_t number, uint64_t key)
{
    (void)qp, (void)handle, (void)number, (void)key;
    dc_addresses++;
}

static void set_dc_addr_stream(struct mlx5dv_qp_ex *qp, struct ibv_ah *handle, uint32_t number, uint64_t key,
                               uint16_t stream)
{
    (void)qp, (void)handle, (void)number, (void)key, (void)stream;
    dc_addresses++;
}

struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    (void)qp;
    if (!mlx5_ex.wr_set_dc_addr) mlx5_ex.wr_set_dc_addr = set_dc_addr;
    if (!mlx5_ex.wr_set_dc_addr_stream) mlx5_ex.wr_set_dc_addr_stream = set_dc_addr_stream;
    return &mlx5_ex;
}

int mock_dc_addresses(void)
{
    return dc_addresses;
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

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attributes)
{
    (void)attributes;
    return mock_open(device);
}
