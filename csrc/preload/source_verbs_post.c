/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Posting: the two ways in which programs give work requests to a queue pair. What a request moves is read before it is
 * posted, because from then on it is the program's again; it is counted when the provider has accepted it.
 */
#include "system.h"
#include "source_verbs.h"
#include "lifecycle.h"
#include "verbs_lock.h"
#include "verbs_tally.h"

#include <errno.h>

/* -- lists of requests: ibv_post_send ------------------------------------------------------------------------------------- */

enum { NOTHING = IBP_OPCODES }; /* stays within the host, or moves no bytes */

static const uint8_t opcode_of[IBP_VERBS_REQUESTS] = {
    [IBP_VERBS_RDMA_WRITE] = IBP_OPCODE_WRITE,
    [IBP_VERBS_RDMA_WRITE_WITH_IMM] = IBP_OPCODE_WRITE,
    [IBP_VERBS_SEND] = IBP_OPCODE_SEND,
    [IBP_VERBS_SEND_WITH_IMM] = IBP_OPCODE_SEND,
    [IBP_VERBS_RDMA_READ] = IBP_OPCODE_READ,
    [IBP_VERBS_ATOMIC_CMP_AND_SWP] = IBP_OPCODE_ATOMIC,
    [IBP_VERBS_ATOMIC_FETCH_AND_ADD] = IBP_OPCODE_ATOMIC,
    [IBP_VERBS_LOCAL_INV] = NOTHING,
    [IBP_VERBS_BIND_MW] = NOTHING,
    [IBP_VERBS_SEND_WITH_INV] = IBP_OPCODE_SEND,
    [IBP_VERBS_TSO] = IBP_OPCODE_SEND,
    [IBP_VERBS_DRIVER1] = NOTHING,
    [12] = NOTHING,
    [13] = NOTHING,
    [14] = NOTHING,
    [IBP_VERBS_ATOMIC_WRITE] = IBP_OPCODE_WRITE,
};

static inline unsigned classify(uint32_t request)
{
    return IBP_LIKELY(request < IBP_VERBS_REQUESTS) ? opcode_of[request] : NOTHING;
}

static inline uint64_t add_up(const struct ibp_verbs_send *request)
{
    uint64_t bytes = 0;

    for (int i = 0; i < request->piece_count; i++) bytes += request->pieces[i].length;
    return bytes;
}

/* The way of a request: on a datagram queue pair it is that of the request's address handle. */
static inline struct ibp_route *route_of(struct ibp_route *route, const struct ibp_verbs_send *request)
{
    struct ibp_route *named;

    if (IBP_LIKELY(!route->datagram)) return route;
    named = ibp_route_find(&ibp_address_handles, request->address_handle);
    return named ? named : route;
}

static void tally_list(struct ibp_tally *tally, struct ibp_route *route, const struct ibp_verbs_send *request,
                       bool away)
{
    for (; request; request = request->next) {
        const unsigned opcode = classify(request->request);
        const uint64_t bytes = add_up(request);

        if (opcode != NOTHING)
            ibp_tally_add(tally, route_of(route, request), opcode, away ? -bytes : bytes, away ? -UINT64_C(1) : 1);
    }
}

static __attribute__((noinline)) int post_list(struct ibp_route *route, struct ibp_verbs_qp *qp,
                                               struct ibp_verbs_send *requests, struct ibp_verbs_send **refused)
{
    struct ibp_verbs_send *first_refused = requests; /* some providers name none when they refuse all */
    struct ibp_tally tally;
    int result;

    tally.capacity = 0;
    ibp_tally_start(&tally);
    tally_list(&tally, route, requests, false);
    result = route->post_send(qp, requests, &first_refused);
    if (result) {
        tally_list(&tally, route, first_refused, true);
        *refused = first_refused;
    }
    ibp_tally_count(&tally);
    ibp_tally_free(&tally);
    return result;
}

/* A queue pair that nobody saw being made. */
static __attribute__((noinline)) int post_unknown(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests,
                                                  struct ibp_verbs_send **refused)
{
    ibp_verbs_post_send *original;

    if (ibp_verbs_route(qp)) return ibp_verbs_post(qp, requests, refused);
    original = ibp_verbs_original_post(qp->context);
    return original ? original(qp, requests, refused) : ENOMEM;
}

int ibp_verbs_post(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused)
{
    struct ibp_route *route = ibp_route_find(&ibp_queue_pairs, qp);
    unsigned opcode;
    uint64_t bytes;
    int result;

    if (IBP_UNLIKELY(!route)) return post_unknown(qp, requests, refused);
    if (IBP_UNLIKELY(!requests || requests->next)) return post_list(route, qp, requests, refused);
    opcode = classify(requests->request);
    bytes = add_up(requests);
    struct ibp_route *way = route_of(route, requests);
    result = route->post_send(qp, requests, refused);
    if (IBP_LIKELY(!result && opcode != NOTHING)) ibp_route_count(way, opcode, bytes, 1);
    return result;
}

