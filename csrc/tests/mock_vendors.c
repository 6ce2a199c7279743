/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "mock_vendors.h"
#include "mock_verbs.h"

struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *wanted, uint32_t type)
{
    struct ibv_qp_init_attr_ex extended = {.qp_type = wanted->qp_type, .pd = domain};

    (void)type;
    return mock_qp(domain->context, &extended);
}

struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted,
                                  struct efadv_qp_init_attr *special, uint32_t bytes)
{
    (void)special, (void)bytes;
    return mock_qp(context, wanted);
}

struct ibv_qp *hnsdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted,
                               struct hnsdv_qp_init_attr *special)
{
    (void)special;
    return mock_qp(context, wanted);
}

int manadv_init_obj(struct manadv_obj *object, uint64_t types)
{
    (void)object, (void)types;
    return 0;
}

int mlx4dv_init_obj(struct mlx4dv_obj *object, uint64_t types)
{
    (void)object, (void)types;
    return 0;
}
