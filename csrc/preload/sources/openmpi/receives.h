/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table for receives and matched probes.
 */
#ifndef IBPROF_SOURCES_OPENMPI_RECEIVES_H
#define IBPROF_SOURCES_OPENMPI_RECEIVES_H

#include "libmpi/library.h"
#include "sources/openmpi/table.h"

#include <stdint.h>

ibp_openmpi_recv_function ibp_openmpi_hook_recv;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv;
ibp_openmpi_mprobe_function ibp_openmpi_hook_mprobe;
ibp_openmpi_improbe_function ibp_openmpi_hook_improbe;
ibp_openmpi_mrecv_function ibp_openmpi_hook_mrecv;
ibp_openmpi_imrecv_function ibp_openmpi_hook_imrecv;

/* The hooks for several threads in MPI. These hooks take the lock when a receive is posted, and when the receive
 * completes. */
ibp_openmpi_recv_function ibp_openmpi_hook_recv_among_threads;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv_among_threads;

/* Execute a blocking receive whose operation was found by ibp_openmpi_find_watch. The status must not be
 * MPI_STATUS_IGNORE. */
ibp_openmpi_recv_function ibp_openmpi_recv_other;

/* Before a receive is posted: return its watch (completion.h); IBP_UNWATCHED if ibprof must not count the receive. */
#define IBP_UNWATCHED 0
uint64_t ibp_openmpi_find_watch(ibp_handle communicator, int tag);

#endif
