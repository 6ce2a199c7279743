/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The calls that MPICH and its kin make to libfabric. Most go through tables of functions that objects carry: from the fabric,
 * which MPI opens by the one call that is redirected, ours are passed on to domains and endpoints. A peer is an index into a
 * table of addresses, where its address can be looked up.
 */
#include "system.h"
#include "addresses.h"
#include "counters.h"
#include "libfabric.h"
#include "mpich_messages.h"
#include "recording.h"
#include "redirect.h"
#include "source.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define OBJECTS_MAX 256
#define ADDRESS_BYTES_MAX 1024

typedef int fabric_function(void *, struct ibp_fi_fabric **, void *);
typedef void *dlvsym_function(void *, const char *, const char *);
typedef void *dlsym_function(void *, const char *);

static struct {
    fabric_function *fabric;
    dlvsym_function *dlvsym;
    dlsym_function *dlsym;
} original;

/* What we know of an endpoint. A table of ours is preceded by its owner and by the table that it took the place of. */
struct endpoint {
    struct ibp_fi_endpoint *object;
    struct ibp_fi_domain *domain;
    bool named;
    struct ibp_peers peers; /* key: index and 1 */
    uint64_t last_index;    /* and 1 */
    uint32_t last_number;
};

struct owned {
    struct endpoint *owner;
    const void *original;
};

static struct endpoint endpoints[OBJECTS_MAX];
static unsigned endpoint_count;
static bool beyond_limit;

static struct {
    struct ibp_fi_domain *domain;
    struct ibp_fi_av *av;
} tables_of_addresses[OBJECTS_MAX];
static unsigned av_count;

#define OWNED(table) ((const struct owned *)(table) - 1)
#define ORIGINAL(table) ((__typeof__(table))OWNED(table)->original)

/* A copy of a table for ours to be put in; the table itself when there is no memory. `*table` is replaced. */
static void *copy_table(void *table_of_object, struct endpoint *owner)
{
    void **table = table_of_object;
    struct owned *copy;
    size_t bytes;

    memcpy(&bytes, *table, sizeof bytes);
    copy = ibp_memory_map(sizeof *copy + bytes);
    if (!copy) return NULL;
    copy->owner = owner;
    copy->original = *table;
    memcpy(copy + 1, *table, bytes);
    *table = copy + 1;
    return copy + 1;
}

/* Puts a function into a table, if the table is large enough to have the place. */
#define PUT(table, place, function)                                                                                    \
    do {                                                                                                               \
        if ((table)->bytes >= offsetof(__typeof__(*(table)), place) + sizeof(table)->place && (table)->place)          \
            (table)->place = function;                                                                                 \
    } while (0)

/* -- peers -------------------------------------------------------------------------------------------------------------- */

static void enter_own_name(struct endpoint *endpoint)
{
    struct ibp_fi_endpoint *object = endpoint->object;
    char name[ADDRESS_BYTES_MAX];
    size_t bytes = sizeof name;

    if (endpoint->named || !object->connection || object->connection->get_name(&object->object, name, &bytes)) return;
    if (bytes > sizeof name) return;
    endpoint->named = true;
    ibp_address_of_own(name, bytes);
}

static uint32_t look_up(const struct endpoint *endpoint, uint64_t index)
{
    char address[ADDRESS_BYTES_MAX];
    size_t bytes = sizeof address;

    for (unsigned i = 0; i < av_count; i++) {
        struct ibp_fi_av *av = tables_of_addresses[i].av;

        if (tables_of_addresses[i].domain != endpoint->domain) continue;
        if (av->table->lookup(av, index, address, &bytes) || bytes > sizeof address) return IBP_PEER_UNKNOWN;
        return ibp_address_of_peer(address, bytes);
    }
    return IBP_PEER_UNKNOWN;
}

static uint32_t peer_of(struct endpoint *endpoint, uint64_t index)
{
    uint32_t number = IBP_PEER_UNKNOWN;
    struct ibp_peer *peer;

    if (IBP_LIKELY(!ibp_threads_multiple && endpoint->last_index == index + 1)) return endpoint->last_number;
    ibp_lock();
    peer = ibp_peer_enter(&endpoint->peers, index + 1);
    if (peer) number = peer->number ? peer->number : look_up(endpoint, index);
    if (number != IBP_PEER_UNKNOWN) { /* which it may be only until the recording is open */
        peer->number = number;
        endpoint->last_index = index + 1;
        endpoint->last_number = number;
    }
    ibp_unlock();
    return number;
}