int ibp_verbs_post_first(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused)
{
    (void)ibp_record_process();
    __atomic_store_n(&qp->context->post_send, ibp_verbs_post, __ATOMIC_RELAXED);
    return ibp_verbs_post(qp, requests, refused);
}

/* -- requests that are built piece by piece: the wr_ functions -------------------------------------------------------------- */

/* Between start and complete one thread alone builds; the provider has its queue pair locked, or the program has it. */
struct ibp_builder {
    struct ibp_verbs_builders original;
    void (*original_atomic_write)(struct ibp_verbs_qp_ex *, uint32_t, uint64_t, const void *);
    struct ibp_route *queue_pair;
    struct ibp_route *route; /* of the request being built */
    unsigned opcode;         /* its own; NOTHING where there is none */
    uint64_t bytes;
    struct ibp_tally tally;
};

/* The queue pair that this thread is building for, so that it is looked up once a batch. */
static IBP_THREAD_LOCAL struct {
    const struct ibp_verbs_qp_ex *qp;
    struct ibp_builder *builder;
} building;

static inline struct ibp_builder *builder_of(struct ibp_verbs_qp_ex *qp)
{
    if (IBP_LIKELY(building.qp == qp)) return building.builder;
    return ibp_route_find(&ibp_queue_pairs, qp)->builder;
}

static inline void end_request(struct ibp_builder *builder)
{
    if (builder->opcode != NOTHING) ibp_tally_add(&builder->tally, builder->route, builder->opcode, builder->bytes, 1);
    builder->opcode = NOTHING;
}

static inline void begin_request(struct ibp_builder *builder, unsigned opcode)
{
    end_request(builder);
    builder->opcode = opcode;
    builder->route = builder->queue_pair;
    builder->bytes = 0;
}

static void hook_start(struct ibp_verbs_qp_ex *qp)
{
    struct ibp_builder *builder = ibp_route_find(&ibp_queue_pairs, qp)->builder;

    if (IBP_UNLIKELY(!ibp_is_recorded())) (void)ibp_record_process();
    building.qp = qp;
    building.builder = builder;
    builder->original.start(qp);
    ibp_tally_start(&builder->tally);
    builder->opcode = NOTHING;
}

static __attribute__((noinline)) int complete_several(struct ibp_verbs_qp_ex *qp, struct ibp_builder *builder)
{
    struct ibp_tally *tally = &builder->tally;
    struct ibp_tally taken;
    int result;

    end_request(builder);
    taken = *tally;
    if (taken.entries == tally->first) taken.entries = taken.first;
    tally->capacity = 0; /* the next batch begins with its own first entries */
    result = builder->original.complete(qp);
    if (!result) ibp_tally_count(&taken);
    ibp_tally_free(&taken);
    return result;
}

static int hook_complete(struct ibp_verbs_qp_ex *qp)
{
    struct ibp_builder *builder = builder_of(qp);
    struct ibp_route *route = builder->route;
    const unsigned opcode = builder->opcode;
    const uint64_t bytes = builder->bytes;
    int result;

    /* When the provider returns, another thread may have the queue pair: what was built is taken along. */
    building.qp = NULL;
    if (IBP_UNLIKELY(builder->tally.count)) return complete_several(qp, builder);
    builder->opcode = NOTHING;
    result = builder->original.complete(qp);
    if (IBP_LIKELY(!result && opcode != NOTHING)) ibp_route_count(route, opcode, bytes, 1);
    return result;
}

static void hook_abort(struct ibp_verbs_qp_ex *qp)
{
    struct ibp_builder *builder = builder_of(qp);

    building.qp = NULL;
    builder->opcode = NOTHING;
    ibp_tally_start(&builder->tally);
    builder->original.abort(qp);
}

/* Hooks of what begins a request. */
#define BEGIN(name, request, parameters, ...)                                                                          \
    static void hook_##name parameters                                                                                 \
    {                                                                                                                  \
        struct ibp_builder *builder = builder_of(qp);                                                                  \
                                                                                                                       \
        begin_request(builder, request);                                                                               \
        builder->original.name(__VA_ARGS__);                                                                           \
    }
#define QP struct ibp_verbs_qp_ex *qp
BEGIN(atomic_cmp_swp, IBP_OPCODE_ATOMIC, (QP, uint32_t key, uint64_t address, uint64_t compare, uint64_t swap), qp, key,
      address, compare, swap)
