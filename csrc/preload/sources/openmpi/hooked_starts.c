/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/hooked_starts.h"
#include "counting/requests.h"
#include "libmpi/lock.h"
#include "sources/openmpi/completion.h"

#include <string.h>

ibp_openmpi_start_function *ibp_openmpi_own_start;

bool ibp_openmpi_hook_own_start(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);
    void *original;

    if (!ibp_openmpi_own_start) return false;
    memcpy(&original, &ibp_openmpi_next.start, sizeof original);
    if (part->start == original) part->start = (void *)ibp_openmpi_own_start;
    return part->start == (void *)ibp_openmpi_own_start;
}

void ibp_openmpi_unhook_own_start(void *request)
{
    struct ibp_openmpi_request *part = ibp_openmpi_request_of(request);

    if (ibp_openmpi_own_start && part->start == (void *)ibp_openmpi_own_start)
        memcpy(&part->start, &ibp_openmpi_next.start, sizeof part->start);
}

static void unhook_known(const struct ibp_request *request)
{
    if (request->has_hook) ibp_openmpi_unhook_own_start(request->address);
}

void ibp_openmpi_forget_request(void *address)
{
    const struct ibp_request *request;

    ibp_lock();
    request = ibp_request_find(address);
    if (request) unhook_known(request);
    ibp_unlock();
    if (address && ibp_openmpi_own_start) ibp_openmpi_request_freed(address);
}

void ibp_openmpi_unhook_own_starts(void)
{
    ibp_lock();
    ibp_requests_visit(unhook_known);
    ibp_unlock();
    ibp_openmpi_own_start = NULL;
}
