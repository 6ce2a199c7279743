/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Find out which algorithms of MPICH's collectives the environment variables request.
 */
#ifndef IBPROF_SOURCES_MPICH_FORCED_ALGORITHMS_H
#define IBPROF_SOURCES_MPICH_FORCED_ALGORITHMS_H

#include <stdbool.h>

/* Return whether an environment variable requests that a blocking collective uses the nonblocking collective and a
 * wait. Example: MPIR_CVAR_BCAST_INTRA_ALGORITHM=nb. `is_between_groups`: read the variable for intercommunicators. */
bool ibp_mpich_is_made_of_nonblocking(unsigned operation, bool is_between_groups);

#endif
