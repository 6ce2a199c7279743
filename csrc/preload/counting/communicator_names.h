/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Names of communicators and windows. All members derive the same name without a message: from the parent's name, the
 * number of the creating call among the collective calls on the parent, and the first member's world rank. A
 * communicator that only a group creates is named by its members, the tag, and the number of earlier communicators with
 * the same members and tag.
 *
 * The table has a fixed size. Communicators beyond it have no name; neither have spawned and connected communicators.
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
    /* 0 where the name is unknown. */
    uint64_t name;
    /* Number of collective calls on it so far. */
    uint64_t calls;
    /* Number of the communicator's processes, in both groups of an intercommunicator, and number of this process. */
    uint32_t size, member;
    /* The communicator is an intercommunicator. */
    bool has_two_groups;
    /* The numbers of messages received on the communicator are unknown. */
    bool is_disordered;
    /* Messages on the communicator were numbered (counting/envelopes.h). */
    bool has_envelopes;
    /* The sources of its neighbourhood collectives were added to the recording, or the recording was full. */
    bool has_sources;
};

/* Enter MPI_COMM_WORLD and MPI_COMM_SELF. */
void ibp_names_begin(void);

/* Return the entry of a communicator; NULL without a name. The lock must be held. */
struct ibp_named_communicator *ibp_name_find(ibp_handle communicator);

/* Return whether some communicator did not fit the table. */
bool ibp_names_are_full(void);

/* The creation of a communicator. */
struct ibp_making {
    /* enum ibp_operation */
    unsigned operation;
    /* Name of the parent, and number of the creating call on the parent; 0 where the parent is unknown. */
    uint64_t parent, number;
    ibp_handle parent_handle;
    /* The tag argument of calls on a group. */
    uint64_t tag;
};

/* Name a new communicator, which may be null. The lock must be free, because MPI is called. */
void ibp_name_made(ibp_handle made, const struct ibp_making *making);

/* Name a window of a communicator; the window may be null. The lock must be free. Calls on the window are numbered
 * separately from calls on the communicator. */
void ibp_name_window(ibp_handle window, ibp_handle communicator, uint64_t number);

/* Forget a communicator that is freed. The lock must be held. */
void ibp_name_forget(ibp_handle communicator);

#endif
