/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages of MPICH and of MPIs derived from MPICH: Intel MPI, and (untested) MVAPICH and Cray MPICH. The tag on the
 * network contains MPI's tag and the context, a number that identifies the communicator. Collectives have separate
 * contexts.
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
    /* True if the message belongs to MPICH's protocol and contains no data of the application. */
    bool is_control;
};

void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);

/* ibp_mpich_call_of: return the number of the `ibp_call` that sent a message. The lock must be held.
 * ibp_mpich_count_for: count bytes that a call sent. The call may have returned. */
unsigned ibp_mpich_call_of(struct ibp_mpich_envelope envelope);
void ibp_mpich_count_for(unsigned call, uint32_t peer, uint64_t bytes);

/* ibp_mpich_count_own: count an active message as control message. ibp_mpich_count_active_message: count an active
 * message; while ibp_source_unproved is set, also compare the message with the expected message. */
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);
void ibp_mpich_count_own(uint32_t peer, uint64_t bytes);

/* Count bytes that this process writes to or reads from a peer's memory, outside of one-sided calls. After the program
 * has used windows or partitioned requests, count the bytes as control messages: user data are then counted from the
 * calls' arguments. */
void ibp_mpich_count_moved(enum ibp_direction direction, uint32_t peer, uint64_t bytes);

/* The members of struct ibp_source_operations that are equal in both sources for MPICH. */
#define IBP_MPICH_SOURCE                                                                                               \
    .labels_sends = true, .knows_addresses = true, .detach = ibp_got_restore, .before_tag = ibp_mpich_before_tag,      \
    .after_tag = ibp_mpich_after_tag, .forget_communicator = ibp_mpich_forget_communicator,                            \
    .starts_take_tags = ibp_mpich_starts_take_tags, .made_object = ibp_mpich_made_object,                              \
    .expect_message = ibp_mpich_expect, .sees_host = ibp_mpich_sees_host
void ibp_mpich_describe_gaps(char *notes, size_t bytes);

/* Return whether ranks of one host send messages over the network, as with IBPROF_INTRANODE=1. */
bool ibp_mpich_sees_host(void);

#endif
