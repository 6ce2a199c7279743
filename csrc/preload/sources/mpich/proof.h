/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Verification of a source: the source must see the messages that the program sends. In some versions of MPI, a message
 * from a process to itself uses the network and verifies the source. In other versions, ibprof checks the first
 * messages to other processes.
 */
#ifndef IBPROF_SOURCES_MPICH_PROOF_H
#define IBPROF_SOURCES_MPICH_PROOF_H

#include "libmpi/library.h"

#include <stddef.h>
#include <stdint.h>

/* Send a message to this process. Return 0 if the source saw the message once with the right size and peer, or did not
 * see the message. Otherwise write the reason to `why` and return -1. */
int ibp_mpich_probe(char *why, size_t why_bytes);

/* Called for each message that the source sees before recording begins, such as the message of ibp_mpich_probe. */
void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes);

/* Used while ibp_source_unproved is set. ibp_mpich_expect: store the size and tag of the message that a call is about
 * to send. ibp_mpich_compare: compare a message that the source sees with the stored size and tag. */
#define IBP_NO_TAG UINT32_MAX
void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag);
void ibp_mpich_compare(uint32_t tag, uint64_t bytes);

void ibp_mpich_describe_proof(char *notes, size_t bytes);

/* Number of passes of the hooked progress loop. */
extern IBP_INTERNAL uint32_t ibp_mpich_passes;

#endif
