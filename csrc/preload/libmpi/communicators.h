/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What is known of a communicator or window: the world ranks of its members, and which operation an internal tag belongs to.
 */
#ifndef IBPROF_LIBMPI_COMMUNICATORS_H
#define IBPROF_LIBMPI_COMMUNICATORS_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Internal tags whose operation is remembered, until as many later ones were taken on the communicator. */
#define IBP_TAGS_REMEMBERED 16384

struct ibp_tag_memory {
    struct {
        int tag;
        uint16_t operation;
    } place[IBP_TAGS_REMEMBERED];
};

struct ibp_communicator {
    ibp_handle handle;
    /* NULL: ranks are world ranks. */
    uint32_t *world_rank;
    /* Of the group that messages go to. */
    int size;
    /* The two above are known. */
    bool described;
    /* Made for a window: its messages are one-sided traffic in disguise. */
    bool carries_windows;
    /* Open MPI's own, for partitioned messages. */
    bool carries_partitions;
    /* The one above is known. */
    bool is_examined;
    /* MPI_Comm_idup was called on it, which sends under tags that it takes later. */
    bool is_duplicated;
    /* By nonblocking calls, where the library does not show it. */
    uint32_t tags_taken;
    /* The operation of all of those, if they are all of one; IBP_OPERATION_NONE before the first. */
    uint16_t only_started;
    struct ibp_tag_memory *tags;
};

/* What is known of a communicator; looked up when it is met first. NULL when there is no memory. */
struct ibp_communicator *ibp_communicator_find(ibp_handle communicator);

/* The same, without asking MPI about it: for what a caller keeps there itself. */
struct ibp_communicator *ibp_communicator_enter(ibp_handle communicator);

/* The next one that is known, from place `*place` on, which is moved to it; NULL when there are no more. */
const struct ibp_communicator *ibp_communicator_at(size_t *place);

/* The same without looking it up: for a communicator that may have been freed. NULL when it is not known. */
const struct ibp_communicator *ibp_communicator_known(ibp_handle communicator);

/* What is known of a window. */
struct ibp_communicator *ibp_window_find(ibp_handle window);

/* To be called when it is freed: its address may become another one's. */
void ibp_communicator_forget(ibp_handle handle);

/* World rank of a member, or IBP_PEER_UNKNOWN. */
uint32_t ibp_communicator_peer(const struct ibp_communicator *communicator, int rank);

/* Notes that a communicator, which may not be complete yet, was made for a window. */
void ibp_communicator_note_carrier(ibp_handle communicator);

/* The operation that an internal tag belongs to: IBP_OPERATION_NONE, 0, when it is not known. */
unsigned ibp_tag_operation(const struct ibp_communicator *communicator, int tag);
void ibp_tag_remember(struct ibp_communicator *communicator, int tag, unsigned operation);

#endif
