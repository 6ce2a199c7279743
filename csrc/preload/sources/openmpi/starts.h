/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks of the functions that create and start persistent requests of Open MPI. Each request contains a pointer to its
 * start function. MPI_Start and MPI_Startall call this function, once for all successive requests with the same
 * function. In each request that the application creates, ibprof replaces this function. Collectives call the start
 * function of Open MPI's table.
 */
#ifndef IBPROF_SOURCES_OPENMPI_STARTS_H
#define IBPROF_SOURCES_OPENMPI_STARTS_H

#include "sources/openmpi/table.h"
#include "sources/source.h"

#include <stddef.h>

/* Hooks in Open MPI's table: functions that create requests. */
ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;

/* The hook in the application's requests: the function that starts them. */
ibp_openmpi_start_function ibp_openmpi_start_own;

/* The hook in Open MPI's table: the function that starts requests of collectives. */
ibp_openmpi_start_function ibp_openmpi_hook_start;

size_t ibp_openmpi_start(ibp_start_function *start, size_t count, void **requests, int *result);

#endif
