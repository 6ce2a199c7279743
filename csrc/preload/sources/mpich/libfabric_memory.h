/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads and writes of a peer's memory through libfabric, for one-sided calls and for data of a rendezvous. Data that a
 * sender has announced are not counted here, because the announcement was counted.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

#include <stdbool.h>
#include <stddef.h>

/* Hook an endpoint's functions that read and write, also in its contexts. */
void ibp_fi_hook_memory(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

/* Hook a domain's functions that register memory of this process and that queue work. */
void ibp_fi_hook_domain(struct ibp_fi_domain *domain);

/* Return the size of the memory that this thread registered last, if peers may read the memory but not write it;
 * otherwise 0. */
size_t ibp_fi_registered_for_reads(void);

/* Return whether MPI uses triggered operations of libfabric, which move data when other data have arrived. */
bool ibp_fi_work_was_queued(void);

#endif
