/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/grids.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <string.h>

#define GRIDS_MAX 8 /* of a process; a program may make one in each time step */

typedef int (*cartdim_get_t)(ibp_handle, int *);
typedef int (*cart_get_t)(ibp_handle, int, int *, int *, int *);

static void record(const struct ibp_grid *grid)
{
    static unsigned noted;
    struct ibp_grid *kept;

    ibp_lock();
    if (noted < GRIDS_MAX && (kept = ibp_recording_reserve(IBP_SEGMENT_GRIDS))) {
        *kept = *grid;
        ibp_recording_publish(IBP_SEGMENT_GRIDS);
        noted++;
    }
    ibp_unlock();
}

void ibp_grid_note(ibp_handle communicator)
{
    void *const find[] = {ibp_mpi_symbol("PMPI_Cartdim_get"), ibp_mpi_symbol("PMPI_Cart_get")};
    cartdim_get_t cartdim_get;
    cart_get_t cart_get;
    struct ibp_grid grid;
    int dimensions = 0, period[IBP_GRID_DIMENSIONS];

    if (!find[0] || !find[1] || ibp_mpi_is_null(communicator)) return;
    memcpy(&cartdim_get, &find[0], sizeof cartdim_get);
    memcpy(&cart_get, &find[1], sizeof cart_get);
    memset(&grid, 0, sizeof grid);
    if (cartdim_get(communicator, &dimensions) || dimensions < 1 || dimensions > IBP_GRID_DIMENSIONS) return;
    if (cart_get(communicator, dimensions, grid.extent, period, grid.place)) return;
    grid.dimensions = (uint32_t)dimensions;
    for (int i = 0; i < dimensions; i++) grid.periodic |= (uint32_t)!!period[i] << i;
    record(&grid);
}
