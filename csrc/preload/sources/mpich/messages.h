/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of MPICH and of MPIs derived from it: Intel MPI, and by design MVAPICH and Cray MPICH. The tag on the
 * network contains the context, which is the library's number of the communicator, and MPI's tag. Collectives have
 * separate contexts. Operations that send after their call has returned use the next tag of their communicator.
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
    /* The library itself sent the message, without data. */
    bool is_control;
};

/* Count a message with such a tag. */
void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);

/* Return the number of the call that a message belongs to, with the lock held. Count data of that call, which may have
 * returned. */
unsigned ibp_mpich_call_of(struct ibp_mpich_envelope envelope);
void ibp_mpich_count_for(unsigned call, uint32_t peer, uint64_t bytes);

/* Count an active message of MPICH. Active messages carry operations that the network's own calls cannot carry. The
 * application's bytes are counted in the application's call. `own` marks a message that is certainly not the
 * application's. */
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);
void ibp_mpich_count_own(uint32_t peer, uint64_t bytes);

/* Count bytes that this process writes to the memory of a peer, or reads from it. One-sided and partitioned calls are
 * counted from their arguments. If there were such calls, these bytes may belong to them, and count as control. */
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
