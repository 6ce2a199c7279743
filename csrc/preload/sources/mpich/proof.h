/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Whether what is seen of MPICH's messages is what MPI was asked for. A message to itself at the start goes through the network
 * in some versions alone; in the others the first messages to other processes are the proof. A source that proves wrong takes
 * itself back: nothing of it is left in the recording but the word.
 */
#ifndef IBPROF_SOURCES_MPICH_PROOF_H
#define IBPROF_SOURCES_MPICH_PROOF_H

#include "libmpi/library.h"

#include <stddef.h>
#include <stdint.h>

/* Sends a message to itself. Returns 0, or -1 with the reason in `why` when what was seen of it is not what was sent. */
int ibp_mpich_probe(char *why, size_t why_bytes);

/* A message was seen while nothing is recorded: it may be that one. */
void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes);

/* While ibp_source_unproved: a call is about to send this, and this was seen. */
#define IBP_NO_TAG UINT32_MAX
void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag);
void ibp_mpich_compare(uint32_t tag, uint64_t bytes);

/* A sentence if there never was a message to prove anything by. */
void ibp_mpich_describe_proof(char *notes, size_t bytes);

#endif
