/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Tagged messages with a purpose. A rendezvous of MPICH (4.3 and later) begins with an announcement: the sending call
 * sends an empty message under the program's tag. After the receiver's reply, the data follow in any later call: in
 * tagged messages, by writes of the sender, or by reads of the receiver. Bytes are counted when they are announced;
 * docs/decisions/0024-announced-messages.md gives the reasons.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

/* A tagged message, as it was passed to libfabric. */
struct ibp_fi_tagged {
    uint64_t bits;
    size_t bytes;
    /* The data, if libfabric copied them in the call; otherwise NULL. */
    const void *injected;
    /* The data that the provider sends with the message; 0 if it sends none. */
    uint64_t extra;
};

/* Count a message whose match bits name a purpose. */
void ibp_fi_count_purposeful(struct ibp_fi_tagged message, uint32_t peer);

/* Append a description of unseen rendezvous data. */
void ibp_fi_describe_rendezvous(char *notes, size_t bytes);

#endif