BEGIN(atomic_fetch_add, IBP_OPCODE_ATOMIC, (QP, uint32_t key, uint64_t address, uint64_t add), qp, key, address, add)
BEGIN(bind_mw, NOTHING, (QP, void *window, uint32_t key, const void *information), qp, window, key, information)
BEGIN(local_inv, NOTHING, (QP, uint32_t key), qp, key)
BEGIN(rdma_read, IBP_OPCODE_READ, (QP, uint32_t key, uint64_t address), qp, key, address)
BEGIN(rdma_write, IBP_OPCODE_WRITE, (QP, uint32_t key, uint64_t address), qp, key, address)
BEGIN(rdma_write_imm, IBP_OPCODE_WRITE, (QP, uint32_t key, uint64_t address, uint32_t immediate), qp, key, address,
      immediate)
BEGIN(send, IBP_OPCODE_SEND, (QP), qp)
BEGIN(send_imm, IBP_OPCODE_SEND, (QP, uint32_t immediate), qp, immediate)
BEGIN(send_inv, IBP_OPCODE_SEND, (QP, uint32_t key), qp, key)
BEGIN(send_tso, IBP_OPCODE_SEND, (QP, void *header, uint16_t bytes, uint16_t segment), qp, header, bytes, segment)

static void hook_atomic_write(QP, uint32_t key, uint64_t address, const void *value)
{
    struct ibp_builder *builder = builder_of(qp);

    begin_request(builder, IBP_OPCODE_WRITE);
    builder->bytes = sizeof(uint64_t);
    builder->original_atomic_write(qp, key, address, value);
}

/* Hooks of what the request that was begun last consists of. */
static void hook_set_ud_addr(QP, void *address_handle, uint32_t number, uint32_t key)
{
    struct ibp_builder *builder = builder_of(qp);
    struct ibp_route *named = ibp_route_find(&ibp_address_handles, address_handle);

    if (named) builder->route = named;
    builder->original.set_ud_addr(qp, address_handle, number, key);
}

static void hook_set_inline_data(QP, void *data, size_t bytes)
{
    struct ibp_builder *builder = builder_of(qp);

    builder->bytes += bytes;
    builder->original.set_inline_data(qp, data, bytes);
}

static void hook_set_inline_data_list(QP, size_t count, const struct ibp_verbs_buffer *buffers)
{
    struct ibp_builder *builder = builder_of(qp);

    for (size_t i = 0; i < count; i++) builder->bytes += buffers[i].length;
    builder->original.set_inline_data_list(qp, count, buffers);
}

static void hook_set_sge(QP, uint32_t key, uint64_t address, uint32_t bytes)
{
    struct ibp_builder *builder = builder_of(qp);

    builder->bytes += bytes;
    builder->original.set_sge(qp, key, address, bytes);
}

static void hook_set_sge_list(QP, size_t count, const struct ibp_verbs_sge *pieces)
{
    struct ibp_builder *builder = builder_of(qp);

    for (size_t i = 0; i < count; i++) builder->bytes += pieces[i].length;
    builder->original.set_sge_list(qp, count, pieces);
}

void ibp_verbs_hook_builders(struct ibp_verbs_qp *qp, uint64_t operations)
{
    struct ibp_verbs_qp_ex *extended = (struct ibp_verbs_qp_ex *)qp; /* begins with it */
    struct ibp_verbs_builders *builders = &extended->builders;
    struct ibp_route *route = ibp_verbs_route(qp);
    struct ibp_builder *builder;

    if (!route || !builders->start || !builders->complete || !builders->abort || builders->start == hook_start) return;
    ibp_verbs_lock();
    builder = ibp_pool_take(sizeof *builder);
    ibp_verbs_unlock();
    if (!builder) return;
    builder->original = *builders;
    builder->queue_pair = route;
    builder->opcode = NOTHING;
    ibp_tally_start(&builder->tally);
    route->builder = builder;
#define HOOK(name)                                                                                                     \
    if (builders->name) builders->name = hook_##name
    HOOK(atomic_cmp_swp);
    HOOK(atomic_fetch_add);
    HOOK(bind_mw);
    HOOK(local_inv);
    HOOK(rdma_read);
    HOOK(rdma_write);
    HOOK(rdma_write_imm);
    HOOK(send);
    HOOK(send_imm);
    HOOK(send_inv);
    HOOK(send_tso);
    HOOK(set_ud_addr);
    HOOK(set_inline_data);
    HOOK(set_inline_data_list);
    HOOK(set_sge);
    HOOK(set_sge_list);
    HOOK(start);
    HOOK(complete);
    HOOK(abort);
    if (operations & IBP_VERBS_WITH_ATOMIC_WRITE && extended->atomic_write) {
        builder->original_atomic_write = extended->atomic_write;
        extended->atomic_write = hook_atomic_write;
    }
}
