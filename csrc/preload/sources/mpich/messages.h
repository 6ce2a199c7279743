/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of MPICH and of MPIs derived from it: Intel MPI, and by design MVAPICH and Cray MPICH. Their tag on the
 * network contains the communicator, as a number of the library, and the tag in that. Collectives have contexts of
 * their own. What sends after its call has returned uses the next tag of its communicator.
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
    /* Sent by the library itself: it has no data. */
    bool is_control;
};

/* Count a message under such a tag. */
void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);

/* Return the number of the call that a message belongs to, with the lock held. Count data of that call, which may have
 * returned. */
unsigned ibp_mpich_call_of(struct ibp_mpich_envelope envelope);
void ibp_mpich_count_for(unsigned call, uint32_t peer, uint64_t bytes);

/* Count an active message of MPICH, which carries what the network's own calls cannot; the application's bytes are
 * counted in the application's call. `own` is for one that is known to be no message of the application. */
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);
void ibp_mpich_count_own(uint32_t peer, uint64_t bytes);

/* Count bytes that this process writes to the memory of a peer, or reads from it. One-sided and partitioned calls count
 * them from their arguments; where there were some, these bytes may be theirs, and are control. */
void ibp_mpich_count_moved(enum ibp_direction direction, uint32_t peer, uint64_t bytes);

/* Members that both sources share; see sources/source.h. */
#define IBP_MPICH_SOURCE                                                                                               \
    .labels_sends = true, .knows_addresses = true, .detach = ibp_got_restore, .before_tag = ibp_mpich_before_tag,      \
    .after_tag = ibp_mpich_after_tag, .forget_communicator = ibp_mpich_forget_communicator,                            \
    .starts_take_tags = ibp_mpich_starts_take_tags, .made_object = ibp_mpich_made_object,                              \
    .expect_message = ibp_mpich_expect, .sees_host = ibp_mpich_sees_host
void ibp_mpich_describe_gaps(char *notes, size_t bytes);

/* Return whether ranks of one host use the network, as with IBPROF_INTRANODE=1. */
bool ibp_mpich_sees_host(void);

#endif
