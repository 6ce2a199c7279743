/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Functions of vendors' libraries for verbs, on the mock provider: queue pairs that a program may post to directly. Built
 * as libefa.so.1, libhns.so.1, libmana.so.1 and libmlx4.so.1.
 */
#ifndef IBPROF_MOCK_VENDORS_H
#define IBPROF_MOCK_VENDORS_H

#include <infiniband/efadv.h>
#include <infiniband/mlx4dv.h>

/* Older releases lack manadv.h and hnsdv.h. */
#if __has_include(<infiniband/manadv.h>)
#include <infiniband/manadv.h>
#else
struct manadv_obj {
    struct {
        struct ibv_qp *in;
        void *out;
    } qp;
};
enum { MANADV_OBJ_QP = 1 << 0, MANADV_OBJ_CQ = 1 << 1 };
int manadv_init_obj(struct manadv_obj *object, uint64_t types);
#endif

struct hnsdv_qp_init_attr;
struct ibv_qp *hnsdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted,
                               struct hnsdv_qp_init_attr *special);

#endif
