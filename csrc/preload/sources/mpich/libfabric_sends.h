/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of MPICH and Intel MPI through libfabric.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

/* Hook the functions that move data, of an endpoint and of its contexts. */
void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