/* An index may come to be another address's. */
static int hook_av_remove(struct ibp_fi_av *av, uint64_t *indices, size_t count, uint64_t flags)
{
    ibp_lock();
    for (unsigned i = 0; i < endpoint_count; i++) {
        ibp_peers_clear(&endpoints[i].peers);
        endpoints[i].last_index = 0;
    }
    ibp_unlock();
    return ORIGINAL(av->table)->remove(av, indices, count, flags);
}

/* -- sends -------------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct iovec *parts, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) bytes += parts[i].iov_len;
    return bytes;
}

/* Match bits have the tag at their lower end, the context above it, then the sender's rank unless it goes beside them, and what
 * the message is for on top. The largest tag that a program may use tells which layout this is. */
static const struct layout {
    unsigned tag_bits, context_bits, purpose_shift;
    uint64_t synchronous; /* the purpose of MPI_Ssend's data; others without data are answers */
} layouts[] = {
    {31, 20, 51, UINT64_C(1) << 54}, /* MPICH 4.3.2 and 5.0.2 */
    {20, 20, 60, UINT64_C(1) << 61}, /* Intel MPI 2021.18, where the provider carries no data beside a message */
};
static const struct layout *layout = layouts;

static void find_layout(void)
{
    const unsigned largest_tag = ibp_mpi_largest_tag();

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (largest_tag && !(largest_tag >> layouts[i].tag_bits)) layout = &layouts[i];
    ibp_log(3, "the largest tag is %u: %u bits of match bits", largest_tag, layout->tag_bits);
}

static struct ibp_mpich_envelope envelope_of(uint64_t bits, size_t bytes)
{
    return (struct ibp_mpich_envelope){
        .context = (uint32_t)(bits >> layout->tag_bits) & ((UINT32_C(1) << layout->context_bits) - 1),
        .tag = (uint32_t)bits & ((UINT32_C(1) << layout->tag_bits) - 1),
        .is_control = !bytes && bits >> layout->purpose_shift && !(bits & layout->synchronous),
    };
}

static inline ssize_t saw_tagged(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer,
                                 uint64_t tag)
{
    if (!result) {
        ibp_mpich_count(envelope_of(tag, bytes), peer_of(OWNED(object->tagged)->owner, peer), bytes);
    }
    return result;
}

static ssize_t hook_tagged_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send(object, buffer, bytes, descriptor, peer, tag, context), object,
                      bytes, peer, tag);
}

static ssize_t hook_tagged_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                                      size_t count, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_parts(object, parts, descriptors, count, peer, tag, context),
                      object, bytes_of(parts, count), peer, tag);
}

static ssize_t hook_tagged_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_tagged_message *message,
                                        uint64_t flags)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_message(object, message, flags), object,
                      bytes_of(message->parts, message->count), message->peer, message->tag);
}

static ssize_t hook_tagged_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer,
                                  uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject(object, buffer, bytes, peer, tag), object, bytes, peer, tag);
}

static ssize_t hook_tagged_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                                     uint64_t data, uint64_t peer, uint64_t tag, void *context)
{
    return saw_tagged(ORIGINAL(object->tagged)->send_data(object, buffer, bytes, descriptor, data, peer, tag, context),
                      object, bytes, peer, tag);
}

static ssize_t hook_tagged_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                       uint64_t peer, uint64_t tag)
{
    return saw_tagged(ORIGINAL(object->tagged)->inject_data(object, buffer, bytes, data, peer, tag), object, bytes,
                      peer, tag);
}

/* MPICH's active messages. */
static inline ssize_t saw_message(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer)
{
    if (!result) ibp_mpich_count_active_message(peer_of(OWNED(object->messages)->owner, peer), bytes);
    return result;
}

static ssize_t hook_send(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                         uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send(object, buffer, bytes, descriptor, peer, context), object,
                       bytes, peer);
}

