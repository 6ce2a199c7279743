/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Announcements of a rendezvous. These announcements do not contain the size of the data. Each announcement is
 * remembered until a later message shows the size. All functions require the lock.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_fi_announcement {
    uint32_t peer;
    /* The context without the bit that marks collectives, because later messages of the rendezvous lack this bit. */
    uint32_t context;
    /* Number of the `ibp_call` that sent the announcement. */
    uint16_t call;
};

/* Remember an announcement. If the table is full, only count the announcement. */
void ibp_fi_pend(struct ibp_fi_announcement announcement);

/* Return whether an announcement with this peer and context may be pending. */
bool ibp_fi_is_pending(uint32_t peer, uint32_t context);

/* Remove the oldest announcement with this peer and context, and return the number of the sending `ibp_call`. If
 * pending announcements with this peer and context are from several call sites, return the operation of these
 * announcements. If the announcements have several operations, or if there is no announcement, return
 * IBP_OPERATION_UNATTRIBUTED. */
unsigned ibp_fi_settle(uint32_t peer, uint32_t context);

#endif
