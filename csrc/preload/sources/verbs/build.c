/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Usually, a program makes four calls for each work request. ibprof sums the requests that a thread builds, and counts
 * the sums when the provider has accepted the requests. The hooks end with tail calls of the provider's functions.
 */
#include "platform/system.h"
#include "sources/verbs/build.h"
#include "counting/process.h"
#include "counting/verbs_lock.h"
#include "sources/verbs/devices.h"
#include "sources/verbs/routes.h"
#include "sources/verbs/tally.h"

#include <string.h>

#define NOTHING IBP_OPCODE_NOTHING
#define QP struct ibp_verbs_qp_ex *qp

/* The requests that a thread has built since wr_start. `bytes`, `messages`: totals of the newest requests, which all
 * have `route` and `opcode`. `tally`: totals of all earlier requests. */
struct ibp_verbs_build {
    /* The queue pair; NULL outside of wr_start and wr_complete. */
    const struct ibp_verbs_qp_ex *qp;
    const struct ibp_verbs_builders *original;
    struct ibp_route *queue_pair, *route;
    uint64_t bytes;
    /* `opcode` of the newest requests; NOTHING if all requests are in the tally. */
    uint32_t opcode;
    uint32_t messages;
    struct ibp_tally tally;
};

/* The requests that this thread builds. Other threads cannot build on the queue pair at the same time, because the
 * provider or the program locks the queue pair. */
static IBP_THREAD_LOCAL struct ibp_verbs_build building;

/* -- runs ---------------------------------------------------------------------------------------------------------- */

static void end_run(void)
{
    if (building.opcode != NOTHING)
        ibp_tally_add(&building.tally, building.route, building.opcode, building.bytes, building.messages);
    building.opcode = NOTHING;
    building.route = building.queue_pair;
    building.bytes = 0;
}

static __attribute__((noinline)) void begin_run(unsigned opcode)
{
    end_run();
    building.opcode = opcode;
    building.messages = 1;
}

static inline void begin_request(unsigned opcode)
{
    if (IBP_LIKELY(building.opcode == NOTHING)) {
        building.opcode = opcode;
        building.messages = 1;
    } else if (building.opcode == opcode && !building.queue_pair->datagram) {
        building.messages++;
    } else {
        begin_run(opcode);
    }
}

static void empty(void)
{
    ibp_tally_free(&building.tally);
    building.tally.count = 0;
}

static __attribute__((noinline)) void complete_several(int result)
{
    end_run();
    if (!result) ibp_tally_count(&building.tally);
    empty();
}

/* -- queue pairs --------------------------------------------------------------------------------------------------- */

static void copy_build(struct ibp_verbs_build *to, const struct ibp_verbs_build *from)
{
    *to = *from;
    if (from->tally.entries == from->tally.first) to->tally.entries = to->tally.first;
}

/* Before this thread builds on another queue pair: keep the unfinished requests in the route of their queue pair. If
 * this queue pair no longer exists, drop the requests; if memory is exhausted, count the requests as accepted. */
static void park(void)
{
    struct ibp_route *route = building.queue_pair;

    if (ibp_route_find(&ibp_queue_pairs, building.qp) != route) return empty();
    ibp_verbs_lock();
    if (!route->parked) route->parked = ibp_pool_take(sizeof *route->parked);
    ibp_verbs_unlock();
    if (!route->parked) return complete_several(0);
    copy_build(route->parked, &building);
    building.tally.capacity = 0;
    building.tally.count = 0;
}

static inline void start_build(const struct ibp_verbs_qp_ex *qp, struct ibp_route *route)
{
    building.qp = qp;
    building.original = &route->provider->builders;
    building.queue_pair = route;
    building.route = route;
    building.bytes = 0;
    building.opcode = NOTHING;
}

/* Start building although this thread has unfinished requests on this or another queue pair. */
static __attribute__((noinline)) void start_again(QP, struct ibp_route *route)
{
    if (building.qp == qp)
        empty();
    else if (building.qp)
        park();
    if (route->parked) route->parked->qp = NULL;
    ibp_tally_start(&building.tally);
    start_build(qp, route);
    building.original->start(qp);
}

static __attribute__((noinline)) void resume(const struct ibp_verbs_qp_ex *qp)
{
    struct ibp_route *route = ibp_route_find(&ibp_queue_pairs, qp);

    if (building.qp) park();
    if (route->parked && route->parked->qp == qp) {
        copy_build(&building, route->parked);
        route->parked->qp = NULL;
    } else {
        ibp_tally_start(&building.tally);
        start_build(qp, route);
    }
}

#define RESUME(qp)                                                                                                     \
    if (IBP_UNLIKELY(building.qp != (qp))) resume(qp)

static void hook_start(QP)
{
    struct ibp_route *route = ibp_route_find(&ibp_queue_pairs, qp);

    if (IBP_UNLIKELY(building.qp || route->parked || !building.tally.capacity)) {
        start_again(qp, route);
        return;
    }
    start_build(qp, route);
    building.original->start(qp);
}

/* At the first post: open the recording, so that hardware counters are read before the post. */
static void hook_first_start(QP)
{
    (void)ibp_process_open();
    qp->builders.start = hook_start;
    hook_start(qp);
}

