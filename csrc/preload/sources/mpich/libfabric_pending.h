/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Announcements that do not show their size, until their data show it. The lock must be held.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct ibp_fi_announcement {
    uint32_t peer;
    /* Without the bit that marks collectives, which the data lack. */
    uint32_t context;
    /* Number of the call that announced. */
    uint16_t call;
};

/* Keep an announcement. Where there is no place for more, only their number is kept. */
void ibp_fi_pend(struct ibp_fi_announcement announcement);

/* Return whether there may be an announcement to a peer under a context. */
bool ibp_fi_is_pending(uint32_t peer, uint32_t context);

/* Remove the oldest announcement to a peer under a context. Return the number of its call: of the operation alone where
 * calls of several sites are pending, IBP_OPERATION_UNATTRIBUTED where those of several operations are or none is. */
unsigned ibp_fi_settle(uint32_t peer, uint32_t context);

#endif
