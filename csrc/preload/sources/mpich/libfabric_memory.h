/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads and writes of a peer's memory through libfabric: one-sided calls, and data of a rendezvous. Announced data are
 * not counted again when they move.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

#include <stdbool.h>
#include <stddef.h>

/* Hook the functions that read and write, of an endpoint and of its contexts. */
void ibp_fi_hook_memory(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

/* Hook the functions of a domain that register this process's memory, and that queue work. */
void ibp_fi_hook_domain(struct ibp_fi_domain *domain);

/* Return the bytes of the memory that this thread registered last, if peers may read but not write it; otherwise 0. */
size_t ibp_fi_registered_for_reads(void);

/* Return whether libfabric was asked for triggered operations, which move data when other data have arrived. */
bool ibp_fi_work_was_queued(void);

#endif
