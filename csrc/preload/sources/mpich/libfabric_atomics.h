/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Atomic operations on a peer's memory through libfabric. Atomic operations count only outside of MPI's one-sided
 * calls, which ibprof counts from the arguments. If MPI announces the data of a rendezvous (ibp_fi_announces), ibprof
 * counts no atomic operations.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_ATOMICS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_ATOMICS_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

void ibp_fi_hook_atomics(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

#endif
