/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hooks in Open MPI's table of the calls that receive, or probe for what is received next.
 */
#ifndef IBPROF_SOURCES_OPENMPI_RECEIVES_H
#define IBPROF_SOURCES_OPENMPI_RECEIVES_H

#include "sources/openmpi/table.h"

ibp_openmpi_recv_function ibp_openmpi_hook_recv;
ibp_openmpi_irecv_function ibp_openmpi_hook_irecv;
ibp_openmpi_mprobe_function ibp_openmpi_hook_mprobe;
ibp_openmpi_improbe_function ibp_openmpi_hook_improbe;
ibp_openmpi_mrecv_function ibp_openmpi_hook_mrecv;
ibp_openmpi_imrecv_function ibp_openmpi_hook_imrecv;

/* Classify a receive, and count it on completion. Blocking receives need a status. */
ibp_openmpi_recv_function ibp_openmpi_recv_other;
ibp_openmpi_irecv_function ibp_openmpi_irecv_other;

#endif
