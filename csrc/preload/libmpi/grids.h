/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Cartesian grids that the program lays its ranks out on: where this process is on each.
 */
#ifndef IBPROF_LIBMPI_GRIDS_H
#define IBPROF_LIBMPI_GRIDS_H

#include "libmpi/library.h"

/* Notes the grid of a communicator that MPI_Cart_create just made; of a process that is not on it, nothing. */
IBP_INTERNAL void ibp_grid_note(ibp_handle communicator);

#endif