static int hook_complete(QP)
{
    int result;

    RESUME(qp);
    result = building.original->complete(qp);
    building.qp = NULL;
    if (IBP_UNLIKELY(building.tally.count))
        complete_several(result);
    else if (IBP_LIKELY(!result && building.opcode != NOTHING))
        ibp_route_count(building.route, building.opcode, building.bytes, building.messages);
    return result;
}

static void hook_abort(QP)
{
    RESUME(qp);
    building.qp = NULL;
    empty();
    building.original->abort(qp);
}

/* -- functions that begin a request -------------------------------------------------------------------------------- */

#define BEGIN(name, request, parameters, ...)                                                                          \
    static void hook_##name parameters                                                                                 \
    {                                                                                                                  \
        RESUME(qp);                                                                                                    \
        begin_request(request);                                                                                        \
        building.original->name(__VA_ARGS__);                                                                          \
    }
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
    RESUME(qp);
    begin_request(IBP_OPCODE_WRITE);
    building.bytes += sizeof(uint64_t);
    building.queue_pair->provider->atomic_write(qp, key, address, value);
}

/* -- functions that add data to a request -------------------------------------------------------------------------- */

static inline void set_route(const void *address_handle)
{
    struct ibp_route *named = ibp_route_find(&ibp_address_handles, address_handle);

    if (IBP_LIKELY(named)) building.route = named;
}

static void hook_set_ud_addr(QP, void *address_handle, uint32_t number, uint32_t key)
{
    RESUME(qp);
    set_route(address_handle);
    building.original->set_ud_addr(qp, address_handle, number, key);
}

static void hook_set_inline_data(QP, void *data, size_t bytes)
{
    RESUME(qp);
    building.bytes += bytes;
    building.original->set_inline_data(qp, data, bytes);
}

static void hook_set_inline_data_list(QP, size_t count, const struct ibp_verbs_buffer *buffers)
{
    RESUME(qp);
    for (size_t i = 0; i < count; i++) building.bytes += buffers[i].length;
    building.original->set_inline_data_list(qp, count, buffers);
}

static void hook_set_sge(QP, uint32_t key, uint64_t address, uint32_t bytes)
{
    RESUME(qp);
    building.bytes += bytes;
    building.original->set_sge(qp, key, address, bytes);
}

static void hook_set_sge_list(QP, size_t count, const struct ibp_verbs_sge *pieces)
{
    RESUME(qp);
    for (size_t i = 0; i < count; i++) building.bytes += pieces[i].length;
    building.original->set_sge_list(qp, count, pieces);
}

/* The functions of mlx5's dynamic connections, where each request has an address handle. The arguments of these
 * functions do not show the queue pair, so the hooks use the queue pair on which this thread builds. */
static struct ibp_mlx5_builders mlx5;

static void set_dc_route(const void *address_handle)
{
    if (IBP_UNLIKELY(!building.qp)) return;
    if (IBP_UNLIKELY(building.queue_pair->direct)) ibp_route_note_seen(building.queue_pair);
    set_route(address_handle);
}

static void hook_set_dc_addr(struct ibp_mlx5_qp_ex *qp, void *address_handle, uint32_t number, uint64_t key)
{
    set_dc_route(address_handle);
    mlx5.set_dc_addr(qp, address_handle, number, key);
}

static void hook_set_dc_addr_stream(struct ibp_mlx5_qp_ex *qp, void *address_handle, uint32_t number, uint64_t key,
                                    uint16_t stream)
{
    set_dc_route(address_handle);
    mlx5.set_dc_addr_stream(qp, address_handle, number, key, stream);
}

/* -- hooking in ---------------------------------------------------------------------------------------------------- */

void ibp_verbs_hook_builders(struct ibp_verbs_qp *qp, uint64_t operations)
{
    struct ibp_verbs_qp_ex *extended = (struct ibp_verbs_qp_ex *)qp; /* the first member is struct ibv_qp */
    struct ibp_verbs_builders *builders = &extended->builders;
    struct ibp_route *route = ibp_verbs_route(qp);
    struct ibp_verbs_provider functions;
    const struct ibp_verbs_provider *provider;

    if (!route || !builders->start || !builders->complete || !builders->abort || builders->start == hook_start ||
        builders->start == hook_first_start)
        return;
    functions = *route->provider;
    functions.builders = *builders;
    if (operations & IBP_VERBS_WITH_ATOMIC_WRITE) functions.atomic_write = extended->atomic_write;
    ibp_verbs_lock();
    provider = ibp_verbs_provider_share(&functions);
    ibp_verbs_unlock();
    if (!provider) return;
    route->provider = provider;
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
    HOOK(complete);
    HOOK(abort);
    builders->start = hook_first_start;
    if (functions.atomic_write) extended->atomic_write = hook_atomic_write;
}

/* The driver uses the same functions for all queue pairs. If a queue pair has a different function, ibprof does not
 * hook this function. */
#define HOOK_MLX5(name)                                                                                                \
    do {                                                                                                               \
        if (!mlx5.name) mlx5.name = builders->name;                                                                    \
        if (builders->name && builders->name == mlx5.name) builders->name = hook_##name;                               \
    } while (0)

void ibp_mlx5_hook_builders(struct ibp_mlx5_qp_ex *qp)
{
    struct ibp_mlx5_builders *builders = &qp->builders;

    if (builders->set_dc_addr == hook_set_dc_addr) return;
    ibp_verbs_lock();
    HOOK_MLX5(set_dc_addr);
    HOOK_MLX5(set_dc_addr_stream);
    ibp_verbs_unlock();
}
