/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of MPICH and of MPIs derived from it: Intel MPI, and, untested, MVAPICH and Cray MPICH. The tag on the
 * network contains MPI's tag and the context, which is MPICH's number of the communicator. Collectives have separate
 * contexts. For a call that sends after it has returned, MPICH uses the next tag of the communicator.
 */
#ifndef IBPROF_SOURCES_MPICH_MESSAGES_H
#define IBPROF_SOURCES_MPICH_MESSAGES_H

#include "libmpi/got.h"
#include "libmpi/library.h"
#include "sources/mpich/contexts.h"
#include "sources/mpich/counted_tags.h"
#include "sources/mpich/proof.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_mpich_envelope {
    uint32_t context;
    uint32_t tag;
    /* The message belongs to MPICH's protocol and has no data. */
    bool is_control;
};

/* Count a message with an envelope. */
void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);

/* ibp_mpich_call_of: return the number of the call to which a message belongs; the lock must be held.
 * ibp_mpich_count_for: count data of that call, which may have returned. */
unsigned ibp_mpich_call_of(struct ibp_mpich_envelope envelope);
void ibp_mpich_count_for(unsigned call, uint32_t peer, uint64_t bytes);

/* Count an active message. MPICH uses active messages for operations that the network does not support.
 * ibp_mpich_count_active_message: data of the application count for the present call. ibp_mpich_count_own: the message
 * has no data of the application. */
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);
void ibp_mpich_count_own(uint32_t peer, uint64_t bytes);

/* Count bytes that this process writes to the memory of a peer or reads from it. The bytes may belong to one-sided or
 * partitioned calls, which ibprof counts from their arguments. Therefore the bytes count as control messages if the
 * program makes such calls. */
void ibp_mpich_count_moved(enum ibp_direction direction, uint32_t peer, uint64_t bytes);

/* Members shared by both sources; see sources/source.h. */
#define IBP_MPICH_SOURCE                                                                                               \
    .labels_sends = true, .knows_addresses = true, .detach = ibp_got_restore, .before_tag = ibp_mpich_before_tag,      \
    .after_tag = ibp_mpich_after_tag, .forget_communicator = ibp_mpich_forget_communicator,                            \
    .starts_take_tags = ibp_mpich_starts_take_tags, .made_object = ibp_mpich_made_object,                              \
    .expect_message = ibp_mpich_expect, .sees_host = ibp_mpich_sees_host
void ibp_mpich_describe_gaps(char *notes, size_t bytes);

/* Return whether ranks of one host use the network, as with IBPROF_INTRANODE=1. */
bool ibp_mpich_sees_host(void);

#endif
