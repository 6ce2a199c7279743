/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/hooked_devices.h"
#include "counting/transfers.h"
#include "counting/verbs_lock.h"
#include "recording/process_state.h"
#include "sources/verbs/build.h"
#include "sources/verbs/devices.h"
#include "sources/verbs/post.h"

static void forget(struct ibp_route_table **which, const void *address)
{
    if (!ibp_route_find(which, address)) return;
    ibp_verbs_lock();
    ibp_route_forget(which, address);
    ibp_verbs_unlock();
}

/* Forget the route before the object is destroyed, because the object's address may be reused immediately. If the
 * destruction fails, restore the route. */
int ibp_verbs_destroy(int (*next)(void *), struct ibp_route_table **which, void *object)
{
    const struct ibp_route *route = ibp_route_find(which, object);
    struct ibp_route kept, *again;
    int result;

    if (!route) return next(object);
    kept = *route;
    forget(which, object);
    result = next(object);
    if (!result) return 0;
    ibp_verbs_lock();
    again = ibp_route_make(which, object);
    if (again) *again = kept;
    ibp_verbs_unlock();
    return result;
}

void ibp_verbs_enter_qp(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted)
{
    forget(&ibp_queue_pairs, qp);
    if (ibp_verbs_route(qp) && wanted && wanted->fields & IBP_VERBS_INIT_SEND_OPS && wanted->send_operations)
        ibp_verbs_hook_builders(qp, wanted->send_operations);
}

static struct ibp_verbs_qp *hook_create_qp_ex(struct ibp_verbs_context *context, void *wanted)
{
    struct ibp_verbs_qp *qp = ibp_verbs_device_find(context)->create_qp_ex(context, wanted);

    if (qp) ibp_verbs_enter_qp(qp, wanted);
    return qp;
}

static struct ibp_verbs_extended *extended_of(struct ibp_verbs_context *context)
{
    struct ibp_verbs_extended *extended;

    if ((uintptr_t)context->compatibility != UINTPTR_MAX) return NULL;
    extended = (struct ibp_verbs_extended *)((char *)context - offsetof(struct ibp_verbs_extended, context));
    return extended->bytes >= sizeof *extended ? extended : NULL;
}

void ibp_verbs_hook_device(struct ibp_verbs_context *context)
{
    const struct ibp_verbs_provider functions = {.post_send = context->post_send}, *provider;
    struct ibp_verbs_extended *extended;
    struct ibp_verbs_device *device;

    if (ibp_process_state_open() || !context->post_send || context->post_send == ibp_verbs_post ||
        context->post_send == ibp_verbs_post_first)
        return;
    ibp_verbs_lock();
    provider = ibp_verbs_provider_share(&functions);
    device = provider ? ibp_verbs_device_enter(context, provider) : NULL;
    if (device) {
        context->post_send = ibp_verbs_post_first;
        extended = extended_of(context);
        if (extended && extended->create_qp_ex) {
            device->create_qp_ex = extended->create_qp_ex;
            extended->create_qp_ex = hook_create_qp_ex;
        }
    }
    ibp_verbs_unlock();
}

void ibp_verbs_see_device(struct ibp_verbs_context *context)
{
    if (!ibp_verbs_device_find(context)) ibp_verbs_hook_device(context);
}

void ibp_verbs_note_direct(struct ibp_verbs_qp *qp)
{
    struct ibp_route *route = qp ? ibp_verbs_route_of_qp(qp) : NULL;

    if (route && route->direct) return;
    if (route) route->direct = true;
    ibp_transfers_note_unseen(1);
}

struct ibp_route *ibp_verbs_route_of_qp(struct ibp_verbs_qp *qp)
{
    ibp_verbs_see_device(qp->context);
    return ibp_verbs_route(qp);
}
