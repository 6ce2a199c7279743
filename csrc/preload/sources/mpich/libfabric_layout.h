/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Match bits of a tagged message: the tag, the context, the sender's rank where the provider carries no data with a
 * message, and above them the purpose of the message. Source: ofi_types.h of MPICH 4.3 and 5.0; for Intel MPI, its
 * messages.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H

#include "platform/system.h"
#include "sources/mpich/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of the purpose, and their meanings. */
struct ibp_fi_purposes {
    /* All of the following bits except `reply` and `part`. */
    uint64_t mask;
    /* Data of MPI_Ssend. */
    uint64_t synchronous;
    /* An announcement of data, which a rendezvous moves later; the same where the sender must pack the data. 0 in MPIs
     * with an unknown rendezvous. */
    uint64_t announced, announced_packed;
    /* The first part of a message whose rest the receiver reads; 0 in MPIs without such messages. */
    uint64_t huge;
    /* A reply of the receiver. */
    uint64_t reply;
    /* A part of an announced message. */
    uint64_t part;
};

struct ibp_fi_layout {
    unsigned tag_bits, context_shift, context_bits, purpose_shift;
    struct ibp_fi_purposes purposes;
};

extern IBP_INTERNAL struct ibp_fi_layout ibp_fi_layout;

/* Find the layout of this MPI; MPI must be initialised. */
void ibp_fi_find_layout(void);

/* Return whether senders announce the data of a rendezvous, so that the movement of the data is not counted. */
static inline bool ibp_fi_announces(void)
{
    return ibp_fi_layout.purposes.announced;
}

static inline struct ibp_mpich_envelope ibp_fi_envelope(uint64_t bits)
{
    return (struct ibp_mpich_envelope){
        .context = (uint32_t)(bits >> ibp_fi_layout.context_shift) & ((UINT32_C(1) << ibp_fi_layout.context_bits) - 1),
        .tag = (uint32_t)bits & ((UINT32_C(1) << ibp_fi_layout.tag_bits) - 1),
    };
}

#endif
