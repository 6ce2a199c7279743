/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Starts of Open MPI's persistent requests. MPI_Start and MPI_Startall call a function of the request, once for all
 * requests in a row that share it. It is replaced in each request that the application makes, so that wrappers of these
 * calls need not look at requests. Collectives call the table's function.
 */
#ifndef IBPROF_SOURCES_OPENMPI_STARTS_H
#define IBPROF_SOURCES_OPENMPI_STARTS_H

#include "sources/openmpi/table.h"
#include "sources/source.h"

#include <stddef.h>

/* In requests of the application: starts some of them. */
ibp_openmpi_start_function ibp_openmpi_start_own;

/* In the table: starts requests of collectives. */
ibp_openmpi_start_function ibp_openmpi_hook_start;

/* For the wrappers of MPI_Start (sources/source.h). */
size_t ibp_openmpi_start(ibp_start_function *start, size_t count, void **requests, int *result);

#endif
