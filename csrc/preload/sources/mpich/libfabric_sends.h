/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What MPICH and Intel MPI send and read through libfabric.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

/* Find the layout of this MPI's match bits; MPI must be initialised. */
void ibp_fi_find_layout(void);

/* Hook the functions by which an endpoint, or one of its contexts, sends and reads. */
void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
