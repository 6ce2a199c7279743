/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The layout of a tagged message's match bits. Match bits contain the tag, the context, and in the highest bits the
 * protocol bits. If the provider cannot send an integer with a message (remote CQ data), match bits also contain the
 * sender's rank. The protocol bits show the role of a message in a rendezvous: announcement, reply or data. Source:
 * ofi_types.h of MPICH 4.3 and 5.0. The layout of Intel MPI was found from observed messages.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_LAYOUT_H

#include "platform/system.h"
#include "sources/mpich/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* The protocol bits of each role. */
struct ibp_fi_protocol_bits {
    /* The bits of `synchronous`, `announced`, `announced_packed` and `huge`. */
    uint64_t mask;
    /* Data of a synchronous send (MPI_Ssend). */
    uint64_t synchronous;
    /* `announced`: an announcement of data that follow later. `announced_packed`: an announcement of data that the
     * sender must pack. `announced` and `announced_packed` are 0 if ibprof does not know the rendezvous of this MPI. */
    uint64_t announced, announced_packed;
    /* The first part of a message; the receiver reads the rest from the sender's memory. 0 if this MPI has no such
     * messages. */
    uint64_t huge;
    /* A reply of the receiver. */
    uint64_t reply;
    /* A message with announced data, or a header that contains the size of announced data. */
    uint64_t part;
};

struct ibp_fi_layout {
    unsigned tag_bits, context_shift, context_bits, protocol_shift;
    struct ibp_fi_protocol_bits protocol;
};

extern IBP_INTERNAL struct ibp_fi_layout ibp_fi_layout;

void ibp_fi_find_layout(void);

/* Return whether senders announce the data of a rendezvous. ibprof counts announced bytes as soon as an announcement or
 * a later header shows the size, even if the data follow later. */
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
