/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libnccl-profiler-ibprof.so: the profiler plug-in that NCCL and RCCL load. For each version of the profiler interface,
 * the plug-in has a start function that reads the events of this version.
 */
#include "platform/system.h"
#include "nccl/chain.h"
#include "nccl/events.h"
#include "nccl/profiler_abi.h"

#include <string.h>
#include <unistd.h>

#define FIRST_MASK (IBP_NCCL_COLL | IBP_NCCL_P2P | IBP_NCCL_PROXY_OP | IBP_NCCL_PROXY_STEP)
#define CONTEXTS_MAX 4096

/* Contexts of one communicator. NCCL requires a context that is not NULL. Therefore the context is a pointer to this
 * struct, whose members may both be NULL. */
struct contexts {
    struct ibp_nccl_context *own;
    void *next;
};
/* All communicators beyond CONTEXTS_MAX share the last element. ibprof sums the bytes of these communicators, and does
 * not report them to the next plug-in. */
static struct contexts contexts[CONTEXTS_MAX + 1];
static uint32_t contexts_used;
/* True if a next plug-in is loaded. Each handle that NCCL receives is then the address of a pair of handles
 * (chain.h). */
static bool is_chained;

/* -- communicators ------------------------------------------------------------------------------------------------- */

static int begin(unsigned version, void **context, int *mask, const struct ibp_nccl_init_arguments *with,
                 const void *caller)
{
    const struct ibp_nccl_communicator_facts facts = {with->hash, with->name, with->rank, with->ranks, with->nodes};
    const uint32_t number = __atomic_fetch_add(&contexts_used, 1, __ATOMIC_RELAXED);
    struct contexts *made = &contexts[number < CONTEXTS_MAX ? number : CONTEXTS_MAX];
    int next_mask = 0;

    *mask = 0;
    *context = made;
    if (ibp_nccl_open(caller)) made->own = ibp_nccl_begin(version, version < 4 ? NULL : &facts);
    if (ibp_nccl_chain_open(version)) {
        is_chained = true;
        if (number < CONTEXTS_MAX) made->next = ibp_nccl_chain_begin(with, &next_mask);
    }
    if (made->own) *mask = version < 3 ? FIRST_MASK : FIRST_MASK | IBP_NCCL_NET_PLUGIN;
    *mask |= next_mask;
    return 0;
}

static int finalize(void *context)
{
    struct contexts *made = context;

    if (!made || made == &contexts[CONTEXTS_MAX]) return 0;
    ibp_nccl_end(made->own);
    if (is_chained) ibp_nccl_chain_end(made->next);
    made->own = NULL;
    made->next = NULL;
    return 0;
}

/* -- events -------------------------------------------------------------------------------------------------------- */

/* Return the context of an event. Return NULL if the event belongs to another process, because `context` is then a
 * pointer in that process. */
static struct contexts *own_context(void *context)
{
    const uintptr_t offset = (uintptr_t)context - (uintptr_t)contexts;

    return offset < sizeof contexts && offset % sizeof *contexts == 0 ? context : NULL;
}

static void *own_handle(void *handle)
{
    return handle && is_chained ? ((struct ibp_nccl_pair *)handle)->own : handle;
}

static void *start_operation(struct contexts *context, void *parent, const struct ibp_nccl_proxy_op *proxy)
{
    const bool is_own = proxy->pid == getpid();
    const struct ibp_nccl_operation_facts facts = {is_own, proxy->peer, proxy->channel, proxy->is_send != 0};

    return ibp_nccl_start_operation(is_own && context ? context->own : NULL, is_own ? own_handle(parent) : NULL,
                                    &facts);
}

static void note_device(void *step, const struct ibp_nccl_net_plugin *net)
{
    const struct ibp_nccl_net_ib_1 *ib = net->data;

    if (ib && (net->id >> 16 & 0xffff) == IBP_NCCL_NET_IB && (net->id & 0xffff) == 1)
        ibp_nccl_note_device(own_handle(step), ib->qp.device);
}

/* Pass the start of an event to the next plug-in, and set `handle` to the handle for NCCL. `parent`, `parent_group`:
 * addresses of the event's members that contain the parents' handles. */
static int finish_start(void *context, void **handle, void *event, uint64_t type, void **parent, void **parent_group,
                        void *own)
{
    void **parents[2] = {parent, parent_group};
    struct contexts *made = own_context(context);

    if (is_chained)
        *handle = made ? ibp_nccl_chain_start(made->next, event, type, parents, own) : NULL;
    else
        *handle = own;
    return 0;
}

/* Return the size of a data type in bytes. `type` is NCCL's name, such as ncclFloat16. */
static uint64_t bytes_of_type(const char *type)
{
    static const struct {
        const char *ending;
        uint64_t bytes;
    } types[] = {{"8e4m3", 1}, {"8e5m2", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"8", 1}};
    const size_t length = type ? strnlen(type, 32) : 0;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t ending = strlen(types[i].ending);

        if (length > ending && !strcmp(type + length - ending, types[i].ending)) return types[i].bytes;
    }
    return 0;
}

