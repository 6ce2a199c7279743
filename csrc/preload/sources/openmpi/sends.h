/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table of the calls that send.
 */
#ifndef IBPROF_SOURCES_OPENMPI_SENDS_H
#define IBPROF_SOURCES_OPENMPI_SENDS_H

#include "platform/system.h"
#include "sources/openmpi/table.h"

ibp_openmpi_send_function ibp_openmpi_hook_send;
ibp_openmpi_isend_function ibp_openmpi_hook_isend;

/* The same for messages that check the clock. */
ibp_openmpi_send_function ibp_openmpi_hook_send_periodic;
ibp_openmpi_isend_function ibp_openmpi_hook_isend_periodic;

/* Number of the probe's messages that passed the hooks before recording began. */
extern IBP_INTERNAL int ibp_openmpi_probes_seen;

#endif
