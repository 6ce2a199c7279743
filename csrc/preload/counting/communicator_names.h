/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Names of communicators and windows. A name is a 64-bit hash that identifies the communicator, not the text of
 * MPI_Comm_set_name. All members compute the same name without exchanging messages. The name is a hash of the parent's
 * name, the first member's world rank, and the number of earlier collective calls on the parent. MPI_Comm_create_group
 * and similar calls are not collective on the parent. If such a call creates a communicator, the name is a hash of
 * members, tag, and the number of earlier communicators with the same members and tag.
 *
 * The table has a fixed size: when it is full, new communicators have no name. Communicators that include processes of
 * another job (MPI_Comm_spawn, MPI_Comm_connect) have no name.
 */
#ifndef IBPROF_COUNTING_COMMUNICATOR_NAMES_H
#define IBPROF_COUNTING_COMMUNICATOR_NAMES_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_NAMES_MAX 512

struct ibp_named_communicator {
    /* 0 if the entry is free. */
    ibp_handle handle;
    /* The name, a hash; 0 if the name is unknown. */
    uint64_t name;
    /* Number of collective calls on the communicator so far. */
    uint64_t calls;
    /* `size`: number of the communicator's processes, including both groups of an intercommunicator. `member`: index of
     * this process among these processes, from 0. */
    uint32_t size, member;
    /* True if the communicator is an intercommunicator. */
    bool has_two_groups;
    /* True if messages received on the communicator are no longer numbered (ibp_envelopes_disorder). */
    bool is_disordered;
    /* True if messages on the communicator were numbered (counting/envelopes.h). */
    bool has_envelopes;
    /* True after ibprof recorded, or tried to record, the sources of neighbourhood collectives on the communicator. */
    bool has_sources;
};

/* Enter MPI_COMM_WORLD and MPI_COMM_SELF. */
void ibp_names_begin(void);

/* Return the entry of a communicator; NULL if the communicator has no name. The lock must be held. */
struct ibp_named_communicator *ibp_name_find(ibp_handle communicator);

/* Return whether any communicator did not fit into the table. */
bool ibp_names_are_full(void);

struct ibp_creation {
    /* enum ibp_operation */
    unsigned operation;
    /* `parent`: name of the parent communicator. `number`: number of earlier collective calls on the parent. `parent`
     * and `number` are 0 if the parent is unknown. */
    uint64_t parent, number;
    /* After a nonblocking duplication: the original communicator, which has the same members. A program, and therefore
     * ibprof, may use the new communicator only after the request is complete. 0 after other calls. */
    ibp_handle duplicated;
    /* For a communicator created from a group: the tag argument, or a hash that includes the tag. */
    uint64_t tag;
};

/* Compute and store the name of a new communicator. The communicator may be MPI_COMM_NULL. The lock must be free,
 * because the function calls MPI. */
void ibp_name_made(ibp_handle made, const struct ibp_creation *making);

/* Compute and store the name of a window. The window may be MPI_WIN_NULL. `number`: number of earlier collective calls
 * on the communicator. Collective calls on the window are numbered separately. The lock must be free. */
void ibp_name_window(ibp_handle window, ibp_handle communicator, uint64_t number);

/* Forget a communicator that is freed. The lock must be held. */
void ibp_name_forget(ibp_handle communicator);

#endif
