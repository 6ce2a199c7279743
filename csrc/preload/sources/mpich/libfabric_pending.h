/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Announcements without a size, kept until their data show the size. The lock must be held.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_fi_announcement {
    uint32_t peer;
    /* The context without the bit that marks collectives, since the context in the data lacks this bit. */
    uint32_t context;
    /* Number of the announcing call. */
    uint16_t call;
};

/* Keep an announcement. If there is no space, it is only counted. */
void ibp_fi_pend(struct ibp_fi_announcement announcement);

/* Return whether there may be an announcement to a peer under a context. */
bool ibp_fi_is_pending(uint32_t peer, uint32_t context);

/* Remove the oldest announcement to a peer under a context. Return the number of its call. Where calls of several sites
 * are pending, return only their operation. Where calls of several operations are pending, or none is, return
 * IBP_OPERATION_UNATTRIBUTED. */
unsigned ibp_fi_settle(uint32_t peer, uint32_t context);

#endif
