/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Tagged messages with a purpose. A rendezvous of MPICH (4.3 and later) begins with an announcement: an empty message
 * under the program's tag, by the call that sends. The data follow once the receiver has replied, in any later call:
 * in tagged messages, by writes of the sender or by reads of the receiver. Bytes are counted where they are announced.
 * docs/decisions/0024-announced-messages.md says why.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

/* A tagged message, as it was passed to libfabric. */
struct ibp_fi_tagged {
    uint64_t bits;
    size_t bytes;
    /* Its data, if libfabric copied them in the call; else NULL. */
    const void *injected;
    /* The data that the provider carries with it; 0 without any. */
    uint64_t extra;
};

/* Count a message whose match bits name a purpose. */
void ibp_fi_count_purposeful(struct ibp_fi_tagged message, uint32_t peer);

/* Append what was not seen of rendezvous. */
void ibp_fi_describe_rendezvous(char *notes, size_t bytes);

#endif
