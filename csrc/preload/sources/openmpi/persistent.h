/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table of the calls that make persistent requests (started: starts.h).
 */
#ifndef IBPROF_SOURCES_OPENMPI_PERSISTENT_H
#define IBPROF_SOURCES_OPENMPI_PERSISTENT_H

#include "sources/openmpi/table.h"

ibp_openmpi_isend_function ibp_openmpi_hook_isend_init;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_init;

#endif
