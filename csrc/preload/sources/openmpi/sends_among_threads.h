/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sends while several threads may be in MPI. A message takes the lock once.
 */
#ifndef IBPROF_SOURCES_OPENMPI_SENDS_AMONG_THREADS_H
#define IBPROF_SOURCES_OPENMPI_SENDS_AMONG_THREADS_H

#include "sources/openmpi/table.h"

ibp_openmpi_send_function ibp_openmpi_hook_send_among_threads;
ibp_openmpi_isend_function ibp_openmpi_hook_isend_among_threads;

#endif
