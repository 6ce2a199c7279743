/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's persistent requests: hooks of the calls that make them, and of their starts. MPI_Start and MPI_Startall
 * call a function of the request, once for successive requests with the same function. This function is replaced in
 * each request that the application creates, so that wrappers of these calls need not look at requests. Collectives
 * call the table's function.
 */
#ifndef IBPROF_SOURCES_OPENMPI_STARTS_H
#define IBPROF_SOURCES_OPENMPI_STARTS_H

#include "sources/openmpi/table.h"
#include "sources/source.h"

#include <stddef.h>

/* In the table: functions that create requests. */
ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;

/* In requests of the application: the function that starts some of them. */
ibp_openmpi_start_function ibp_openmpi_start_own;

/* In the table: the function that starts requests of collectives. */
ibp_openmpi_start_function ibp_openmpi_hook_start;

/* For the wrappers of MPI_Start (sources/source.h). */
size_t ibp_openmpi_start(ibp_start_function *start, size_t count, void **requests, int *result);

#endif
