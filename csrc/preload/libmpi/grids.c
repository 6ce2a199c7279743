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

#define GRIDS_MAX 8 /* maximum number of recorded grids, since a program may create many */

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

/* -- neighbours ---------------------------------------------------------------------------------------------------- */

enum { IS_CART, IS_GRAPH, IS_DIST_GRAPH, TOPOLOGIES };

/* Return the type of a communicator's topology; TOPOLOGIES if the communicator has no topology. */
static int find_topology(ibp_handle communicator)
{
    static const int values[][TOPOLOGIES] = {
        [IBP_ABI_OPENMPI] = {1, 2, 3}, [IBP_ABI_MPICH] = {2, 1, 3}, [IBP_ABI_STANDARD] = {211, 212, 213}};
    int (*const test)(ibp_handle, int *) = (int (*)(ibp_handle, int *))ibp_mpi_symbol("PMPI_Topo_test");
    int value = 0, found = 0;

    if (!test || test(communicator, &value)) return TOPOLOGIES;
    while (found < TOPOLOGIES && values[ibp_mpi.abi][found] != value) found++;
    return found;
}

static int sources_in_grid(ibp_handle communicator, int most, int *sources)
{
    const cartdim_get_t cartdim_get = (cartdim_get_t)ibp_mpi_symbol("PMPI_Cartdim_get");
    int (*const shift)(ibp_handle, int, int, int *, int *) =
        (int (*)(ibp_handle, int, int, int *, int *))ibp_mpi_symbol("PMPI_Cart_shift");
    int dimensions = 0, count = 0;

    if (!cartdim_get || !shift || cartdim_get(communicator, &dimensions)) return -1;
    for (int i = 0; i < dimensions; i++) {
        int of[2];

        if (shift(communicator, i, 1, &of[0], &of[1])) return -1;
        for (int side = 0; side < 2; side++) {
            if (of[side] >= 0 && count < most) sources[count] = of[side];
            count += of[side] >= 0;
        }
    }
    return count > most ? -1 : count;
}

static int sources_in_graph(ibp_handle communicator, int most, int *sources)
{
    int (*const count_all)(ibp_handle, int, int *) =
        (int (*)(ibp_handle, int, int *))ibp_mpi_symbol("PMPI_Graph_neighbors_count");
    int (*const read)(ibp_handle, int, int, int *) =
        (int (*)(ibp_handle, int, int, int *))ibp_mpi_symbol("PMPI_Graph_neighbors");
    int rank = 0, count = 0;

    if (!count_all || !read || ibp_mpi.comm_rank(communicator, &rank) || count_all(communicator, rank, &count))
        return -1;
    return count > most || read(communicator, rank, count, sources) ? -1 : count;
}

static int sources_in_distributed_graph(ibp_handle communicator, int most, int *sources)
{
    int (*const count_all)(ibp_handle, int *, int *, int *) =
        (int (*)(ibp_handle, int *, int *, int *))ibp_mpi_symbol("PMPI_Dist_graph_neighbors_count");
    int (*const read)(ibp_handle, int, int *, int *, int, int *, int *) =
        (int (*)(ibp_handle, int, int *, int *, int, int *, int *))ibp_mpi_symbol("PMPI_Dist_graph_neighbors");
    int count = 0, destinations = 0, is_weighted = 0;
    int weights[IBP_SOURCES_MAX], to[IBP_SOURCES_MAX], to_weights[IBP_SOURCES_MAX];

    if (!count_all || !read || most > IBP_SOURCES_MAX) return -1;
    if (count_all(communicator, &count, &destinations, &is_weighted)) return -1;
    /* MPICH ends the program if the arrays are too short for all neighbours. */
    if (count > most || destinations > most) return -1;
    return read(communicator, count, sources, weights, destinations, to, to_weights) ? -1 : count;
}

int ibp_graph_sources(ibp_handle communicator, int most, int *sources)
{
    switch (find_topology(communicator)) {
    case IS_CART:
        return sources_in_grid(communicator, most, sources);
    case IS_GRAPH:
        return sources_in_graph(communicator, most, sources);
    case IS_DIST_GRAPH:
        return sources_in_distributed_graph(communicator, most, sources);
    default:
        return -1;
    }
}
