/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Tagged messages of a rendezvous. The protocol bits (libfabric_layout.h) mark a message as announcement, reply or
 * data. In MPICH 4.3 and later, a rendezvous begins with an announcement. An announcement is an empty message with the
 * program's tag, sent inside the program's send call. After the receiver's reply, the data follow in any later call, by
 * tagged messages, writes of the sender, or reads of the receiver. The bytes count for the call that sends the
 * announcement (docs/decisions/0024-announced-messages.md).
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

/* A tagged message that MPI passes to libfabric. */
struct ibp_fi_tagged {
    uint64_t bits;
    size_t bytes;
    /* The data of the message, if libfabric copies them before the send function returns; otherwise NULL. */
    const void *injected;
    /* The remote CQ data: an integer that the provider sends with the message; 0 without remote CQ data. */
    uint64_t extra;
};

void ibp_fi_count_protocol_message(struct ibp_fi_tagged message, uint32_t peer);

void ibp_fi_describe_rendezvous(char *notes, size_t bytes);

#endif