static ssize_t hook_send_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_parts(object, parts, descriptors, count, peer, context), object,
                       bytes_of(parts, count), peer);
}

static ssize_t hook_send_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return saw_message(ORIGINAL(object->messages)->send_message(object, message, flags), object,
                       bytes_of(message->parts, message->count), message->peer);
}

static ssize_t hook_inject(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject(object, buffer, bytes, peer), object, bytes, peer);
}

static ssize_t hook_send_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, void *descriptor,
                              uint64_t data, uint64_t peer, void *context)
{
    return saw_message(ORIGINAL(object->messages)->send_data(object, buffer, bytes, descriptor, data, peer, context),
                       object, bytes, peer);
}

static ssize_t hook_inject_data(struct ibp_fi_endpoint *object, const void *buffer, size_t bytes, uint64_t data,
                                uint64_t peer)
{
    return saw_message(ORIGINAL(object->messages)->inject_data(object, buffer, bytes, data, peer), object, bytes, peer);
}

/* Reads: MPI_Get, and the receiver's part of very large messages. */
static inline ssize_t saw_read(ssize_t result, struct ibp_fi_endpoint *object, size_t bytes, uint64_t peer)
{
    if (!result) ibp_mpich_count_read(peer_of(OWNED(object->memory)->owner, peer), bytes);
    return result;
}

static ssize_t hook_read(struct ibp_fi_endpoint *object, void *buffer, size_t bytes, void *descriptor, uint64_t peer,
                         uint64_t place, uint64_t key, void *context)
{
    return saw_read(ORIGINAL(object->memory)->read(object, buffer, bytes, descriptor, peer, place, key, context),
                    object, bytes, peer);
}

static ssize_t hook_read_parts(struct ibp_fi_endpoint *object, const struct iovec *parts, void **descriptors,
                               size_t count, uint64_t peer, uint64_t place, uint64_t key, void *context)
{
    return saw_read(ORIGINAL(object->memory)->read_parts(object, parts, descriptors, count, peer, place, key, context),
                    object, bytes_of(parts, count), peer);
}

static ssize_t hook_read_message(struct ibp_fi_endpoint *object, const struct ibp_fi_message *message, uint64_t flags)
{
    return saw_read(ORIGINAL(object->memory)->read_message(object, message, flags), object,
                    bytes_of(message->parts, message->count), message->peer);
}

/* -- objects ------------------------------------------------------------------------------------------------------------ */

static void hook_sends(struct ibp_fi_endpoint *object, struct endpoint *owner)
{
    if (object->tagged && copy_table(&object->tagged, owner)) {
        PUT(object->tagged, send, hook_tagged_send);
        PUT(object->tagged, send_parts, hook_tagged_send_parts);
        PUT(object->tagged, send_message, hook_tagged_send_message);
        PUT(object->tagged, inject, hook_tagged_inject);
        PUT(object->tagged, send_data, hook_tagged_send_data);
        PUT(object->tagged, inject_data, hook_tagged_inject_data);
    }
    if (object->messages && copy_table(&object->messages, owner)) {
        PUT(object->messages, send, hook_send);
        PUT(object->messages, send_parts, hook_send_parts);
        PUT(object->messages, send_message, hook_send_message);
        PUT(object->messages, inject, hook_inject);
        PUT(object->messages, send_data, hook_send_data);
        PUT(object->messages, inject_data, hook_inject_data);
    }
    if (object->memory && copy_table(&object->memory, owner)) {
        PUT(object->memory, read, hook_read);
        PUT(object->memory, read_parts, hook_read_parts);
        PUT(object->memory, read_message, hook_read_message);
    }
}

static struct endpoint *add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain)
{
    struct endpoint *endpoint;

    if (endpoint_count == OBJECTS_MAX) {
        beyond_limit = true;
        return NULL;
    }
    endpoint = &endpoints[endpoint_count++];
    endpoint->object = object;
    endpoint->domain = domain;
    return endpoint;
}

static int hook_transmit_context(struct ibp_fi_endpoint *scalable, int index, void *attributes,
                                 struct ibp_fi_endpoint **object, void *context)
{
    const int result = ORIGINAL(scalable->table)->transmit_context(scalable, index, attributes, object, context);

