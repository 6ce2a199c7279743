/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of the functions of libibverbs that open devices, create and connect queue pairs, and create address handles.
 */
#include "platform/system.h"
#include "sources/verbs/exports.h"
#include "counting/verbs_lock.h"
#include "sources/verbs/abi.h"
#include "sources/verbs/devices.h"
#include "sources/verbs/hooked_devices.h"
#include "sources/verbs/routes.h"

/* -- devices ------------------------------------------------------------------------------------------------------- */

DEFINE(struct ibp_verbs_context *, ibv_open_device, void *device)
{
    static struct ibp_verbs_context *(*next)(void *);
    struct ibp_verbs_context *context;

    FIND_VERB(next, "ibv_open_device", NULL);
    context = next(device);
    if (context) ibp_verbs_hook_device(context);
    return context;
}

DEFINE(struct ibp_verbs_context *, ibv_import_device, int file)
{
    static struct ibp_verbs_context *(*next)(int);
    struct ibp_verbs_context *context;

    FIND_VERB(next, "ibv_import_device", NULL);
    context = next(file);
    if (context) ibp_verbs_hook_device(context);
    return context;
}

/* -- queue pairs --------------------------------------------------------------------------------------------------- */

DEFINE(struct ibp_verbs_qp *, ibv_create_qp, void *domain, void *wanted)
{
    static struct ibp_verbs_qp *(*next)(void *, void *);
    struct ibp_verbs_qp *qp;

    FIND_VERB(next, "ibv_create_qp", NULL);
    qp = next(domain, wanted);
    if (!qp) return NULL;
    ibp_verbs_see_device(qp->context);
    ibp_verbs_enter_qp(qp, NULL); /* ibv_create_qp creates queue pairs without wr_ functions */
    return qp;
}

/* Use the alternate path of a queue pair from now on. The verbs lock must be held. */
static void migrate(struct ibp_route *route)
{
    if (!route->has_alternate) return;
    route->has_alternate = false;
    ibp_route_redirect(route, &route->alternate);
}

/* Set the path of a queue pair from the attributes of ibv_modify_qp. A program sets the local port once. Later, the
 * program sets the destination once or several times. */
static void redirect(struct ibp_route *route, const struct ibp_verbs_qp_attributes *attributes, int fields)
{
    struct ibp_verbs_path path = attributes->path;

    ibp_verbs_lock();
    if (fields & IBP_VERBS_ATTR_PORT) route->path.port = attributes->port;
    if (fields & IBP_VERBS_ATTR_AV) {
        if (!path.port) path.port = route->path.port;
        ibp_route_redirect(route, &path);
    }
    if (fields & IBP_VERBS_ATTR_ALT_PATH) {
        route->alternate = attributes->alternate_path;
        route->has_alternate = true;
    }
    /* A program also sets the state "migrated" when it connects a queue pair for the first time. `migrate` does nothing
     * in this case, because there is no alternate path. */
    if (fields & IBP_VERBS_ATTR_MIGRATION && !(fields & IBP_VERBS_ATTR_AV) &&
        attributes->migration == IBP_VERBS_MIGRATED)
        migrate(route);
    ibp_verbs_unlock();
}

#define PATH_FIELDS (IBP_VERBS_ATTR_PORT | IBP_VERBS_ATTR_AV | IBP_VERBS_ATTR_ALT_PATH | IBP_VERBS_ATTR_MIGRATION)

DEFINE(int, ibv_modify_qp, struct ibp_verbs_qp *qp, struct ibp_verbs_qp_attributes *attributes, int fields)
{
    static int (*next)(struct ibp_verbs_qp *, struct ibp_verbs_qp_attributes *, int);
    int result;

    FIND_VERB(next, "ibv_modify_qp", ENOSYS);
    result = next(qp, attributes, fields);
    if (!result && fields & PATH_FIELDS) {
        struct ibp_route *route = ibp_verbs_route_of_qp(qp);

        if (route) redirect(route, attributes, fields);
    }
    return result;
}

/* The device may change to the alternate path without a call of the program. The device reports such a change as an
 * event, which the program reads by this function. */
DEFINE(int, ibv_get_async_event, struct ibp_verbs_context *context, struct ibp_verbs_event *event)
{
    static int (*next)(struct ibp_verbs_context *, struct ibp_verbs_event *);
    struct ibp_route *route;
    int result;

    FIND_VERB(next, "ibv_get_async_event", -1);
    result = next(context, event);
    if (result || event->event != IBP_VERBS_EVENT_MIGRATED) return result;
    route = ibp_route_find(&ibp_queue_pairs, event->qp);
    if (route) {
        ibp_verbs_lock();
        migrate(route);
        ibp_verbs_unlock();
    }
    return result;
}

DEFINE(int, ibv_destroy_qp, void *qp)
{
    static int (*next)(void *);

    FIND_VERB(next, "ibv_destroy_qp", ENOSYS);
    return ibp_verbs_destroy(next, &ibp_queue_pairs, qp);
}

/* -- address handles ----------------------------------------------------------------------------------------------- */

DEFINE(void *, ibv_create_ah, struct ibp_verbs_object *domain, struct ibp_verbs_path *path)
{
    static void *(*next)(struct ibp_verbs_object *, struct ibp_verbs_path *);
    void *handle;
    struct ibp_route *route;

    FIND_VERB(next, "ibv_create_ah", NULL);
    handle = next(domain, path);
    if (!handle || !ibp_verbs_device_find(domain->context)) return handle;
    ibp_verbs_lock();
    ibp_route_forget(&ibp_address_handles, handle);
    route = ibp_route_make(&ibp_address_handles, handle);
    if (route) {
        route->context = domain->context;
        ibp_route_redirect(route, path);
    }
    ibp_verbs_unlock();
    return handle;
}

DEFINE(int, ibv_destroy_ah, void *handle)
{
    static int (*next)(void *);

    FIND_VERB(next, "ibv_destroy_ah", ENOSYS);
    return ibp_verbs_destroy(next, &ibp_address_handles, handle);
}

/* libibverbs implements this function by internal calls of the two functions below. Internal calls cannot be hooked, so
 * ibprof makes the two calls itself. */
DEFINE(void *, ibv_create_ah_from_wc, struct ibp_verbs_object *domain, void *completion, void *header, uint8_t port)
{
    static int (*next)(struct ibp_verbs_context *, uint8_t, void *, void *, struct ibp_verbs_path *);
    struct ibp_verbs_path path;

    FIND_VERB(next, "ibv_init_ah_from_wc", NULL);
    memset(&path, 0, sizeof path);
    if (next(domain->context, port, completion, header, &path)) return NULL;
    return ibv_create_ah(domain, &path);
}
