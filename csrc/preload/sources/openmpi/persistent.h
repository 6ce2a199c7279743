/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table of the calls that make persistent requests and start them.
 */
#ifndef IBPROF_SOURCES_OPENMPI_PERSISTENT_H
#define IBPROF_SOURCES_OPENMPI_PERSISTENT_H

#include "sources/openmpi/table.h"

#include <stddef.h>

ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;
ibp_openmpi_start_function ibp_openmpi_hook_start;

/* For the wrappers of MPI_Start (sources/source.h). */
void ibp_openmpi_before_start(size_t count, void **requests);
void ibp_openmpi_after_start(size_t count, void **requests, void *const *before);

#endif
