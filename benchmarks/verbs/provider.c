/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A mock libibverbs.so.1 whose devices do nothing: a post costs only the call.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **refused)
{
    (void)request, (void)refused;
    qp->events_completed++; /* the minimum that a provider can do */
    return 0;
}

static void wr_start(struct ibv_qp_ex *qp)
{
    (void)qp;
}

static void wr_write(struct ibv_qp_ex *qp, uint32_t key, uint64_t address)
{
    (void)key, (void)address;
    qp->qp_base.events_completed++;
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint32_t bytes)
{
    (void)qp, (void)key, (void)address, (void)bytes;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
    (void)qp;
    return 0;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
    (void)qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted)
{
    struct ibv_qp_ex *qp = calloc(1, 1024);

    qp->qp_base.context = context;
    qp->qp_base.qp_type = wanted->qp_type;
    qp->wr_start = wr_start;
    qp->wr_rdma_write = wr_write;
    qp->wr_set_sge = set_sge;
    qp->wr_complete = wr_complete;
    qp->wr_abort = wr_abort;
    return &qp->qp_base;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct verbs_context *extended = calloc(1, sizeof *extended);

    extended->sz = sizeof *extended;
    extended->create_qp_ex = create_qp_ex;
    extended->context.abi_compat = (void *)UINTPTR_MAX;
    extended->context.device = device;
    extended->context.ops.post_send = post_send;
    return &extended->context;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *wanted)
{
    (void)domain, (void)wanted;
    return NULL; /* the header's inline function refers to it */
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int fields)
{
    (void)qp, (void)attributes, (void)fields;
    return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return (struct ibv_qp_ex *)qp;
}
