/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What MPICH and its kin send and read through libfabric.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

/* Finds which layout this MPI's match bits have; MPI must be initialised. */
void ibp_fi_find_layout(void);

/* Puts ours before what sends and reads by an endpoint, or by one of its contexts. */
void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
