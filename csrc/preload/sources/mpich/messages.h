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
#include "sources/mpich/proof.h"

#include <stdbool.h>
#include <stdint.h>

struct ibp_mpich_envelope {
    uint32_t context;
    uint32_t tag;
    /* Sent by the library itself: it has no data. */
    bool is_control;
};

/* Count a message under such a tag, or an active message of MPICH. Active messages carry what the network's own
 * calls cannot; their application's bytes are counted in the application's call. */
void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes);
void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes);

/* Count bytes that this process reads from a peer. */
void ibp_mpich_count_read(uint32_t peer, uint64_t bytes);

/* Members that both sources share; see sources/source.h. */
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
