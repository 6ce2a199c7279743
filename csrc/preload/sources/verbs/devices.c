/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/devices.h"
#include "counting/verbs_lock.h"

#define DEVICES_MAX 64

static struct ibp_verbs_device devices[DEVICES_MAX];
static unsigned device_count;

bool ibp_verbs_attached(void)
{
    return __atomic_load_n(&device_count, __ATOMIC_RELAXED);
}

struct ibp_verbs_device *ibp_verbs_device_find(const struct ibp_verbs_context *context)
{
    const unsigned count = __atomic_load_n(&device_count, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < count; i++)
        if (devices[i].context == context) return &devices[i];
    return NULL;
}

struct ibp_verbs_device *ibp_verbs_device_enter(const struct ibp_verbs_context *context,
                                                const struct ibp_verbs_provider *provider)
{
    struct ibp_verbs_device *device = ibp_verbs_device_find(context);

    if (device) {
        device->provider = provider;
    } else if (device_count < DEVICES_MAX) {
        device = &devices[device_count];
        device->context = context;
        device->provider = provider;
        __atomic_store_n(&device_count, device_count + 1, __ATOMIC_RELEASE);
    }
    return device;
}

struct ibp_route *ibp_verbs_route(struct ibp_verbs_qp *qp)
{
    struct ibp_route *route = ibp_route_find(&ibp_queue_pairs, qp);
    const struct ibp_verbs_device *device = route ? NULL : ibp_verbs_device_find(qp->context);

    if (!device) return route;
    ibp_verbs_lock();
    route = ibp_route_make(&ibp_queue_pairs, qp);
    if (route) {
        route->context = qp->context;
        route->provider = device->provider;
        route->datagram = qp->type == IBP_VERBS_TYPE_UD || qp->type == IBP_VERBS_TYPE_DRIVER;
    }
    ibp_verbs_unlock();
    return route;
}
