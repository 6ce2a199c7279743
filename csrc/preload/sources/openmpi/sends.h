/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table for sends.
 */
#ifndef IBPROF_SOURCES_OPENMPI_SENDS_H
#define IBPROF_SOURCES_OPENMPI_SENDS_H

#include "counting/counters.h"
#include "libmpi/datatypes.h"
#include "platform/system.h"
#include "sources/openmpi/table.h"

#include <stddef.h>
#include <stdint.h>

ibp_openmpi_send_function ibp_openmpi_hook_send;
ibp_openmpi_isend_function ibp_openmpi_hook_isend;

/* Hooks that check the clock at each message (IBPROF_INTERVAL). */
ibp_openmpi_send_function ibp_openmpi_hook_send_periodic;
ibp_openmpi_isend_function ibp_openmpi_hook_isend_periodic;

/* The hooks for several threads in MPI. Each message takes the lock once. */
ibp_openmpi_send_function ibp_openmpi_hook_send_among_threads;
ibp_openmpi_isend_function ibp_openmpi_hook_isend_among_threads;

/* Classify and count a message. `otherwise`: the operation of the application's messages outside of wrapped calls. */
void ibp_openmpi_see_any(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                         unsigned otherwise);

/* Add a message to a counter. The function reads the datatype even if `count` is 0, as Open MPI's functions do. */
static inline void ibp_openmpi_add_sent(uint64_t *amount, uint64_t *bins, size_t count, ibp_handle datatype)
{
    const uint64_t bytes = count * ibp_datatype_size_there(datatype);

    ibp_add(amount, bytes);
    ibp_add_size(bins, bytes);
}

/* Number of messages of ibp_openmpi_completion_probe that the hooks have seen. */
extern IBP_INTERNAL int ibp_openmpi_probes_seen;

#endif
