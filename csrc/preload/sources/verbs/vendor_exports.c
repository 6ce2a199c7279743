/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks for the libraries of EFA, HNS, MANA and mlx4: for functions that create a queue pair, or permit posts without
 * verbs. Posts without verbs are invisible to ibprof. A queue pair that permits such posts counts as unseen until its
 * first post through verbs.
 */
#include "platform/system.h"
#include "sources/verbs/exports.h"
#include "sources/verbs/abi.h"
#include "sources/verbs/hooked_devices.h"

static struct ibp_verbs_qp *enter(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted)
{
    if (!qp) return NULL;
    ibp_verbs_see_device(qp->context);
    ibp_verbs_enter_qp(qp, wanted);
    ibp_verbs_note_direct(qp);
    return qp;
}

DEFINE(struct ibp_verbs_qp *, efadv_create_driver_qp, void *domain, void *wanted, uint32_t type)
{
    static struct ibp_verbs_qp *(*next)(void *, void *, uint32_t);

    FIND_REAL(next, IBP_EFA_LIBRARY, "efadv_create_driver_qp", NULL);
    return enter(next(domain, wanted, type), NULL); /* this function creates queue pairs without wr_ functions */
}

DEFINE(struct ibp_verbs_qp *, efadv_create_qp_ex, void *context, struct ibp_verbs_qp_init *wanted, void *special,
       uint32_t bytes)
{
    static struct ibp_verbs_qp *(*next)(void *, struct ibp_verbs_qp_init *, void *, uint32_t);

    FIND_REAL(next, IBP_EFA_LIBRARY, "efadv_create_qp_ex", NULL);
    return enter(next(context, wanted, special, bytes), wanted);
}

DEFINE(struct ibp_verbs_qp *, hnsdv_create_qp, void *context, struct ibp_verbs_qp_init *wanted, void *special)
{
    static struct ibp_verbs_qp *(*next)(void *, struct ibp_verbs_qp_init *, void *);

    FIND_REAL(next, IBP_HNS_LIBRARY, "hnsdv_create_qp", NULL);
    return enter(next(context, wanted, special), wanted);
}

DEFINE(int, manadv_init_obj, struct ibp_verbs_vendor_object *object, uint64_t types)
{
    static int (*next)(struct ibp_verbs_vendor_object *, uint64_t);
    int result;

    FIND_REAL(next, IBP_MANA_LIBRARY, "manadv_init_obj", ENOSYS);
    result = next(object, types);
    if (!result && types & IBP_VERBS_VENDOR_OBJECT_QP && object->qp) ibp_verbs_note_direct(object->qp);
    return result;
}

DEFINE(int, mlx4dv_init_obj, struct ibp_verbs_vendor_object *object, uint64_t types)
{
    static int (*next)(struct ibp_verbs_vendor_object *, uint64_t);
    int result;

    FIND_REAL(next, IBP_MLX4_LIBRARY, "mlx4dv_init_obj", ENOSYS);
    result = next(object, types);
    if (!result && types & IBP_VERBS_VENDOR_OBJECT_QP && object->qp) ibp_verbs_note_direct(object->qp);
    return result;
}
