/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The start function of a persistent request of Open MPI, which MPI_Start and MPI_Startall call. It is replaced in each
 * request that the application creates. See docs/decisions/0026.
 */
#ifndef IBPROF_SOURCES_OPENMPI_HOOKED_STARTS_H
#define IBPROF_SOURCES_OPENMPI_HOOKED_STARTS_H

#include "platform/system.h"
#include "sources/openmpi/table.h"

#include <stdbool.h>

/* The function that starts hooked requests; NULL while no request is hooked. Set where the layout of requests is
 * known. */
extern IBP_INTERNAL ibp_openmpi_start_function *ibp_openmpi_own_start;

/* Hook the start of a request, if its start function is the table's. Return whether it is hooked now. */
bool ibp_openmpi_hook_own_start(void *request);

/* Restore a request's own function if it is hooked. The request must exist, or be in Open MPI's list of free
 * requests. */
void ibp_openmpi_unhook_own_start(void *request);

/* Restore the own function of a request that the application frees. */
void ibp_openmpi_forget_request(void *request);

/* Restore the own functions of all hooked requests. */
void ibp_openmpi_unhook_own_starts(void);

#endif
