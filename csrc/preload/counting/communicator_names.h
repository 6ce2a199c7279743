/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Names of communicators and windows. All members derive the same name without a message: from the parent's name, the number of the
 * creating call among the collective calls on the parent, and the first member's world rank. A communicator that a
 * group alone creates is named by its members, the tag, and the number of earlier ones with the same members and tag.
 *
 * The table has a fixed size. Further communicators have no name; nor have spawned and connected ones.
 */
#ifndef IBPROF_COUNTING_COMMUNICATOR_NAMES_H
#define IBPROF_COUNTING_COMMUNICATOR_NAMES_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_NAMES_MAX 512

struct ibp_named_communicator {
    /* 0 in a free place. */
    ibp_handle handle;
    /* 0 where it is unknown. */
    uint64_t name;
    /* Number of collective calls on it so far. */
    uint64_t calls;
    /* Number of its processes, in both groups if it has two, and of this one among them. */
    uint32_t size, member;
    /* The world rank of this process and of all other members are known by ibp_communicator_find. */
    bool has_two_groups;
    /* The numbers of messages received on it are not known any more. */
    bool is_disordered;
    /* Messages on it were numbered (counting/envelopes.h). */
    bool has_envelopes;
    /* The sources of its neighbourhood collectives are in the recording, or found no space. */
    bool has_sources;
};

/* Enter MPI_COMM_WORLD and MPI_COMM_SELF. */
void ibp_names_begin(void);

/* Return the entry of a communicator; NULL when it has no name. The lock must be held. */
struct ibp_named_communicator *ibp_name_find(ibp_handle communicator);

/* Return whether some communicator did not fit the table. */
bool ibp_names_are_full(void);

/* How a communicator came about. */
struct ibp_making {
    /* enum ibp_operation */
    unsigned operation;
    /* Name of its parent, and number of the call on it; 0 where the parent is unknown. */
    uint64_t parent, number;
    ibp_handle parent_handle;
    /* Of calls on a group. */
    uint64_t tag;
};

/* Name a communicator that was just made, which may be null. Without the lock: MPI is asked about it. */
void ibp_name_made(ibp_handle made, const struct ibp_making *making);

/* Name a window of a communicator, likewise: calls on it are numbered apart from those on the communicator. */
void ibp_name_window(ibp_handle window, ibp_handle communicator, uint64_t number);

/* Forget one that is freed. The lock must be held. */
void ibp_name_forget(ibp_handle communicator);

#endif
