/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification that the messages that ibprof sees are the messages that MPI was asked to send. In some versions a
 * message of a process to itself goes through the network. In the others the first messages to other processes are
 * checked. When a source fails, it detaches and its counters are discarded.
 */
#ifndef IBPROF_SOURCES_MPICH_PROOF_H
#define IBPROF_SOURCES_MPICH_PROOF_H

#include "libmpi/library.h"

#include <stddef.h>
#include <stdint.h>

/* Send a message to this process. Return 0, or -1 with the reason in `why` when a different message was seen. */
int ibp_mpich_probe(char *why, size_t why_bytes);

/* Check a message that is seen while nothing is recorded: it may be the probe. */
void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes);

/* While ibp_source_unproved: note the message that a call is about to send; check a seen message. */
#define IBP_NO_TAG UINT32_MAX
void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag);
void ibp_mpich_compare(uint32_t tag, uint64_t bytes);

/* Append a sentence if no message verified the source. */
void ibp_mpich_describe_proof(char *notes, size_t bytes);

/* Number of passes of the hooked progress loop. */
extern IBP_INTERNAL uint32_t ibp_mpich_passes;

#endif