/* Return the name of a function, algorithm or protocol from its number. Version 1 of the interface, which only NCCL
 * 2.23 has, reports numbers instead of names. */
static const char *name_of(const char *const *names, size_t count, uint8_t number)
{
    return number < count ? names[number] : NULL;
}
#define NAME_OF(names, number) name_of(names, sizeof(names) / sizeof *(names), number)
static const char *const functions_of_1[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                             "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algorithms_of_1[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                              "NVLS_TREE", "PAT"};
static const char *const protocols_of_1[] = {"LL", "LL128", "SIMPLE"};
static const uint8_t type_bytes_of_1[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static uint64_t bytes_of_1(size_t count, uint8_t type)
{
    return type < sizeof type_bytes_of_1 ? count * type_bytes_of_1[type] : 0;
}

static int start_1(void *context, void **handle, void *given)
{
    struct ibp_nccl_event_1 *event = given;
    struct contexts *made = own_context(context);
    void *own = NULL;

    *handle = NULL;
    if (event->type == IBP_NCCL_COLL && made) {
        const struct ibp_nccl_communicator_facts facts = {event->coll.communicator, event->coll.name, event->rank, 0,
                                                          0};
        const struct ibp_nccl_task_facts task = {
            NAME_OF(functions_of_1, event->coll.function), NAME_OF(algorithms_of_1, event->coll.algorithm),
            NAME_OF(protocols_of_1, event->coll.protocol), bytes_of_1(event->coll.count, event->coll.datatype),
            event->coll.channels};

        ibp_nccl_describe(made->own, &facts);
        own = ibp_nccl_start_task(made->own, &task);
    } else if (event->type == IBP_NCCL_P2P && made) {
        const struct ibp_nccl_communicator_facts facts = {event->p2p.communicator, event->p2p.name, event->rank, 0, 0};
        const struct ibp_nccl_task_facts task = {NAME_OF(functions_of_1, event->p2p.function), NULL, NULL,
                                                 bytes_of_1(event->p2p.count, event->p2p.datatype), 0};

        ibp_nccl_describe(made->own, &facts);
        own = ibp_nccl_start_task(made->own, &task);
    } else if (event->type == IBP_NCCL_PROXY_OP) {
        own = start_operation(made, event->parent, &event->proxy_op);
    } else if (event->type == IBP_NCCL_PROXY_STEP) {
        own = ibp_nccl_start_step(own_handle(event->parent), event->proxy_step.step);
    }
    return finish_start(context, handle, event, event->type, &event->parent, NULL, own);
}

/* Define the start function of a version whose events contain the communicator. */
#define START_WITH_COMMUNICATOR(version, on_net)                                                                       \
    static int start_##version(void *context, void **handle, void *given)                                              \
    {                                                                                                                  \
        struct ibp_nccl_event_##version *event = given;                                                                \
        struct contexts *made = own_context(context);                                                                  \
        void *own = NULL;                                                                                              \
                                                                                                                       \
        *handle = NULL;                                                                                                \
        if (event->type == IBP_NCCL_COLL && made) {                                                                    \
            const struct ibp_nccl_communicator_facts facts = {event->coll.communicator, event->coll.name, event->rank, \
                                                              0, 0};                                                   \
            const struct ibp_nccl_task_facts task = {                                                                  \
                event->coll.function, event->coll.algorithm, event->coll.protocol,                                     \
                event->coll.count * bytes_of_type(event->coll.datatype), event->coll.channels};                        \
                                                                                                                       \
            ibp_nccl_describe(made->own, &facts);                                                                      \
            own = ibp_nccl_start_task(made->own, &task);                                                               \
        } else if (event->type == IBP_NCCL_P2P && made) {                                                              \
            const struct ibp_nccl_communicator_facts facts = {event->p2p.communicator, event->p2p.name, event->rank,   \
                                                              0, 0};                                                   \
            const struct ibp_nccl_task_facts task = {event->p2p.function, NULL, NULL,                                  \
                                                     event->p2p.count * bytes_of_type(event->p2p.datatype), 0};        \
                                                                                                                       \
            ibp_nccl_describe(made->own, &facts);                                                                      \
            own = ibp_nccl_start_task(made->own, &task);                                                               \
        } else if (event->type == IBP_NCCL_PROXY_OP) {                                                                 \
            own = start_operation(made, event->parent, &event->proxy_op);                                              \
        } else if (event->type == IBP_NCCL_PROXY_STEP) {                                                               \
            own = ibp_nccl_start_step(own_handle(event->parent), event->proxy_step.step);                              \
        }                                                                                                              \
        on_net;                                                                                                        \
        return finish_start(context, handle, event, event->type, &event->parent, NULL, own);                           \
    }

START_WITH_COMMUNICATOR(2, )
START_WITH_COMMUNICATOR(3, if (event->type == IBP_NCCL_NET_PLUGIN) note_device(event->parent, &event->net_plugin))

/* Define the start function of an interface version in which NCCL reports a communicator before its events. */
#define START(version, parent_group_of)                                                                                \
    static int start_##version(void *context, void **handle, void *given)                                              \
    {                                                                                                                  \
        struct ibp_nccl_event_##version *event = given;                                                                \
        struct contexts *made = own_context(context);                                                                  \
        void **parent_group = NULL, *own = NULL;                                                                       \
                                                                                                                       \
        *handle = NULL;                                                                                                \
        if (event->type == IBP_NCCL_PROXY_STEP) {                                                                      \
            own = ibp_nccl_start_step(own_handle(event->parent), event->proxy_step.step);                              \
        } else if (event->type == IBP_NCCL_PROXY_OP) {                                                                 \
            own = start_operation(made, event->parent, &event->proxy_op);                                              \
        } else if (event->type == IBP_NCCL_NET_PLUGIN) {                                                               \
            note_device(event->parent, &event->net_plugin);                                                            \
        } else if (event->type == IBP_NCCL_COLL && made) {                                                             \
            const struct ibp_nccl_task_facts task = {                                                                  \
                event->coll.function, event->coll.algorithm, event->coll.protocol,                                     \
                event->coll.count * bytes_of_type(event->coll.datatype), event->coll.channels};                        \
                                                                                                                       \
            own = ibp_nccl_start_task(made->own, &task);                                                               \
            parent_group = parent_group_of(coll);                                                                      \
        } else if (event->type == IBP_NCCL_P2P && made) {                                                              \
            const struct ibp_nccl_task_facts task = {event->p2p.function, NULL, NULL,                                  \
                                                     event->p2p.count * bytes_of_type(event->p2p.datatype),            \
                                                     event->p2p.channels};                                             \
                                                                                                                       \
            own = ibp_nccl_start_task(made->own, &task);                                                               \
            parent_group = parent_group_of(p2p);                                                                       \
        }                                                                                                              \
        return finish_start(context, handle, event, event->type, &event->parent, parent_group, own);                   \
    }

#define NO_GROUP(member) NULL
#define GROUP_OF(member) &event->member.parent_group
START(4, NO_GROUP)
START(5, GROUP_OF)

static int record(void *handle, int state, size_t bytes, void *arguments)
{
    ibp_nccl_record(own_handle(handle), state, bytes);
    if (handle && is_chained) ibp_nccl_chain_record(handle, state, arguments);
    return 0;
}

/* `arguments` is NULL for states without arguments. */
static int record_1(void *handle, int state, void *arguments)
{
    const union ibp_nccl_state_arguments *given = arguments;

    return record(handle, state, given ? given->proxy_op_of_3.bytes : 0, arguments);
}

static int record_4(void *handle, int state, void *arguments)
{
    const union ibp_nccl_state_arguments *given = arguments;

    return record(handle, state, given ? given->proxy_step.bytes : 0, arguments);
}

static int stop(void *handle)
{
    ibp_nccl_stop_event(own_handle(handle));
    if (handle && is_chained) ibp_nccl_chain_stop(handle);
    return 0;
}

/* -- versions ------------------------------------------------------------------------------------------------------ */

#define INIT_1(version)                                                                                                \
    static int init_##version(void **context, int *mask)                                                               \
    {                                                                                                                  \
        const struct ibp_nccl_init_arguments none = {0};                                                               \
                                                                                                                       \
        return begin(version, context, mask, &none, __builtin_return_address(0));                                      \
    }
INIT_1(1)
INIT_1(2)
INIT_1(3)

static int init_4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                  ibp_nccl_logger *logger)
{
    const struct ibp_nccl_init_arguments with = {hash, name, nodes, ranks, rank, logger};

    return begin(4, context, mask, &with, __builtin_return_address(0));
}

#define INIT_5(version)                                                                                                \
    static int init_##version(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,        \
                              int rank, ibp_nccl_logger *logger)                                                       \
    {                                                                                                                  \
        const struct ibp_nccl_init_arguments with = {hash, name, nodes, ranks, rank, logger};                          \
                                                                                                                       \
        return begin(version, context, mask, &with, __builtin_return_address(0));                                      \
    }
INIT_5(5)
INIT_5(6)
INIT_5(7)

#define PROFILER(version, of_init, of_start, of_record)                                                                \
    extern IBP_EXPORT const struct ibp_nccl_profiler ncclProfiler_v##version;                                          \
    const struct ibp_nccl_profiler ncclProfiler_v##version = {                                                         \
        .name = "ibprof",                                                                                              \
        .init_##of_init = init_##version,                                                                              \
        .start = start_##of_start,                                                                                     \
        .stop = stop,                                                                                                  \
        .record = record_##of_record,                                                                                  \
        .finalize = finalize,                                                                                          \
    };
PROFILER(1, 1, 1, 1)
PROFILER(2, 1, 2, 1)
PROFILER(3, 1, 3, 1)
PROFILER(4, 4, 4, 4)
PROFILER(5, 5, 5, 4)
PROFILER(6, 5, 5, 4)
PROFILER(7, 5, 5, 4)
