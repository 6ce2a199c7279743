/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Persistent requests of Open MPI: hooks of the functions that create and start them. Each request contains a start
 * function. MPI_Start and MPI_Startall call it, once for several successive requests if these have the same start
 * function. In each request that the application creates, ibprof replaces this function. So wrappers of MPI_Start need
 * not look at requests. Collectives call the start function of Open MPI's table.
 */
#ifndef IBPROF_SOURCES_OPENMPI_STARTS_H
#define IBPROF_SOURCES_OPENMPI_STARTS_H

#include "sources/openmpi/table.h"
#include "sources/source.h"

#include <stddef.h>

/* In the table: functions that create requests. */
ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;

/* In requests of the application: the function that starts them. */
ibp_openmpi_start_function ibp_openmpi_start_own;

/* In the table: the function that starts requests of collectives. */
ibp_openmpi_start_function ibp_openmpi_hook_start;

/* For the wrappers of MPI_Start (sources/source.h). */
size_t ibp_openmpi_start(ibp_start_function *start, size_t count, void **requests, int *result);

#endif
