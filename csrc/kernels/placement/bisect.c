/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ibprof_kernels/placement.h"
#include "support/random.h"

/* Source: Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
 * Comput. 20(1), 1998; Fiduccia, Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982. */

enum { COARSEST = 60, LEVELS = 40, TRIES = 8, PASSES = 10, FRUITLESS = 120 };

/* Stop coarsening if the coarser graph would have more than this fraction of the finer graph's vertices. */
#define SHRINKS 0.95

typedef struct level {
    uint32_t vertices;
    const uint64_t *first;
    const uint32_t *other;
    const double *weight;
    /* [vertices], number of the whole graph's vertices that are merged into each vertex */
    uint32_t *size;
    /* [vertices], the coarse vertex into which each vertex is merged */
    uint32_t *coarse;
    /* memory that is freed together with this level */
    void *own[3];
} level_t;

typedef struct parts {
    uint8_t *part;
    double *gain;
    uint8_t *is_locked;
    uint32_t *order;
    uint8_t *best;
    /* Number of the whole graph's vertices that the first part should contain. */
    int64_t target;
    uint64_t random;
} parts_t;

static uint32_t sample_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(((ibp_mix(*state += IBP_RANDOM_STEP) >> 32) * limit) >> 32);
}

static void shuffle(uint64_t *state, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = sample_below(state, i), swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
}

/* Match each vertex with an unmatched neighbour: the one with the largest edge weight / (vertex size * neighbour size).
 * Return the number of coarse vertices. */
static uint32_t match(level_t *level, const uint32_t *order, uint32_t largest)
{
    uint32_t count = 0;
    memset(level->coarse, 0xff, level->vertices * sizeof *level->coarse);
    for (uint32_t i = 0; i < level->vertices; i++) {
        uint32_t vertex = order[i], chosen = vertex;
        double heaviest = 0;
        if (level->coarse[vertex] != UINT32_MAX) continue;
        for (uint64_t e = level->first[vertex]; e < level->first[vertex + 1]; e++) {
            uint32_t other = level->other[e];
            if (level->coarse[other] != UINT32_MAX || level->size[vertex] + level->size[other] > largest) continue;
            double weight = level->weight[e] / ((double)level->size[vertex] * level->size[other]);
            if (other != vertex && weight > heaviest) {
                heaviest = weight;
                chosen = other;
            }
        }
        level->coarse[vertex] = level->coarse[chosen] = count++;
    }
    return count;
}

/* Add the edges of a fine vertex to its coarse vertex, whose edges begin at `begin`. Return the index after the coarse
 * vertex's last edge. */
static uint64_t add_edges(const level_t *fine, uint32_t vertex, uint32_t self, uint64_t begin, uint64_t end,
                          uint64_t *place, uint32_t *other, double *weight)
{
    for (uint64_t e = fine->first[vertex]; e < fine->first[vertex + 1]; e++) {
        uint32_t to = fine->coarse[fine->other[e]];
        if (to == self) continue;
        if (place[to] < begin || place[to] >= end || other[place[to]] != to) {
            place[to] = end;
            other[end] = to;
            weight[end++] = 0;
        }
        weight[place[to]] += fine->weight[e];
    }
    return end;
}

/* Build the coarser graph from a matching. Return 0 or -ENOMEM. */
static int contract(const level_t *fine, uint32_t count, level_t *coarse)
{
    uint64_t edges = fine->first[fine->vertices];
    uint64_t *first = coarse->own[0] = calloc(count + 1, sizeof *first);
    uint32_t *other = coarse->own[1] = calloc(edges + 1, sizeof *other);
    double *weight = coarse->own[2] = calloc(edges + 1, sizeof *weight);
    uint64_t *place = calloc(count, sizeof *place);
    uint32_t *member = malloc(2 * (size_t)count * sizeof *member);
    coarse->size = calloc(count, sizeof *coarse->size);
    coarse->coarse = calloc(count, sizeof *coarse->coarse);
    int failed = !first || !other || !weight || !place || !member || !coarse->size || !coarse->coarse;
    if (!failed) {
        memset(member, 0xff, 2 * (size_t)count * sizeof *member);
        for (uint32_t vertex = 0; vertex < fine->vertices; vertex++) {
            uint32_t to = fine->coarse[vertex];
            member[2 * (size_t)to + (member[2 * (size_t)to] != UINT32_MAX)] = vertex;
            coarse->size[to] += fine->size[vertex];
        }
        for (uint32_t vertex = 0; vertex < count; vertex++) {
            uint64_t end = first[vertex];
            for (int i = 0; i < 2; i++)
                if (member[2 * (size_t)vertex + i] != UINT32_MAX)
                    end = add_edges(fine, member[2 * (size_t)vertex + i], vertex, first[vertex], end, place, other,
                                    weight);
            first[vertex + 1] = end;
        }
    }
    free(place);
    free(member);
    coarse->vertices = count;
    coarse->first = first;
    coarse->other = other;
    coarse->weight = weight;
    return failed ? -ENOMEM : 0;
}

