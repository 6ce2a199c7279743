/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_peers.h"
#include "libmpi/lock.h"
#include "sources/mpich/libfabric_tables.h"

#include "ibprof_recording.h"

#define OBJECTS_MAX 256
#define ADDRESS_BYTES_MAX 1024

static struct ibp_fi_known_endpoint endpoints[OBJECTS_MAX];
static unsigned endpoint_count;
static bool beyond_limit;

static struct {
    struct ibp_fi_domain *domain;
    struct ibp_fi_av *av;
} tables_of_addresses[OBJECTS_MAX];
static unsigned av_count;

bool ibp_fi_is_beyond_limit(void)
{
    return beyond_limit;
}

struct ibp_fi_known_endpoint *ibp_fi_add_endpoint(struct ibp_fi_endpoint *object, struct ibp_fi_domain *domain)
{
    struct ibp_fi_known_endpoint *endpoint;

    if (endpoint_count == OBJECTS_MAX) {
        beyond_limit = true;
        return NULL;
    }
    endpoint = &endpoints[endpoint_count++];
    endpoint->object = object;
    endpoint->domain = domain;
    return endpoint;
}

static void enter_own_name(struct ibp_fi_known_endpoint *endpoint)
{
    struct ibp_fi_endpoint *object = endpoint->object;
    char name[ADDRESS_BYTES_MAX];
    size_t bytes = sizeof name;

    if (endpoint->named || !object->connection || object->connection->get_name(&object->object, name, &bytes)) return;
    if (bytes > sizeof name) return;
    endpoint->named = true;
    ibp_address_of_own(name, bytes);
}

static uint32_t look_up(const struct ibp_fi_known_endpoint *endpoint, uint64_t index)
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

uint32_t ibp_fi_peer_of(struct ibp_fi_known_endpoint *endpoint, uint64_t index)
{
    uint32_t number = IBP_PEER_UNKNOWN;
    struct ibp_peer *peer;

    if (IBP_LIKELY(!ibp_threads_multiple && endpoint->last_index == index + 1)) return endpoint->last_number;
    ibp_lock();
    peer = ibp_peer_enter(&endpoint->peers, index + 1);
    if (peer) number = peer->number ? peer->number : look_up(endpoint, index);
    if (number != IBP_PEER_UNKNOWN) { /* an unknown number may become known when recording begins */
        peer->number = number;
        endpoint->last_index = index + 1;
        endpoint->last_number = number;
    }
    ibp_unlock();
    return number;
}

/* Forget all peers, because libfabric may reuse the index of a removed address. */
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

void ibp_fi_add_addresses(struct ibp_fi_av *av, struct ibp_fi_domain *domain)
{
    if (av_count == OBJECTS_MAX) return;
    tables_of_addresses[av_count].domain = domain;
    tables_of_addresses[av_count++].av = av;
    if (ibp_fi_copy_table(&av->table, NULL)) PUT(av->table, remove, hook_av_remove);
}

unsigned ibp_fi_enter_own_names(void)
{
    for (unsigned i = 0; i < endpoint_count; i++) enter_own_name(&endpoints[i]);
    return endpoint_count;
}
