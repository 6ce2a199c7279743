/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "mock_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mock_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
    };
    int extended;
    int request; /* index in `bytes` of the kind of request that wr_ functions build; 4: a request without bytes */
    uint64_t length;
    uint64_t bytes[5], messages[5]; /* since wr_start */
};

static int refuse_at, refuse_silently, failing;
static uint64_t accepted_bytes[5], accepted_messages[5];

static void accept_requests(int kind, uint64_t bytes, uint64_t messages)
{
    __atomic_fetch_add(&accepted_bytes[kind], bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&accepted_messages[kind], messages, __ATOMIC_RELAXED);
}

static int kind_of(enum ibv_wr_opcode opcode)
{
    switch ((int)opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
        return 0;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case 15: /* IBV_WR_ATOMIC_WRITE */
        return 1;
    case IBV_WR_RDMA_READ:
        return 2;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return 3;
    default:
        return 4;
    }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **refused)
{
    (void)qp;
    for (int number = 1; request; request = request->next, number++) {
        uint64_t bytes = 0;

        if (number == refuse_at) {
            if (!refuse_silently) *refused = request;
            return ENOMEM;
        }
        for (int i = 0; i < request->num_sge; i++) bytes += request->sg_list[i].length;
        if (!refuse_silently || !refuse_at) accept_requests(kind_of(request->opcode), bytes, 1);
    }
    return 0;
}

/* -- requests built step by step ----------------------------------------------------------------------------------- */

static struct mock_qp *of(struct ibv_qp_ex *qp)
{
    return (struct mock_qp *)qp;
}

static void end_request(struct mock_qp *qp)
{
    if (qp->request >= 0) {
        qp->bytes[qp->request] += qp->length;
        qp->messages[qp->request]++;
    }
    qp->request = -1;
}

static void begin(struct ibv_qp_ex *qp, int request)
{
    end_request(of(qp));
    of(qp)->request = request;
    of(qp)->length = 0;
}

static void wr_start(struct ibv_qp_ex *qp)
{
    memset(of(qp)->bytes, 0, sizeof of(qp)->bytes);
    memset(of(qp)->messages, 0, sizeof of(qp)->messages);
    of(qp)->request = -1;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
    end_request(of(qp));
    if (refuse_at) return ENOMEM;
    for (int i = 0; i < 5; i++) accept_requests(i, of(qp)->bytes[i], of(qp)->messages[i]);
    return 0;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
    of(qp)->request = -1;
}

static void wr_cmp_swp(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint64_t compare, uint64_t swap)
{
    (void)key, (void)address, (void)compare, (void)swap;
    begin(qp, 3);
}

static void wr_fetch_add(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint64_t add)
{
    (void)key, (void)address, (void)add;
    begin(qp, 3);
}

static void wr_bind(struct ibv_qp_ex *qp, struct ibv_mw *window, uint32_t key, const struct ibv_mw_bind_info *what)
{
    (void)window, (void)key, (void)what;
    begin(qp, 4);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t key)
{
    (void)key;
    begin(qp, 4);
}

static void wr_read(struct ibv_qp_ex *qp, uint32_t key, uint64_t address)
{
    (void)key, (void)address;
    begin(qp, 2);
}

static void wr_write(struct ibv_qp_ex *qp, uint32_t key, uint64_t address)
{
    (void)key, (void)address;
    begin(qp, 1);
}

static void wr_write_imm(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, __be32 immediate)
{
    (void)key, (void)address, (void)immediate;
    begin(qp, 1);
}

static void wr_send(struct ibv_qp_ex *qp)
{
    begin(qp, 0);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 immediate)
{
    (void)immediate;
    begin(qp, 0);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t key)
{
    (void)key;
    begin(qp, 0);
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *header, uint16_t bytes, uint16_t segment)
{
    (void)header, (void)bytes, (void)segment;
    begin(qp, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, const void *value)
{
    (void)key, (void)address, (void)value;
    begin(qp, 1);
    of(qp)->length = 8;
}

static void set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *handle, uint32_t number, uint32_t key)
{
    (void)qp, (void)handle, (void)number, (void)key;
}

static void set_inline(struct ibv_qp_ex *qp, void *data, size_t bytes)
{
    (void)data;
    of(qp)->length += bytes;
}

