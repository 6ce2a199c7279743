/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of the functions of mlx5's library that open a device or create a queue pair. Some queue pairs permit posts
 * without verbs. Such queue pairs count as unseen.
 */
#include "platform/system.h"
#include "sources/verbs/exports.h"
#include "sources/verbs/abi.h"
#include "sources/verbs/build.h"
#include "sources/verbs/hooked_devices.h"

/* UCX opens devices of mlx5 by this function. On these devices, some of UCX's transports post through verbs. */
DEFINE(struct ibp_verbs_context *, mlx5dv_open_device, void *device, void *attributes)
{
    static struct ibp_verbs_context *(*next)(void *, void *);
    struct ibp_verbs_context *context;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_open_device", NULL);
    context = next(device, attributes);
    if (context) ibp_verbs_hook_device(context);
    return context;
}

DEFINE(struct ibp_verbs_qp *, mlx5dv_create_qp, struct ibp_verbs_context *context, struct ibp_verbs_qp_init *wanted,
       struct ibp_mlx5_qp_init *special)
{
    static struct ibp_verbs_qp *(*next)(struct ibp_verbs_context *, struct ibp_verbs_qp_init *,
                                        struct ibp_mlx5_qp_init *);
    struct ibp_verbs_qp *qp;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_create_qp", NULL);
    qp = next(context, wanted, special);
    if (!qp) return NULL;
    ibp_verbs_see_device(qp->context);
    ibp_verbs_enter_qp(qp, wanted);
    /* The target of a dynamic connection only receives, so it is not counted as unseen. */
    if (!(special && special->fields & IBP_MLX5_INIT_DC && special->dc_type == IBP_MLX5_DC_TARGET))
        ibp_verbs_note_direct(qp);
    return qp;
}

DEFINE(int, mlx5dv_init_obj, struct ibp_verbs_vendor_object *object, uint64_t types)
{
    static int (*next)(struct ibp_verbs_vendor_object *, uint64_t);
    int result;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_init_obj", ENOSYS);
    result = next(object, types);
    if (!result && types & IBP_VERBS_VENDOR_OBJECT_QP && object->qp) ibp_verbs_note_direct(object->qp);
    return result;
}

DEFINE(void *, mlx5dv_devx_obj_create, struct ibp_verbs_context *context, const uint8_t *command, size_t bytes,
       void *answer, size_t answer_bytes)
{
    static void *(*next)(struct ibp_verbs_context *, const uint8_t *, size_t, void *, size_t);
    void *made;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_devx_obj_create", NULL);
    made = next(context, command, bytes, answer, answer_bytes);
    if (made && bytes >= 2 && (command[0] << 8 | command[1]) == IBP_MLX5_COMMAND_CREATE_QP) ibp_verbs_note_direct(NULL);
    return made;
}

DEFINE(struct ibp_mlx5_qp_ex *, mlx5dv_qp_ex_from_ibv_qp_ex, struct ibp_verbs_qp_ex *qp)
{
    static struct ibp_mlx5_qp_ex *(*next)(struct ibp_verbs_qp_ex *);
    struct ibp_mlx5_qp_ex *mlx5;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_qp_ex_from_ibv_qp_ex", NULL);
    mlx5 = next(qp);
    if (mlx5 && ibp_route_find(&ibp_queue_pairs, qp)) ibp_mlx5_hook_builders(mlx5);
    return mlx5;
}
