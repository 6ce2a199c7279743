/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What the messages of MPICH and its kin (Intel MPI, and by design MVAPICH and Cray MPICH) tell about themselves by the tag
 * that they carry on the network: the communicator, as a number of the library's own, and the tag in it. Collectives have
 * contexts of their own; what goes on sending after its call has returned takes the next tag of its communicator.
 */
#ifndef IBPROF_SOURCES_MPICH_MESSAGES_H
#define IBPROF_SOURCES_MPICH_MESSAGES_H

#include "libmpi/got.h"
#include "libmpi/library.h"
#include "sources/mpich/proof.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_mpich_envelope {
    uint32_t context;
    uint32_t tag;
    /* Of the library's own: it has no data. */
    bool is_control;
};

/* Counts a message: one under such a tag, or one of MPICH's active messages, which carry what the network's own calls cannot
 * and whose bytes of the application's are counted where it makes the call. */
void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);

/* Counts bytes that this process reads from a peer. */
void ibp_mpich_count_read(uint32_t peer, uint64_t bytes);

/* What both sources of this kin have in their frames; see source.h. */
#define IBP_MPICH_SOURCE                                                                                               \
    .labels_sends = true, .knows_addresses = true, .detach = ibp_got_restore, .before_tag = ibp_mpich_before_tag,      \
    .after_tag = ibp_mpich_after_tag, .before_start = ibp_mpich_before_start,                                          \
    .forget_communicator = ibp_mpich_forget_communicator, .expect_message = ibp_mpich_expect
void ibp_mpich_before_tag(void);
void ibp_mpich_after_tag(bool succeeded);
void ibp_mpich_forget_communicator(ibp_handle communicator);
void ibp_mpich_describe_gaps(char *notes, size_t bytes);
void ibp_mpich_before_start(size_t count, void **requests);

#endif