    if (!result) hook_sends(*object, OWNED(scalable->table)->owner);
    return result;
}

static int hook_endpoint(struct ibp_fi_domain *domain, void *info, struct ibp_fi_endpoint **object, void *context)
{
    const int result = ORIGINAL(domain->table)->endpoint(domain, info, object, context);
    struct endpoint *endpoint = result ? NULL : add_endpoint(*object, domain);

    if (endpoint) hook_sends(*object, endpoint);
    return result;
}

static int hook_scalable_endpoint(struct ibp_fi_domain *domain, void *info, struct ibp_fi_endpoint **object,
                                  void *context)
{
    const int result = ORIGINAL(domain->table)->scalable_endpoint(domain, info, object, context);
    struct endpoint *endpoint = result ? NULL : add_endpoint(*object, domain);

    if (endpoint && copy_table(&(*object)->table, endpoint))
        PUT((*object)->table, transmit_context, hook_transmit_context);
    return result;
}

static int hook_av_open(struct ibp_fi_domain *domain, void *attributes, struct ibp_fi_av **av, void *context)
{
    const int result = ORIGINAL(domain->table)->av_open(domain, attributes, av, context);

    if (result || av_count == OBJECTS_MAX) return result;
    tables_of_addresses[av_count].domain = domain;
    tables_of_addresses[av_count++].av = *av;
    if (copy_table(&(*av)->table, NULL)) PUT((*av)->table, remove, hook_av_remove);
    return result;
}

static int hook_domain(struct ibp_fi_fabric *fabric, void *info, struct ibp_fi_domain **domain, void *context)
{
    const int result = ORIGINAL(fabric->table)->domain(fabric, info, domain, context);

    if (result || !copy_table(&(*domain)->table, NULL)) return result;
    PUT((*domain)->table, av_open, hook_av_open);
    PUT((*domain)->table, endpoint, hook_endpoint);
    PUT((*domain)->table, scalable_endpoint, hook_scalable_endpoint);
    return result;
}

static int hook_fabric(void *attributes, struct ibp_fi_fabric **fabric, void *context)
{
    const int result = original.fabric(attributes, fabric, context);

    if (!result && copy_table(&(*fabric)->table, NULL)) PUT((*fabric)->table, domain, hook_domain);
    return result;
}

/* Intel MPI asks for libfabric's functions by name. Whatever else is asked for is found by a jump, since where it is found
 * may depend on who asks. */
static void *found_fabric(void *function)
{
    if (!function) return NULL;
    memcpy(&original.fabric, &function, sizeof function);
    return (void *)hook_fabric;
}

static void *hook_dlvsym(void *library, const char *name, const char *version)
{
    if (strcmp(name, "fi_fabric")) return original.dlvsym(library, name, version);
    return found_fabric(original.dlvsym(library, name, version));
}

static void *hook_dlsym(void *library, const char *name)
{
    if (strcmp(name, "fi_fabric")) return original.dlsym(library, name);
    return found_fabric(original.dlsym(library, name));
}

/* -- hooking in --------------------------------------------------------------------------------------------------------- */

static void prepare(void)
{
    if (ibp_redirect("fi_fabric", (void *)hook_fabric, &original.fabric)) return;
    ibp_redirect("dlvsym", (void *)hook_dlvsym, &original.dlvsym);
    ibp_redirect("dlsym", (void *)hook_dlsym, &original.dlsym);
}

static int attach(char *why, size_t why_bytes)
{
    if (!endpoint_count) {
        snprintf(why, why_bytes, "this MPI (%s) does not send through libfabric", ibp_mpi.version);
        return -1;
    }
    find_layout();
    for (unsigned i = 0; i < endpoint_count; i++) enter_own_name(&endpoints[i]);
    return ibp_mpich_probe(why, why_bytes);
}

static void describe_gaps(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
    if (beyond_limit) ibp_text_append(notes, bytes, "there were more endpoints than can be watched\n");
}

const struct ibp_source_operations ibp_source_libfabric = {
    .source = IBP_SOURCE_LIBFABRIC,
    .name = "libfabric",
    .prepare = prepare,
    .attach = attach,
    .describe_gaps = describe_gaps,
    IBP_MPICH_SOURCE,
};
