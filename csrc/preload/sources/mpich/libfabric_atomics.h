/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Atomic operations on a peer's memory through libfabric. MPI uses them for one-sided calls, whose bytes ibprof counts
 * from the arguments. Outside of one-sided calls, the bytes that atomic operations send and fetch are counted here.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_ATOMICS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_ATOMICS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

/* Hook the functions for atomic operations of an endpoint and of its contexts. */
void ibp_fi_hook_atomics(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
