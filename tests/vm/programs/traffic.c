/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Known traffic between two devices of one host, without MPI:
 *
 *     traffic DEVICE DEVICE plain|built|datagrams|shared
 *
 * `plain` posts lists of requests, `built` uses the wr_ functions, `datagrams` an address handle. `shared` receives
 * from a shared queue. The first device posts all requests. The program prints OPCODE BYTES MESSAGES of the posted
 * requests, and waits until each request completes without an error.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (1 << 20)
#define GID_INDEX 1
#define QKEY 0x11111111
#define DATAGRAM_HEADER 40
#define LARGEST_DATAGRAM 2048

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            perror(#condition);                                                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum mode { PLAIN, BUILT, DATAGRAMS, SHARED };

struct end {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_cq *completions;
    struct ibv_srq *shared;
    struct ibv_qp *qp;
    struct ibv_mr *memory;
    union ibv_gid gid;
};

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    MUST(list);
    for (int i = 0; list[i]; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name)) context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    MUST(context);
    return context;
}

static void make_qp(struct end *end, enum mode mode)
{
    struct ibv_qp_init_attr_ex wanted = {
        .send_cq = end->completions,
        .recv_cq = end->completions,
        .srq = end->shared,
        .qp_type = mode == DATAGRAMS ? IBV_QPT_UD : IBV_QPT_RC,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 1, .max_inline_data = 64},
        .pd = end->domain,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
    };

    if (mode == BUILT) {
        wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    }
    end->qp = ibv_create_qp_ex(end->context, &wanted);
    MUST(end->qp);
}

static void open_end(struct end *end, const char *name, enum mode mode)
{
    const int access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 64, .max_sge = 1}};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access, .qkey = QKEY};
    char *buffer = aligned_alloc(4096, BUFFER_BYTES);

    end->context = open_device(name);
    MUST(end->domain = ibv_alloc_pd(end->context));
    MUST(end->completions = ibv_create_cq(end->context, 256, NULL, NULL, 0));
    MUST(buffer);
    memset(buffer, 1, BUFFER_BYTES);
    MUST(end->memory = ibv_reg_mr(end->domain, buffer, BUFFER_BYTES, access));
    MUST(!ibv_query_gid(end->context, 1, GID_INDEX, &end->gid));
    if (mode == SHARED) MUST(end->shared = ibv_create_srq(end->domain, &shared));
    make_qp(end, mode);
    MUST(!ibv_modify_qp(end->qp, &init,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (mode == DATAGRAMS ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static struct ibv_ah_attr path_to(const struct end *there)
{
    return (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.dgid = there->gid, .sgid_index = GID_INDEX, .hop_limit = 4}};
}

static void connect_end(struct end *end, const struct end *there, enum mode mode)
{
    struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_4096,
                                .dest_qp_num = there->qp->qp_num,
                                .max_dest_rd_atomic = 4,
                                .min_rnr_timer = 12,
                                .ah_attr = path_to(there)};
    struct ibv_qp_attr sending = {
        .qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};

    MUST(!ibv_modify_qp(end->qp, &ready,
                        mode == DATAGRAMS ? IBV_QP_STATE
                                          : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    MUST(!ibv_modify_qp(end->qp, &sending,
                        mode == DATAGRAMS ? IBV_QP_STATE | IBV_QP_SQ_PSN
                                          : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void complete(struct end *end, int count)
{
    struct ibv_wc done[16];

    while (count > 0) {
        const int found = ibv_poll_cq(end->completions, 16, done);

        MUST(found >= 0);
        for (int i = 0; i < found; i++)
            if (done[i].status) {
                fprintf(stderr, "a request ended with %s\n", ibv_wc_status_str(done[i].status));
                exit(1);
            }
        count -= found;
    }
}

static void post_receives(struct end *end, int count)
{
    struct ibv_sge piece = {(uintptr_t)end->memory->addr, BUFFER_BYTES / 4, end->memory->lkey};
    struct ibv_recv_wr request = {.sg_list = &piece, .num_sge = 1}, *refused;

    for (int i = 0; i < count; i++)
        MUST(!(end->shared ? ibv_post_srq_recv(end->shared, &request, &refused)
                           : ibv_post_recv(end->qp, &request, &refused)));
}

static void post_list(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t bytes, int inlined,
                      struct ibv_ah *handle)
{
    const uintptr_t here = (uintptr_t)from->memory->addr;
    /* Atomic operations take one piece of 8 bytes. */
    struct ibv_sge pieces[2] = {{here, bytes, from->memory->lkey},
                                {here + bytes / 2, bytes - bytes / 2, from->memory->lkey}};
    struct ibv_send_wr request = {.sg_list = pieces,
                                  .num_sge = 1,
                                  .opcode = opcode,
                                  .send_flags = IBV_SEND_SIGNALED | (inlined ? IBV_SEND_INLINE : 0)},
                       *refused;

    if (bytes > 8) {
        pieces[0].length = bytes / 2;
        request.num_sge = 2;
    }
    if (handle) {
        request.wr.ud.ah = handle;
        request.wr.ud.remote_qpn = to->qp->qp_num;
        request.wr.ud.remote_qkey = QKEY;
    } else if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        request.wr.atomic.remote_addr = (uintptr_t)to->memory->addr;
        request.wr.atomic.rkey = to->memory->rkey;
        request.wr.atomic.compare_add = 1;
    } else {
        request.wr.rdma.remote_addr = (uintptr_t)to->memory->addr;
        request.wr.rdma.rkey = to->memory->rkey;
    }
    MUST(!ibv_post_send(from->qp, &request, &refused));
}

static void post_built(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(from->qp);
    const uintptr_t there = (uintptr_t)to->memory->addr;
    const uint32_t key = to->memory->rkey;

    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    switch ((int)opcode) {
    case IBV_WR_SEND:
        ibv_wr_send(qp);
        break;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, key, there);
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, key, there, 1);
        break;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, key, there);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, key, there, 1);
        break;
    default:
        ibv_wr_atomic_cmp_swp(qp, key, there, 1, 2);
    }
    ibv_wr_set_sge(qp, from->memory->lkey, (uintptr_t)from->memory->addr, bytes);
    MUST(!ibv_wr_complete(qp));
}

static const struct step {
    enum ibv_wr_opcode opcode;
    int count;
    uint32_t bytes;
    int inlined;
} connected_steps[] =
    {
        {IBV_WR_SEND, 3, 1000, 0},
        {IBV_WR_SEND, 2, 64, 1},
        {IBV_WR_RDMA_WRITE, 4, 50000, 0},
        {IBV_WR_RDMA_WRITE_WITH_IMM, 1, 300, 0},
        {IBV_WR_RDMA_READ, 5, 70000, 0},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 6, 8, 0},
        {IBV_WR_ATOMIC_CMP_AND_SWP, 2, 8, 0},
        {IBV_WR_SEND, 0, 0, 0},
    },
  datagram_steps[] = {
      {IBV_WR_SEND, 20, LARGEST_DATAGRAM, 0},
      {IBV_WR_SEND, 3, 17, 0},
      {IBV_WR_SEND, 0, 0, 0},
  };

