/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The stress of a graph's three-dimensional layout. Two terms add to the stress: edges of wrong length, and close
 * vertices that no edge joins. Vertices are sorted into cells with side length 1, to find pairs with a distance below
 * 1. So the time is proportional to the number of edges and close pairs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ibprof_kernels/topology.h"

/* Maximum distance of a cell from the origin, so that the cell's coordinates fit into integers. */
#define FARTHEST 1e9

/* Vertices sorted by the hash of their cell, with their positions and cells. */
typedef struct {
    uint32_t *vertex;
    double (*position)[3];
    int32_t (*cell)[3];
    /* [hashes + 2], index of the first vertex with each hash */
    uint32_t *first;
    uint32_t mask;
} cells_t;

static uint32_t hash_of(uint32_t mask, const int32_t cell[3])
{
    uint32_t mixed =
        (uint32_t)cell[0] * 0x9e3779b1u ^ (uint32_t)cell[1] * 0x85ebca6bu ^ (uint32_t)cell[2] * 0xc2b2ae35u;
    return (mixed ^ mixed >> 15) & mask;
}

static int find_cell(const double position[3], int32_t cell[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double at = floor(position[axis]);
        if (!(fabs(at) < FARTHEST)) return -EDOM;
        cell[axis] = (int32_t)at;
    }
    return 0;
}

static void free_cells(cells_t *cells)
{
    free(cells->vertex);
    free(cells->position);
    free(cells->cell);
    free(cells->first);
}

static int sort_into_cells(cells_t *cells, const double (*position)[3], uint32_t vertices)
{
    uint32_t hashes = 64;
    while (hashes < vertices && hashes < 1u << 30) hashes *= 2;
    size_t capacity = (size_t)vertices + 1;
    *cells = (cells_t){.vertex = malloc(capacity * sizeof *cells->vertex),
                       .position = malloc(capacity * sizeof *cells->position),
                       .cell = malloc(capacity * sizeof *cells->cell),
                       .first = calloc((size_t)hashes + 2, sizeof *cells->first),
                       .mask = hashes - 1};
    if (!cells->vertex || !cells->position || !cells->cell || !cells->first) return -ENOMEM;
    int32_t cell[3];
    for (uint32_t vertex = 0; vertex < vertices; vertex++) {
        int status = find_cell(position[vertex], cell);
        if (status) return status;
        cells->first[hash_of(cells->mask, cell) + 2]++;
    }
    for (uint32_t hash = 2; hash < hashes + 2; hash++) cells->first[hash] += cells->first[hash - 1];
    /* `first[hash + 1]` is the next free index of a hash. After the loop, `first[hash + 1]` is the first index of the
     * next hash. */
    for (uint32_t vertex = 0; vertex < vertices; vertex++) {
        find_cell(position[vertex], cell);
        uint32_t at = cells->first[hash_of(cells->mask, cell) + 1]++;
        cells->vertex[at] = vertex;
        memcpy(cells->position[at], position[vertex], sizeof cells->position[at]);
        memcpy(cells->cell[at], cell, sizeof cell);
    }
    return 0;
}

/* Add `times` * `offset` to the gradient of `other`, and subtract the product from the gradient of `one`. */
static void pull(double (*gradient)[3], uint32_t one, uint32_t other, const double offset[3], double times)
{
    for (int axis = 0; axis < 3; axis++) {
        gradient[one][axis] -= times * offset[axis];
        gradient[other][axis] += times * offset[axis];
    }
}

static double measure(const double (*position)[3], uint32_t one, uint32_t other, double offset[3])
{
    double squared = 0;
    for (int axis = 0; axis < 3; axis++) {
        offset[axis] = position[other][axis] - position[one][axis];
        squared += offset[axis] * offset[axis];
    }
    return squared;
}

/* Multiply the stress and the gradient of a close pair by `sign`, and add them. */
static void repel(const double offset[3], double squared, double sign, double gamma, double (*gradient)[3],
                  uint32_t one, uint32_t other, double stress[3])
{
    stress[1] += sign * 2 * gamma * (squared > 0 ? 1 / squared : 1);
    stress[2] += sign * 2;
    /* The gradient of 1 / d^2 is -2 / d^4 times the offset. The stress counts a pair twice; `gradient` is the gradient
     * of half the stress. */
    if (squared > 0) pull(gradient, one, other, offset, -sign * gamma * 2 / (squared * squared));
}

/* Add the pairs of sorted vertex `at` with the vertices of a cell. In the vertex's own cell, skip earlier vertices. */
static void repel_from_cell(const cells_t *cells, uint32_t at, const int32_t cell[3], double gamma,
                            double (*gradient)[3], double stress[3])
{
    double offset[3];
    uint32_t hash = hash_of(cells->mask, cell), end = cells->first[hash + 1];
    int is_own = memcmp(cells->cell[at], cell, sizeof cells->cell[at]) == 0;
    for (uint32_t next = is_own ? at + 1 : cells->first[hash]; next < end; next++) {
        if (memcmp(cells->cell[next], cell, sizeof cells->cell[next]) != 0) continue;
        double squared = measure((const double (*)[3])cells->position, at, next, offset);
        if (squared < 1) repel(offset, squared, 1, gamma, gradient, cells->vertex[at], cells->vertex[next], stress);
    }
}

int ibp_stress(const double (*position)[3], uint32_t vertices, const uint32_t (*edge)[2], const double *length,
               size_t edges, double gamma, double (*gradient)[3], double stress[3])
{
    double offset[3];
    cells_t cells;
    int status = sort_into_cells(&cells, position, vertices);
    if (status) goto free;
    memset(gradient, 0, (size_t)vertices * sizeof *gradient);
    memset(stress, 0, 3 * sizeof *stress);
    for (uint32_t at = 0; at < vertices; at++) {
        const int32_t *own = cells.cell[at];
        /* Search the vertex's cell and 13 of its 26 neighbour cells. The 13 opposite cells are left out, so that each
         * pair is counted once. */
        for (int side = 13; side < 27; side++) {
            int32_t cell[3] = {own[0] + side / 9 - 1, own[1] + side / 3 % 3 - 1, own[2] + side % 3 - 1};
            repel_from_cell(&cells, at, cell, gamma, gradient, stress);
        }
    }
    for (size_t at = 0; at < edges; at++) {
        uint32_t one = edge[at][0], other = edge[at][1];
        double squared = measure(position, one, other, offset), missed = squared - length[at] * length[at];
        stress[0] += 2 * missed * missed;
        pull(gradient, one, other, offset, 4 * missed);
        /* An edge joins this pair, so subtract the term of close pairs. */
        if (squared < 1) repel(offset, squared, -1, gamma, gradient, one, other, stress);
    }
free:
    free_cells(&cells);
    return status;
}
