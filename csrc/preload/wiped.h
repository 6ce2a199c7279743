/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What a forked child must not inherit: it shares our counters, and is not the process that they are of. The page that this
 * lies in reads as zeros in a child, so a child records nothing and finds no lock taken.
 */
#ifndef IBPROF_WIPED_H
#define IBPROF_WIPED_H

#include "system.h"

#include <stdbool.h>

struct ibp_wiped {
    bool active;      /* MPI calls are recorded: between MPI_Init and MPI_Finalize */
    bool recorded;    /* this process has a recording: it is a rank, or it posted work requests */
    char verbs_lock;  /* of all that verbs calls change, but for what a post adds up */
};

/* All zeros until ibp_wiped_open. */
extern IBP_INTERNAL struct ibp_wiped *ibp_wiped;

/* Makes the page, once. Returns 0 or a negative errno. */
int ibp_wiped_open(void);

#endif
