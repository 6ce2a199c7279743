/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/completion_probe.h"
#include "libmpi/library.h"
#include "libmpi/lock.h"
#include "platform/log.h"
#include "sources/openmpi/completion.h"

#include <string.h>

/* The search for the status in a request ends at this offset in bytes. In known versions, the offset of the status is
 * about 60. */
#define SEARCHED_BYTES 160

static struct {
    int calls, releases;
    struct ibp_openmpi_status status;
} tried;

static int on_trial(void *request)
{
    tried.calls++;
    tried.status = ibp_openmpi_request_of(request)->status;
    return 0;
}

static int release_on_trial(void **request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(*request);

    part->release = (void *)ibp_openmpi_release;
    tried.releases += part->complete == IBP_OPENMPI_COMPLETED;
    return ibp_openmpi_release(request);
}

static bool is_probe(const struct ibp_openmpi_status *status)
{
    return status->source == 0 && status->tag == IBP_PROBE_TAG && status->error == 0 && status->cancelled == 0 &&
           status->bytes == IBP_PROBE_BYTES;
}

/* Search a completed request for the known values of its status, and set the offset. Return false if no offset matches,
 * or if other members have unexpected values. */
static bool find_layout(void *request)
{
    const struct ibp_openmpi_request *part;

    for (ibp_openmpi_request_offset = 0; ibp_openmpi_request_offset < SEARCHED_BYTES;
         ibp_openmpi_request_offset += sizeof(void *)) {
        part = ibp_openmpi_request_of(request);
        if (is_probe(&part->status))
            return part->complete == IBP_OPENMPI_COMPLETED && part->communicator == ibp_mpi.self && !part->callback &&
                   !part->datum;
    }
    return false;
}

static bool try_callback(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (part->complete != IBP_OPENMPI_PENDING || part->callback) return false;
    part->callback = (void *)on_trial;
    return true;
}

/* Replace the function that frees a request, if the pointer to this function points into a loaded library. */
static void try_release(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    void *function = part->release;
    Dl_info module;

    if (!function || !dladdr(function, &module)) return;
    memcpy(&ibp_openmpi_release, &function, sizeof function);
    part->release = (void *)release_on_trial;
}

static bool receive_from_self(void *buffer, ibp_handle byte, void **request)
{
    *request = NULL;
    return !ibp_mpi.irecv(buffer, IBP_PROBE_BYTES, byte, 0, IBP_PROBE_TAG, ibp_mpi.self, request) && *request;
}

static bool send_to_self(const void *buffer, ibp_handle byte)
{
    return !ibp_mpi.send(buffer, IBP_PROBE_BYTES, byte, 0, IBP_PROBE_TAG, ibp_mpi.self);
}

bool ibp_openmpi_completion_probe(void)
{
    const ibp_handle byte = (ibp_handle)ibp_mpi_symbol("ompi_mpi_byte");
    char sent[IBP_PROBE_BYTES] = "ibprof", received[IBP_PROBE_BYTES] = "";
    void *request;
    bool found;

    if (!byte || !receive_from_self(received, byte, &request)) return false;
    found = send_to_self(sent, byte) && find_layout(request);
    ibp_mpi.wait(&request, NULL);

    if (!receive_from_self(received, byte, &request)) return false;
    found = found && try_callback(request);
    if (found && ibp_threads_multiple) try_release(request);
    if (!send_to_self(sent, byte)) return false;
    ibp_mpi.wait(&request, NULL);
    found = found && tried.calls == 1 && is_probe(&tried.status);
    if (!found || tried.releases != 1) ibp_openmpi_release = NULL;
    ibp_log(2, "received bytes %s (a request has its status at offset %zu)", found ? "can be seen" : "cannot be seen",
            ibp_openmpi_request_offset);
    return found;
}