/* The cut is the total weight of edges between the parts. Return the cut. Set the gain of each vertex to the decrease
 * of the cut if the vertex moves. Set `excess` to the size of the first part minus its target, in vertices of the whole
 * graph. */
static double find_gains(const level_t *level, parts_t *p, int64_t *excess)
{
    double cut = 0;
    *excess = -p->target;
    for (uint32_t vertex = 0; vertex < level->vertices; vertex++) {
        double gain = 0;
        for (uint64_t e = level->first[vertex]; e < level->first[vertex + 1]; e++) {
            int crosses = p->part[level->other[e]] != p->part[vertex];
            gain += crosses ? level->weight[e] : -level->weight[e];
            if (crosses) cut += level->weight[e] / 2;
        }
        p->gain[vertex] = gain;
        if (!p->part[vertex]) *excess += level->size[vertex];
    }
    return cut;
}

static int64_t excess_after(const level_t *level, const parts_t *p, uint32_t vertex, int64_t excess)
{
    return p->part[vertex] ? excess + level->size[vertex] : excess - level->size[vertex];
}

/* Return the vertex to move: the unlocked vertex with the largest gain, after whose move the deviation from the target
 * is smaller, or at most `slack`. Return UINT32_MAX if no vertex qualifies. */
static uint32_t find_move(const level_t *level, const parts_t *p, int64_t excess, int64_t slack)
{
    uint32_t chosen = UINT32_MAX;
    for (uint32_t vertex = 0; vertex < level->vertices; vertex++) {
        int64_t after = llabs(excess_after(level, p, vertex, excess));
        if (p->is_locked[vertex] || (after > slack && after >= llabs(excess))) continue;
        if (chosen == UINT32_MAX || p->gain[vertex] > p->gain[chosen]) chosen = vertex;
    }
    return chosen;
}

static void move(const level_t *level, parts_t *p, uint32_t vertex)
{
    p->part[vertex] ^= 1;
    p->gain[vertex] = -p->gain[vertex];
    for (uint64_t e = level->first[vertex]; e < level->first[vertex + 1]; e++) {
        uint32_t other = level->other[e];
        p->gain[other] += p->part[other] == p->part[vertex] ? -2 * level->weight[e] : 2 * level->weight[e];
    }
}

static int64_t beyond(int64_t excess, int64_t allowed)
{
    int64_t by = llabs(excess) - allowed;
    return by > 0 ? by : 0;
}

/* Do one pass: move each vertex at most once, then restore the best division of the pass. The first part's size may
 * deviate by up to `allowed` from its target. Return whether the division has improved. */
static int pass(const level_t *level, parts_t *p, int64_t allowed, int64_t largest)
{
    int64_t excess;
    double cut = find_gains(level, p, &excess);
    double best_cut = cut;
    int64_t best_beyond = beyond(excess, allowed);
    uint32_t made = 0, kept = 0;
    memset(p->is_locked, 0, level->vertices);
    while (made < level->vertices && made - kept < FRUITLESS) {
        uint32_t vertex = find_move(level, p, excess, allowed + largest);
        if (vertex == UINT32_MAX) break;
        excess = excess_after(level, p, vertex, excess);
        cut -= p->gain[vertex];
        move(level, p, vertex);
        p->is_locked[vertex] = 1;
        p->order[made++] = vertex;
        int64_t now = beyond(excess, allowed);
        if (now < best_beyond || (now == best_beyond && cut < best_cut - 1e-9 * fabs(best_cut))) {
            best_beyond = now;
            best_cut = cut;
            kept = made;
        }
    }
    for (uint32_t i = made; i > kept; i--) p->part[p->order[i - 1]] ^= 1;
    return kept > 0;
}

static void refine(const level_t *level, parts_t *p, int64_t allowed)
{
    int64_t largest = 1;
    for (uint32_t vertex = 0; vertex < level->vertices; vertex++)
        if (level->size[vertex] > largest) largest = level->size[vertex];
    for (int i = 0; i < PASSES && pass(level, p, allowed, largest); i++) continue;
}

