/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The hooks read a work request before the post, because the program may change the request afterwards. The hooks count
 * the request after the provider has accepted it.
 */
#include "platform/system.h"
#include "sources/verbs/post.h"
#include "counting/process.h"
#include "sources/verbs/devices.h"
#include "sources/verbs/routes.h"
#include "sources/verbs/tally.h"

#include <errno.h>

enum { NOTHING = IBP_OPCODE_NOTHING };

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

/* Return the route of a work request. Datagrams have the route of the request's address handle; other requests have
 * `route`, the queue pair's route. */
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
    struct ibp_verbs_send *first_refused = requests; /* not set by some providers if they refuse all requests */
    struct ibp_tally tally;
    int result;

    tally.capacity = 0;
    ibp_tally_start(&tally);
    tally_list(&tally, route, requests, false);
    result = route->provider->post_send(qp, requests, &first_refused);
    if (result) {
        tally_list(&tally, route, first_refused, true);
        *refused = first_refused;
    }
    ibp_tally_count(&tally);
    ibp_tally_free(&tally);
    return result;
}

/* Post to a queue pair whose creation ibprof did not see. */
static __attribute__((noinline)) int post_unknown(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests,
                                                  struct ibp_verbs_send **refused)
{
    const struct ibp_verbs_device *device;

    if (ibp_verbs_route(qp)) return ibp_verbs_post(qp, requests, refused);
    device = ibp_verbs_device_find(qp->context);
    return device ? device->provider->post_send(qp, requests, refused) : ENOMEM;
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
    struct ibp_route *counted = route_of(route, requests);
    result = route->provider->post_send(qp, requests, refused);
    if (IBP_LIKELY(!result && opcode != NOTHING)) ibp_route_count(counted, opcode, bytes, 1);
    return result;
}

int ibp_verbs_post_first(struct ibp_verbs_qp *qp, struct ibp_verbs_send *requests, struct ibp_verbs_send **refused)
{
    (void)ibp_process_open();
    __atomic_store_n(&qp->context->post_send, ibp_verbs_post, __ATOMIC_RELAXED);
    return ibp_verbs_post(qp, requests, refused);
}
