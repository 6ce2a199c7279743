/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Announcements that do not state how many bytes the rendezvous will move. ibprof remembers them until later messages
 * show the number. The lock must be held.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_fi_announcement {
    uint32_t peer;
    /* The context without the bit that marks collectives, because messages with the data lack this bit. */
    uint32_t context;
    /* Number of the call that sent the announcement. */
    uint16_t call;
};

/* Remember an announcement. If there is no space, only count it. */
void ibp_fi_pend(struct ibp_fi_announcement announcement);

/* Return whether an announcement to a peer, with this context, may be pending. */
bool ibp_fi_is_pending(uint32_t peer, uint32_t context);

/* Remove the oldest announcement to a peer with this context. Return the number of the call that sent it. If the
 * announcements to the peer with this context are from several call sites, return only their operation. If they have
 * several operations, or if there is no announcement, return IBP_OPERATION_UNATTRIBUTED. */
unsigned ibp_fi_settle(uint32_t peer, uint32_t context);

#endif
