/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The functions of libibverbs that precede a post: opening devices, making and connecting queue pairs, making address
 * handles.
 *
 * They are exported under their own names without a version, which binds to every caller, including libraries loaded
 * later with RTLD_LOCAL.
 */
#include "platform/system.h"
#include "counting/transfers.h"
#include "counting/verbs_lock.h"
#include "recording/process_state.h"
#include "sources/verbs/abi.h"
#include "sources/verbs/build.h"
#include "sources/verbs/devices.h"
#include "sources/verbs/libraries.h"
#include "sources/verbs/post.h"
#include "sources/verbs/routes.h"

#include <errno.h>
#include <string.h>

/* Fills the function pointer `next`, once, or makes the function return `failure`. */
#define FIND_REAL(next, library, name, failure)                                                                        \
    do {                                                                                                               \
        if (IBP_UNLIKELY(!(next))) {                                                                                   \
            void *found_ = ibp_verbs_real_in(library, name);                                                           \
                                                                                                                       \
            if (!found_) {                                                                                             \
                errno = ENOSYS;                                                                                        \
                return failure;                                                                                        \
            }                                                                                                          \
            memcpy(&(next), &found_, sizeof(next));                                                                    \
        }                                                                                                              \
    } while (0)
#define FIND_VERB(next, name, failure) FIND_REAL(next, IBP_VERBS_LIBRARY, name, failure)

/* Declares and begins an exported function. */
#define DEFINE(type, name, ...)                                                                                        \
    IBP_EXPORT type name(__VA_ARGS__);                                                                                 \
    IBP_EXPORT type name(__VA_ARGS__)

/* -- devices ------------------------------------------------------------------------------------------------------- */

static void forget(struct ibp_route_table **which, const void *address)
{
    if (!ibp_route_find(which, address)) return;
    ibp_verbs_lock();
    ibp_route_forget(which, address);
    ibp_verbs_unlock();
}

/* Destroy an object that has a route. The route is forgotten first, because the address may be reused as soon as the
 * object is gone; when the destruction fails, the route is restored. */
static int destroy(int (*next)(void *), struct ibp_route_table **which, void *object)
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

/* Make the route of a new queue pair, in place of a former one at its address. */
static void remember_new(struct ibp_verbs_qp *qp, const struct ibp_verbs_qp_init *wanted)
{
    forget(&ibp_queue_pairs, qp);
    if (ibp_verbs_route(qp) && wanted && wanted->fields & IBP_VERBS_INIT_SEND_OPS && wanted->send_operations)
        ibp_verbs_hook_builders(qp, wanted->send_operations);
}

static struct ibp_verbs_qp *hook_create_qp_ex(struct ibp_verbs_context *context, void *wanted)
{
    struct ibp_verbs_qp *qp = ibp_verbs_device_find(context)->create_qp_ex(context, wanted);

    if (qp) remember_new(qp, wanted);
    return qp;
}

static struct ibp_verbs_extended *extended_of(struct ibp_verbs_context *context)
{
    struct ibp_verbs_extended *extended;

    if ((uintptr_t)context->compatibility != UINTPTR_MAX) return NULL;
    extended = (struct ibp_verbs_extended *)((char *)context - offsetof(struct ibp_verbs_extended, context));
    return extended->bytes >= sizeof *extended ? extended : NULL;
}

/* Hook a device that was opened. A second call does nothing. */
static void attach(struct ibp_verbs_context *context)
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

DEFINE(struct ibp_verbs_context *, ibv_open_device, void *device)
{
    static struct ibp_verbs_context *(*next)(void *);
    struct ibp_verbs_context *context;

    FIND_VERB(next, "ibv_open_device", NULL);
    context = next(device);
    if (context) attach(context);
    return context;
}

DEFINE(struct ibp_verbs_context *, ibv_import_device, int file)
{
    static struct ibp_verbs_context *(*next)(int);
    struct ibp_verbs_context *context;

    FIND_VERB(next, "ibv_import_device", NULL);
    context = next(file);
    if (context) attach(context);
    return context;
}

/* UCX opens mlx5's devices by this function, and its transports that post by verbs use the result. */
DEFINE(struct ibp_verbs_context *, mlx5dv_open_device, void *device, void *attributes)
{
    static struct ibp_verbs_context *(*next)(void *, void *);
    struct ibp_verbs_context *context;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_open_device", NULL);
    context = next(device, attributes);
    if (context) attach(context);
    return context;
}

/* Hook a device that was opened by an unknown function. */
static void see_device(struct ibp_verbs_context *context)
{
    if (!ibp_verbs_device_find(context)) attach(context);
}

static struct ibp_route *find_route(struct ibp_verbs_qp *qp)
{
    see_device(qp->context);
    return ibp_verbs_route(qp);
}