static const char *name_of(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND                                                 ? "SEND"
           : opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? "WRITE"
           : opcode == IBV_WR_RDMA_READ                                          ? "READ"
                                                                                 : "ATOMIC";
}

int main(int count, char **arguments)
{
    struct end from = {0}, to = {0};
    struct ibv_ah *handle = NULL;
    enum mode mode;

    MUST(count == 4);
    mode = !strcmp(arguments[3], "plain")       ? PLAIN
           : !strcmp(arguments[3], "built")     ? BUILT
           : !strcmp(arguments[3], "datagrams") ? DATAGRAMS
                                                : SHARED;
    open_end(&from, arguments[1], mode);
    open_end(&to, arguments[2], mode);
    connect_end(&from, &to, mode);
    connect_end(&to, &from, mode);
    if (mode == DATAGRAMS) {
        struct ibv_ah_attr path = path_to(&to);

        MUST(handle = ibv_create_ah(from.domain, &path));
    }
    post_receives(&to, 40);
    for (const struct step *step = mode == DATAGRAMS ? datagram_steps : connected_steps; step->count; step++) {
        for (int i = 0; i < step->count; i++) {
            /* wr_set_inline_data fails on this provider. */
            if (mode == BUILT)
                post_built(&from, &to, step->opcode, step->bytes);
            else
                post_list(&from, &to, step->opcode, step->bytes, step->inlined, handle);
            complete(&from, 1);
        }
        printf("%s %u %d\n", name_of(step->opcode), step->bytes * (unsigned)step->count, step->count);
    }
    return 0;
}
