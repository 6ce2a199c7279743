/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification of a source: the messages that it sees must be the messages that MPI was called to send. In some
 * versions of MPI, a message of a process to itself uses the network and verifies the source. In other versions, the
 * first messages to other processes are checked. If the verification fails, the source is detached and its counters are
 * discarded.
 */
#ifndef IBPROF_SOURCES_MPICH_PROOF_H
#define IBPROF_SOURCES_MPICH_PROOF_H

#include "libmpi/library.h"

#include <stddef.h>
#include <stdint.h>

/* Send a message to this process. Return 0 if the source saw this message or no message. If it saw anything else, write
 * the reason to `why` and return -1. */
int ibp_mpich_probe(char *why, size_t why_bytes);

/* Check a message that the source sees before recording begins: it may be the probe. */
void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes);

/* While ibp_source_unproved is set: remember the message that a call is about to send, and compare this message with
 * the message that the source sees. */
#define IBP_NO_TAG UINT32_MAX
void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag);
void ibp_mpich_compare(uint32_t tag, uint64_t bytes);

/* Append a sentence if no message verified the source. */
void ibp_mpich_describe_proof(char *notes, size_t bytes);

/* Number of passes of the hooked progress loop. */
extern IBP_INTERNAL uint32_t ibp_mpich_passes;

#endif
