/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Receives while several threads may be in MPI. A receive takes the lock once where it is posted and once where it
 * completes.
 */
#ifndef IBPROF_SOURCES_OPENMPI_RECEIVES_AMONG_THREADS_H
#define IBPROF_SOURCES_OPENMPI_RECEIVES_AMONG_THREADS_H

#include "sources/openmpi/table.h"

ibp_openmpi_recv_function ibp_openmpi_hook_recv_among_threads;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_among_threads;

#endif