/* Grow the first part from a random vertex: repeatedly add the vertex with the largest gain. */
static void grow(const level_t *level, parts_t *p)
{
    int64_t excess;
    memset(p->part, 1, level->vertices);
    memset(p->is_locked, 0, level->vertices);
    find_gains(level, p, &excess);
    uint32_t vertex = sample_below(&p->random, level->vertices);
    while (excess < 0) {
        excess += level->size[vertex];
        move(level, p, vertex);
        p->is_locked[vertex] = 1;
        uint32_t next = UINT32_MAX;
        for (uint32_t other = 0; other < level->vertices; other++)
            if (!p->is_locked[other] && (next == UINT32_MAX || p->gain[other] > p->gain[next])) next = other;
        if (next == UINT32_MAX) break;
        vertex = next;
    }
}

static void divide_coarsest(const level_t *level, parts_t *p, int64_t allowed)
{
    double least = INFINITY;
    int64_t least_beyond = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t excess;
        grow(level, p);
        refine(level, p, allowed);
        double cut = find_gains(level, p, &excess);
        if (beyond(excess, allowed) < least_beyond || (beyond(excess, allowed) == least_beyond && cut < least)) {
            least_beyond = beyond(excess, allowed);
            least = cut;
            memcpy(p->best, p->part, level->vertices);
        }
    }
    memcpy(p->part, p->best, level->vertices);
}

/* Assign each vertex of the finer level to the part of its coarse vertex. */
static void project(const level_t *fine, parts_t *p)
{
    memcpy(p->best, p->part, fine->vertices);
    for (uint32_t vertex = 0; vertex < fine->vertices; vertex++) p->part[vertex] = p->best[fine->coarse[vertex]];
}

/* Coarsen the graph level by level. Return the number of levels, or -ENOMEM. */
static int coarsen(level_t *level, parts_t *p)
{
    int levels = 1;
    uint32_t vertices = level->vertices;
    uint32_t largest = vertices / COARSEST * 3 / 2 + 1;
    while (levels < LEVELS && level[levels - 1].vertices > COARSEST) {
        level_t *fine = &level[levels - 1];
        shuffle(&p->random, p->order, fine->vertices);
        uint32_t count = match(fine, p->order, largest);
        if (count > SHRINKS * fine->vertices) break;
        if (contract(fine, count, &level[levels++])) return -ENOMEM;
    }
    return levels;
}

static int allocate(parts_t *p, level_t *level, const struct ibp_graph *graph, uint8_t *part)
{
    size_t vertices = graph->vertices;
    level->vertices = graph->vertices;
    level->first = graph->first;
    level->other = graph->other;
    level->weight = graph->weight;
    level->size = malloc(vertices * sizeof *level->size);
    level->coarse = calloc(vertices, sizeof *level->coarse);
    p->part = part;
    p->gain = calloc(vertices, sizeof *p->gain);
    p->is_locked = calloc(vertices, 1);
    p->order = calloc(vertices, sizeof *p->order);
    p->best = calloc(vertices, 1);
    if (!level->size || !level->coarse || !p->gain || !p->is_locked || !p->order || !p->best) return -ENOMEM;
    for (size_t vertex = 0; vertex < vertices; vertex++) level->size[vertex] = 1;
    return 0;
}

int ibp_bisect(const struct ibp_graph *graph, uint32_t size, uint64_t seed, uint8_t *part)
{
    level_t levels[LEVELS + 1] = {0};
    parts_t p = {.target = size, .random = seed};
    memset(part, size == 0, graph->vertices);
    if (size == 0 || size >= graph->vertices) return 0;
    int status = allocate(&p, levels, graph, part);
    int count = status ? status : coarsen(levels, &p);
    if (count > 0) {
        divide_coarsest(&levels[count - 1], &p, graph->vertices / 50);
        for (int i = count - 2; i >= 0; i--) {
            project(&levels[i], &p);
            refine(&levels[i], &p, i ? graph->vertices / 50 : 0);
        }
        refine(&levels[0], &p, 0);
    }
    for (int i = 0; i <= LEVELS; i++) {
        for (int array = 0; array < 3; array++) free(levels[i].own[array]);
        free(levels[i].size);
        free(levels[i].coarse);
    }
    free(p.gain);
    free(p.is_locked);
    free(p.order);
    free(p.best);
    return count < 0 ? count : 0;
}

/* A segment: vertices that will get successive places in the row. */
typedef struct segment {
    uint32_t begin, count, depth;
} segment_t;

typedef struct division {
    /* [vertices], vertices by segment; ascending within a segment */
    uint32_t *vertex;
    uint32_t *spare;
    /* [vertices], the index of each vertex in the present segment; UINT32_MAX if the vertex is in another segment */
    uint32_t *number;
    segment_t *pending;
    uint8_t *part;
    /* The edges within the present segment. */
    uint64_t *first;
    uint32_t *other;
    double *weight;
} division_t;

