/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Reads and writes of a peer's memory through libfabric, for one-sided calls and for data of a rendezvous. If MPI
 * announces the data of a rendezvous, ibprof counts the announcements instead of reads and writes.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_MEMORY_H

#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_peers.h"

#include <stdbool.h>
#include <stddef.h>

void ibp_fi_hook_memory(struct ibp_fi_endpoint *object, struct ibp_fi_known_endpoint *owner);

/* Hook two functions of a domain: the registration of memory, and `control`, which queues triggered operations. */
void ibp_fi_hook_domain(struct ibp_fi_domain *domain);

/* Return the size in bytes of the memory that this thread registered last; 0 if peers may write to the memory, or must
 * not read the memory. */
size_t ibp_fi_registered_for_reads(void);

/* Return whether MPI has used triggered operations of libfabric. A triggered operation moves data after other data have
 * arrived. */
bool ibp_fi_work_was_queued(void);

#endif