static void set_inline_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_data_buf *buffers)
{
    for (size_t i = 0; i < count; i++) of(qp)->length += buffers[i].length;
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint32_t bytes)
{
    (void)key, (void)address;
    of(qp)->length += bytes;
}

static void set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *pieces)
{
    for (size_t i = 0; i < count; i++) of(qp)->length += pieces[i].length;
}

/* -- functions that libibverbs exports ----------------------------------------------------------------------------- */

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_pd *domain, enum ibv_qp_type type)
{
    struct mock_qp *qp = calloc(1, sizeof *qp);

    qp->qp.context = context;
    qp->qp.pd = domain;
    qp->qp.qp_type = type;
    return &qp->qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted)
{
    struct ibv_qp *qp = make_qp(context, wanted->pd, wanted->qp_type);
    struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

    if (!(wanted->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) return qp;
    ((struct mock_qp *)qp)->extended = 1;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_atomic_cmp_swp = wr_cmp_swp;
    ex->wr_atomic_fetch_add = wr_fetch_add;
    ex->wr_bind_mw = wr_bind;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_read;
    ex->wr_rdma_write = wr_write;
    ex->wr_rdma_write_imm = wr_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_set_ud_addr = set_ud_addr;
    ex->wr_set_inline_data = set_inline;
    ex->wr_set_inline_data_list = set_inline_list;
    ex->wr_set_sge = set_sge;
    ex->wr_set_sge_list = set_sge_list;
    /* Set wr_atomic_write, which the oldest headers lack. This member follows wr_abort. */
    if (wanted->send_ops_flags & 1 << 12) *(void **)((char *)&ex->wr_abort + sizeof(void *)) = (void *)wr_atomic_write;
    return qp;
}

struct ibv_device *mock_device(const char *name)
{
    struct mock_device *device = calloc(1, sizeof *device);

    strncpy(device->device.name, name, sizeof device->device.name - 1);
    return &device->device;
}

void mock_refuse(int nth, int silently)
{
    refuse_at = nth;
    refuse_silently = silently;
}

void mock_fail(int fails)
{
    failing = fails;
}

void mock_accepted(uint64_t bytes[4], uint64_t messages[4])
{
    for (int kind = 0; kind < 4; kind++) {
        bytes[kind] = __atomic_load_n(&accepted_bytes[kind], __ATOMIC_RELAXED);
        messages[kind] = __atomic_load_n(&accepted_messages[kind], __ATOMIC_RELAXED);
    }
}

struct ibv_context *mock_open(struct ibv_device *device)
{
    struct verbs_context *extended = &((struct mock_device *)device)->context;

    extended->sz = sizeof *extended;
    extended->create_qp_ex = create_qp_ex;
    extended->context.abi_compat = (void *)UINTPTR_MAX;
    extended->context.device = device;
    extended->context.ops.post_send = post_send;
    return &extended->context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return mock_open(device);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *wanted)
{
    return make_qp(domain->context, domain, wanted->qp_type);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return ((struct mock_qp *)qp)->extended ? (struct ibv_qp_ex *)qp : NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int fields)
{
    (void)qp, (void)attributes, (void)fields;
    return failing ? EINVAL : 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    if (failing) return EBUSY;
    free(qp);
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *domain, struct ibv_ah_attr *path)
{
    struct ibv_ah *handle = calloc(1, sizeof *handle);

    (void)path;
    handle->context = domain->context;
    handle->pd = domain;
    return handle;
}

int ibv_destroy_ah(struct ibv_ah *handle)
{
    if (failing) return EBUSY;
    free(handle);
    return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *completion, struct ibv_grh *header,
                        struct ibv_ah_attr *path)
{
    (void)context, (void)header;
    path->port_num = port;
    path->dlid = completion->slid;
    return 0;
}

struct ibv_qp *mock_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *wanted)
{
    return create_qp_ex(context, wanted);
}

static struct ibv_async_event next_event;

void mock_event(struct ibv_qp *qp, enum ibv_event_type type)
{
    next_event = (struct ibv_async_event){.element.qp = qp, .event_type = type};
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    (void)context;
    *event = next_event;
    return 0;
}
