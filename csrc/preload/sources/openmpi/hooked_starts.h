/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in persistent requests of Open MPI. Each request contains a pointer to its start function, which MPI_Start and
 * MPI_Startall call. The hook replaces this function in each request that the application creates. See
 * docs/decisions/0026.
 */
#ifndef IBPROF_SOURCES_OPENMPI_HOOKED_STARTS_H
#define IBPROF_SOURCES_OPENMPI_HOOKED_STARTS_H

#include "platform/system.h"
#include "sources/openmpi/table.h"

#include <stdbool.h>

/* The function that replaces the start function in requests (ibp_openmpi_start_own); NULL if the layout of requests is
 * unknown. */
extern IBP_INTERNAL ibp_openmpi_start_function *ibp_openmpi_own_start;

/* Replace the start function of a request, if the request has the start function of Open MPI's table. Return whether
 * the start function of the request is replaced. */
bool ibp_openmpi_hook_own_start(void *request);

/* Restore the start function of a request if it was replaced. The request must exist, or be in Open MPI's list of free
 * requests. */
void ibp_openmpi_unhook_own_start(void *request);

void ibp_openmpi_forget_request(void *request);

void ibp_openmpi_unhook_own_starts(void);

#endif
