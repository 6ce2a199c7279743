/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages that MPICH and Intel MPI send through libfabric.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_SENDS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

/* Hook the functions with which an endpoint or transmit context moves data. `owner`: the endpoint. */
void ibp_fi_hook_sends(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
