/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Match bits of a tagged message: the tag, the context, the sender's rank if the provider cannot send data with a
 * message, and in the highest bits the protocol bits. The protocol bits show the role of the message in a protocol,
 * such as an announcement, a reply or data. Source: ofi_types.h of MPICH 4.3 and 5.0. The layout of Intel MPI was found
 * by observing the messages that it sends.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H

#include "platform/system.h"
#include "sources/mpich/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* The protocol bits of a message for each role. */
struct ibp_fi_protocol_bits {
    /* All bits below, except `reply` and `part`. */
    uint64_t mask;
    /* Data of MPI_Ssend. */
    uint64_t synchronous;
    /* `announced`: an announcement of data that a rendezvous moves later. `announced_packed`: such an announcement, if
     * the sender must pack the data. Both are 0 if ibprof does not know the rendezvous of this MPI. */
    uint64_t announced, announced_packed;
    /* The first part of a message; the receiver reads the rest from the sender's memory. 0 in an MPI without such
     * messages. */
    uint64_t huge;
    /* A reply of the receiver. */
    uint64_t reply;
    /* A part of an announced message. */
    uint64_t part;
};

struct ibp_fi_layout {
    unsigned tag_bits, context_shift, context_bits, protocol_shift;
    struct ibp_fi_protocol_bits protocol;
};

extern IBP_INTERNAL struct ibp_fi_layout ibp_fi_layout;

/* Find the layout of this MPI; MPI must be initialised. */
void ibp_fi_find_layout(void);

/* Return whether senders announce the data of a rendezvous. Then ibprof counts the announcement, and not the movement
 * of the data. */
static inline bool ibp_fi_announces(void)
{
    return ibp_fi_layout.protocol.announced;
}

static inline struct ibp_mpich_envelope ibp_fi_envelope(uint64_t bits)
{
    return (struct ibp_mpich_envelope){
        .context = (uint32_t)(bits >> ibp_fi_layout.context_shift) & ((UINT32_C(1) << ibp_fi_layout.context_bits) - 1),
        .tag = (uint32_t)bits & ((UINT32_C(1) << ibp_fi_layout.tag_bits) - 1),
    };
}

#endif
