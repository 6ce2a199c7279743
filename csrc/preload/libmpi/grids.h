/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Cartesian grids of the program's ranks, and this process's coordinates on each.
 */
#ifndef IBPROF_LIBMPI_GRIDS_H
#define IBPROF_LIBMPI_GRIDS_H

#include "libmpi/library.h"

/* Record the grid of a communicator that MPI_Cart_create just made, if this process is on it. */
IBP_INTERNAL void ibp_grid_note(ibp_handle communicator);

#endif
