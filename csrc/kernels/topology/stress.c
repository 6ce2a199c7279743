/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * How far a drawing of a graph in space is from one whose edges are as long as they should be and whose other vertices keep
 * apart. Vertices nearer than 1 to each other are found by cells of side 1, so that it takes time by edges and close pairs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ibprof_kernels/topology.h"

#define FARTHEST 1e9 /* of a cell from the middle, so that its number is an integer */

/* Vertices in the order of their cells' hashes, with their places and cells. */
typedef struct {
    uint32_t *vertex;
    double (*place)[3];
    int32_t (*cell)[3];
    uint32_t *first; /* [hash], where its part begins; two more at the end */
    uint32_t mask;
} cells_t;

static uint32_t hash_of(uint32_t mask, const int32_t cell[3])
{
    uint32_t mixed =
        (uint32_t)cell[0] * 0x9e3779b1u ^ (uint32_t)cell[1] * 0x85ebca6bu ^ (uint32_t)cell[2] * 0xc2b2ae35u;
    return (mixed ^ mixed >> 15) & mask;
}

static int find_cell(const double place[3], int32_t cell[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double at = floor(place[axis]);
        if (!(fabs(at) < FARTHEST)) return -EDOM;
        cell[axis] = (int32_t)at;
    }
    return 0;
}

static void free_cells(cells_t *cells)
{
    free(cells->vertex);
    free(cells->place);
    free(cells->cell);
    free(cells->first);
}

static int sort_into_cells(cells_t *cells, const double (*place)[3], uint32_t vertices)
{
    uint32_t hashes = 64;
    while (hashes < vertices && hashes < 1u << 30) hashes *= 2;
    size_t room = (size_t)vertices + 1;
    *cells = (cells_t){.vertex = malloc(room * sizeof *cells->vertex),
                       .place = malloc(room * sizeof *cells->place),
                       .cell = malloc(room * sizeof *cells->cell),
                       .first = calloc((size_t)hashes + 2, sizeof *cells->first),
                       .mask = hashes - 1};
    if (!cells->vertex || !cells->place || !cells->cell || !cells->first) return -ENOMEM;
    int32_t cell[3];
    for (uint32_t vertex = 0; vertex < vertices; vertex++) {
        int status = find_cell(place[vertex], cell);
        if (status) return status;
        cells->first[hash_of(cells->mask, cell) + 2]++;
    }
    for (uint32_t hash = 2; hash < hashes + 2; hash++) cells->first[hash] += cells->first[hash - 1];
    /* The part of a hash ends where the next one's begins, which is so once all are placed. */
    for (uint32_t vertex = 0; vertex < vertices; vertex++) {
        find_cell(place[vertex], cell);
        uint32_t at = cells->first[hash_of(cells->mask, cell) + 1]++;
        cells->vertex[at] = vertex;
        memcpy(cells->place[at], place[vertex], sizeof cells->place[at]);
        memcpy(cells->cell[at], cell, sizeof cell);
    }
    return 0;
}

/* Adds the way from one to the other, so many times, to what pulls at the other, and takes it from the one. */
static void pull(double (*gradient)[3], uint32_t one, uint32_t other, const double way[3], double times)
{
    for (int axis = 0; axis < 3; axis++) {
        gradient[one][axis] -= times * way[axis];
        gradient[other][axis] += times * way[axis];
    }
}

static double measure(const double (*place)[3], uint32_t one, uint32_t other, double way[3])
{
    double squared = 0;
    for (int axis = 0; axis < 3; axis++) {
        way[axis] = place[other][axis] - place[one][axis];
        squared += way[axis] * way[axis];
    }
    return squared;
}

/* A pair that is too close, `sign` times: its parts of the stress and of the gradient. */
static void repel(const double way[3], double squared, double sign, double gamma, double (*gradient)[3], uint32_t one,
                  uint32_t other, double stress[3])
{
    stress[1] += sign * 2 * gamma * (squared > 0 ? 1 / squared : 1);
    stress[2] += sign * 2;
    /* Half of the stress of both orders of the pair: 1 / d^2 has the gradient -2 / d^4 times the way. */
    if (squared > 0) pull(gradient, one, other, way, -sign * gamma * 2 / (squared * squared));
}

/* One vertex, `at` in the order of cells, and those of some cell behind it. */
static void repel_from_cell(const cells_t *cells, uint32_t at, const int32_t cell[3], double gamma,
                            double (*gradient)[3], double stress[3])
{
    double way[3];
    uint32_t hash = hash_of(cells->mask, cell), end = cells->first[hash + 1];
    int is_own = memcmp(cells->cell[at], cell, sizeof cells->cell[at]) == 0;
    for (uint32_t next = is_own ? at + 1 : cells->first[hash]; next < end; next++) {
        if (memcmp(cells->cell[next], cell, sizeof cells->cell[next]) != 0) continue;
        double squared = measure((const double (*)[3])cells->place, at, next, way);
        if (squared < 1) repel(way, squared, 1, gamma, gradient, cells->vertex[at], cells->vertex[next], stress);
    }
}

int ibp_stress(const double (*place)[3], uint32_t vertices, const uint32_t (*edge)[2], const double *length,
               size_t edges, double gamma, double (*gradient)[3], double stress[3])
{
    double way[3];
    cells_t cells;
    int status = sort_into_cells(&cells, place, vertices);
    if (status) goto free;
    memset(gradient, 0, (size_t)vertices * sizeof *gradient);
    memset(stress, 0, 3 * sizeof *stress);
    for (uint32_t at = 0; at < vertices; at++) {
        const int32_t *own = cells.cell[at];
        /* The own cell, and of each two neighbours that are opposite the one: so each pair is met once. */
        for (int side = 13; side < 27; side++) {
            int32_t cell[3] = {own[0] + side / 9 - 1, own[1] + side / 3 % 3 - 1, own[2] + side % 3 - 1};
            repel_from_cell(&cells, at, cell, gamma, gradient, stress);
        }
    }
    for (size_t at = 0; at < edges; at++) {
        uint32_t one = edge[at][0], other = edge[at][1];
        double squared = measure(place, one, other, way), missed = squared - length[at] * length[at];
        stress[0] += 2 * missed * missed;
        pull(gradient, one, other, way, 4 * missed);
        /* All close pairs were taken for such as no edge joins. */
        if (squared < 1) repel(way, squared, -1, gamma, gradient, one, other, stress);
    }
free:
    free_cells(&cells);
    return status;
}