/* Return the size of the first part if a segment is divided at its largest gap; 0 if all gaps are 0. */
static uint32_t choose_size(const double *gap, uint32_t count)
{
    double largest = 0;
    uint32_t size = 0;
    int64_t nearest = INT64_MAX;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (gap[i] > largest) largest = gap[i];
    for (uint32_t i = 0; largest > 0 && i + 1 < count; i++) {
        int64_t away = llabs(2 * ((int64_t)i + 1) - (int64_t)count);
        if (gap[i] < largest || away >= nearest) continue;
        nearest = away;
        size = i + 1;
    }
    return size;
}

static struct ibp_graph take_segment(const struct ibp_graph *graph, division_t *d, segment_t s)
{
    uint64_t edges = 0;
    for (uint32_t i = 0; i < s.count; i++) d->number[d->vertex[s.begin + i]] = i;
    for (uint32_t i = 0; i < s.count; i++) {
        uint32_t vertex = d->vertex[s.begin + i];
        d->first[i] = edges;
        for (uint64_t edge = graph->first[vertex]; edge < graph->first[vertex + 1]; edge++) {
            if (d->number[graph->other[edge]] == UINT32_MAX) continue;
            d->other[edges] = d->number[graph->other[edge]];
            d->weight[edges++] = graph->weight[edge];
        }
    }
    d->first[s.count] = edges;
    for (uint32_t i = 0; i < s.count; i++) d->number[d->vertex[s.begin + i]] = UINT32_MAX;
    return (struct ibp_graph){.vertices = s.count, .first = d->first, .other = d->other, .weight = d->weight};
}

/* Reorder the segment: vertices of the first part, then vertices of the second part. */
static void separate(division_t *d, segment_t s)
{
    uint32_t kept = s.begin, moved = 0;
    for (uint32_t i = 0; i < s.count; i++) {
        uint32_t vertex = d->vertex[s.begin + i];
        if (d->part[i] == 0)
            d->vertex[kept++] = vertex;
        else
            d->spare[moved++] = vertex;
    }
    memcpy(d->vertex + kept, d->spare, moved * sizeof *d->spare);
}

static int divide(const struct ibp_graph *graph, const double *gap, uint64_t seed, division_t *d, uint32_t *place)
{
    uint32_t pending = 1;
    for (uint32_t i = 0; i < graph->vertices; i++) d->vertex[i] = i;
    memset(d->number, 0xff, graph->vertices * sizeof *d->number);
    d->pending[0] = (segment_t){0, graph->vertices, 0};
    while (pending) {
        segment_t s = d->pending[--pending];
        uint32_t size = s.count > 1 ? choose_size(gap + s.begin, s.count) : 0;
        if (size == 0) {
            for (uint32_t i = s.begin; i < s.begin + s.count; i++) place[d->vertex[i]] = i;
            continue;
        }
        struct ibp_graph part = take_segment(graph, d, s);
        int status = ibp_bisect(&part, size, (seed << 32) + ((uint64_t)d->vertex[s.begin] << 6) + s.depth, d->part);
        if (status) return status;
        separate(d, s);
        d->pending[pending++] = (segment_t){s.begin, size, s.depth + 1};
        d->pending[pending++] = (segment_t){s.begin + size, s.count - size, s.depth + 1};
    }
    return 0;
}

int ibp_divide(const struct ibp_graph *graph, const double *gap, uint64_t seed, uint32_t *place)
{
    size_t vertices = graph->vertices, edges = graph->first[vertices];
    division_t d = {
        .vertex = calloc(vertices + 1, sizeof *d.vertex),
        .spare = calloc(vertices + 1, sizeof *d.spare),
        .number = calloc(vertices + 1, sizeof *d.number),
        .pending = calloc(vertices + 1, sizeof *d.pending),
        .part = calloc(vertices + 1, 1),
        .first = calloc(vertices + 1, sizeof *d.first),
        .other = calloc(edges + 1, sizeof *d.other),
        .weight = calloc(edges + 1, sizeof *d.weight),
    };
    int has_memory = d.vertex && d.spare && d.number && d.pending && d.part && d.first && d.other && d.weight;
    int status = has_memory ? divide(graph, gap, seed, &d, place) : -ENOMEM;
    free(d.vertex);
    free(d.spare);
    free(d.number);
    free(d.pending);
    free(d.part);
    free(d.first);
    free(d.other);
    free(d.weight);
    return status;
}