/* -- queue pairs --------------------------------------------------------------------------------------------------- */

DEFINE(struct ibp_verbs_qp *, ibv_create_qp, void *domain, void *wanted)
{
    static struct ibp_verbs_qp *(*next)(void *, void *);
    struct ibp_verbs_qp *qp;

    FIND_VERB(next, "ibv_create_qp", NULL);
    qp = next(domain, wanted);
    if (!qp) return NULL;
    see_device(qp->context);
    remember_new(qp, NULL); /* its attributes end before the flags of the wr_ functions */
    return qp;
}

/* Let the alternate path take over. The lock of verbs must be held. */
static void migrate(struct ibp_route *route)
{
    if (!route->has_alternate) return;
    route->has_alternate = false;
    ibp_route_redirect(route, &route->alternate);
}

/* Set where a queue pair leads, which is given on connection, perhaps repeatedly. Its own port is given before,
 * once. */
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
    /* Connecting sets "migrated" too: without a former path nothing changes. */
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
        struct ibp_route *route = find_route(qp);

        if (route) redirect(route, attributes, fields);
    }
    return result;
}

/* The device may migrate by itself, and reports it by an event, which the program fetches. */
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
    return destroy(next, &ibp_queue_pairs, qp);
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
    return destroy(next, &ibp_address_handles, handle);
}

/* libibverbs implements this by two of its own functions, whose calls would not be seen. */
DEFINE(void *, ibv_create_ah_from_wc, struct ibp_verbs_object *domain, void *completion, void *header, uint8_t port)
{
    static int (*next)(struct ibp_verbs_context *, uint8_t, void *, void *, struct ibp_verbs_path *);
    struct ibp_verbs_path path;

    FIND_VERB(next, "ibv_init_ah_from_wc", NULL);
    memset(&path, 0, sizeof path);
    if (next(domain->context, port, completion, header, &path)) return NULL;
    return ibv_create_ah(domain, &path);
}

/* -- mlx5: queue pairs that bypass verbs --------------------------------------------------------------------------- */

static void note_direct(struct ibp_verbs_qp *qp)
{
    struct ibp_route *route = qp ? find_route(qp) : NULL;

    if (route && route->direct) return;
    if (route) route->direct = true;
    ibp_transfers_note_unseen(1);
}

DEFINE(struct ibp_verbs_qp *, mlx5dv_create_qp, struct ibp_verbs_context *context, struct ibp_verbs_qp_init *wanted,
       struct ibp_mlx5_qp_init *special)
{
    static struct ibp_verbs_qp *(*next)(struct ibp_verbs_context *, struct ibp_verbs_qp_init *,
                                        struct ibp_mlx5_qp_init *);
    struct ibp_verbs_qp *qp;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_create_qp", NULL);
    qp = next(context, wanted, special);
    if (!qp) return NULL;
    see_device(qp->context);
    remember_new(qp, wanted);
    /* The target of a dynamic connection only receives. */
    if (!(special && special->fields & IBP_MLX5_INIT_DC && special->dc_type == IBP_MLX5_DC_TARGET)) note_direct(qp);
    return qp;
}

DEFINE(int, mlx5dv_init_obj, struct ibp_mlx5_object *object, uint64_t types)
{
    static int (*next)(struct ibp_mlx5_object *, uint64_t);
    int result;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_init_obj", ENOSYS);
    result = next(object, types);
    if (!result && types & IBP_MLX5_OBJECT_QP && object->qp) note_direct(object->qp);
    return result;
}

DEFINE(void *, mlx5dv_devx_obj_create, struct ibp_verbs_context *context, const uint8_t *command, size_t bytes,
       void *answer, size_t answer_bytes)
{
    static void *(*next)(struct ibp_verbs_context *, const uint8_t *, size_t, void *, size_t);
    void *made;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_devx_obj_create", NULL);
    made = next(context, command, bytes, answer, answer_bytes);
    if (made && bytes >= 2 && (command[0] << 8 | command[1]) == IBP_MLX5_COMMAND_CREATE_QP) note_direct(NULL);
    return made;
}

DEFINE(struct ibp_mlx5_qp_ex *, mlx5dv_qp_ex_from_ibv_qp_ex, struct ibp_verbs_qp_ex *qp)
{
    static struct ibp_mlx5_qp_ex *(*next)(struct ibp_verbs_qp_ex *);
    struct ibp_mlx5_qp_ex *mlx5;

    FIND_REAL(next, IBP_MLX5_LIBRARY, "mlx5dv_qp_ex_from_ibv_qp_ex", NULL);
    mlx5 = next(qp);
    if (mlx5 && ibp_route_find(&ibp_queue_pairs, qp)) ibp_mlx5_hook_builders(mlx5);
    return mlx5;
}
