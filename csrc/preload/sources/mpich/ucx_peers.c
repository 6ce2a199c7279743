/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/ucx_peers.h"
#include "counting/addresses.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "sources/mpich/ucx_abi.h"

#include "ibprof_recording.h"

#include <string.h>

static struct {
    int (*worker_create)(void *, const void *, void **);
    int (*worker_get_address)(void *, void **, size_t *);
    void (*worker_release_address)(void *, void *);
    int (*address_query)(const void *, struct ibp_ucx_address_attributes *);
    int (*ep_create)(void *, const struct ibp_ucx_endpoint_parameters *, void **);
} original;

static struct ibp_peers endpoints; /* maps an endpoint to the identifier of the peer's worker */
static unsigned workers;
struct ibp_ucx_last_peer ibp_ucx_last_peer;

static uint64_t uid_of(const void *address)
{
    struct ibp_ucx_address_attributes attributes = {.fields = IBP_UCX_HAS_UID};

    return address && !original.address_query(address, &attributes) ? attributes.uid : 0;
}

static int hook_worker_create(void *context, const void *parameters, void **worker)
{
    const int status = original.worker_create(context, parameters, worker);
    void *address = NULL;
    size_t bytes;
    uint64_t uid;

    if (status != IBP_UCX_OK || original.worker_get_address(*worker, &address, &bytes) != IBP_UCX_OK) return status;
    uid = uid_of(address);
    original.worker_release_address(*worker, address);
    if (!uid) return status;
    ibp_lock();
    ibp_address_of_own(&uid, sizeof uid);
    ibp_unlock();
    workers++;
    return status;
}

static int hook_ep_create(void *worker, const struct ibp_ucx_endpoint_parameters *parameters, void **endpoint)
{
    const int status = original.ep_create(worker, parameters, endpoint);
    struct ibp_peer *peer;

    if (status != IBP_UCX_OK) return status;
    ibp_lock();
    ibp_ucx_last_peer.endpoint = NULL;
    peer = ibp_peer_enter(&endpoints, (uintptr_t)*endpoint);
    if (peer) {
        peer->address = parameters->fields & IBP_UCX_HAS_REMOTE_ADDRESS ? uid_of(parameters->address) : 0;
        peer->number = 0;
    }
    ibp_unlock();
    return status;
}

uint32_t ibp_ucx_find_peer(const void *endpoint)
{
    uint32_t number = IBP_PEER_UNKNOWN;
    struct ibp_peer *peer;

    ibp_lock();
    peer = ibp_peer_find(&endpoints, (uintptr_t)endpoint);
    if (peer && !peer->number && peer->address) {
        number = ibp_address_of_peer(&peer->address, sizeof peer->address);
        if (number != IBP_PEER_UNKNOWN) peer->number = number;
    } else if (peer && peer->number) {
        number = peer->number;
    }
    ibp_unlock();
    if (!ibp_threads_multiple) {
        ibp_ucx_last_peer.endpoint = number == IBP_PEER_UNKNOWN ? NULL : endpoint;
        ibp_ucx_last_peer.number = number;
    }
    return number;
}

unsigned ibp_ucx_workers(void)
{
    return workers;
}

int ibp_ucx_hook_peers(void)
{
    const struct {
        const char *name;
        void *into;
    } needed[] = {
        {"ucp_worker_get_address", &original.worker_get_address},
        {"ucp_worker_release_address", &original.worker_release_address},
        {"ucp_worker_address_query", &original.address_query},
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *function = ibp_mpi_dependency(needed[i].name);

        if (!function) return -1;
        memcpy(needed[i].into, &function, sizeof function);
    }
    ibp_got_redirect("ucp_worker_create", (void *)hook_worker_create, &original.worker_create);
    ibp_got_redirect("ucp_ep_create", (void *)hook_ep_create, &original.ep_create);
    return 0;
}
