/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification that what is seen of MPICH's messages is what MPI was asked to send. In some versions a message of a
 * process to itself goes through the network. In the others the first messages to other processes are checked. When a
 * source fails, it detaches and its counters are discarded.
 */
#ifndef IBPROF_SOURCES_MPICH_PROOF_H
#define IBPROF_SOURCES_MPICH_PROOF_H

#include "libmpi/library.h"

#include <stddef.h>
#include <stdint.h>

/* Send a message to this process. Return 0, or -1 with the reason in `why` when something else was seen. */
int ibp_mpich_probe(char *why, size_t why_bytes);

/* Check a message seen while nothing is recorded: it may be that one. */
void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes);

/* While ibp_source_unproved: a call is about to send this, and this was seen. */
#define IBP_NO_TAG UINT32_MAX
void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag);
void ibp_mpich_compare(uint32_t tag, uint64_t bytes);

/* Append a sentence if no message verified the source. */
void ibp_mpich_describe_proof(char *notes, size_t bytes);

/* Number of passes of the hooked progress loop. */
extern IBP_INTERNAL uint32_t ibp_mpich_passes;

#endif
