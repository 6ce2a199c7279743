/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Cartesian grids of ranks, the coordinates of this process, and its neighbours in grids and graphs.
 */
#ifndef IBPROF_LIBMPI_GRIDS_H
#define IBPROF_LIBMPI_GRIDS_H

#include "libmpi/library.h"

/* Record the grid of a communicator that MPI_Cart_create has just created, if this process is on the grid. */
IBP_INTERNAL void ibp_grid_note(ibp_handle communicator);

/* Find the processes that send to this process in neighbourhood collectives. Write their ranks in the communicator to
 * `sources`. Return the number of sources. Return -1 if the number is unknown, or if this process has more than `most`
 * sources or (in a distributed graph) destinations. The lock must be free. */
IBP_INTERNAL int ibp_graph_sources(ibp_handle communicator, int most, int *sources);

#endif
