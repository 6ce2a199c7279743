/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ibprof_kernels/topology.h"

/* Number of minima that are computed in parallel, so that compilers can use vector instructions. */
#define LANES 16

/* The clusters. Each cluster has a slot: a row and a column of the matrix. */
typedef struct {
    /* [slot][slot] */
    float *distance;
    /* [slot], infinity if the cluster was merged into another cluster, otherwise 0 */
    float *gone;
    uint32_t *size;
    int32_t *node;
    /* A chain of slots. Each slot is the nearest neighbour of the slot before it. */
    uint32_t *chain;
    uint32_t chained;
    uint32_t slots;
    uint32_t alive;
} clusters_t;

static float *row_of(const clusters_t *c, uint32_t slot)
{
    return c->distance + (size_t)slot * c->slots;
}

/* Return the slot of the cluster that is nearest to the cluster in `slot`. Of several nearest slots, return `preferred`
 * if it is among them, otherwise the first. Return UINT32_MAX if all distances to other slots are NaN. */
static uint32_t find_nearest(const clusters_t *c, uint32_t slot, uint32_t preferred)
{
    const float *row = row_of(c, slot);
    float lane[LANES];
    uint32_t i = 0;
    for (uint32_t l = 0; l < LANES; l++) lane[l] = INFINITY;
    for (; i + LANES <= c->slots; i += LANES) {
        for (uint32_t l = 0; l < LANES; l++) {
            float value = row[i + l] + c->gone[i + l];
            lane[l] = value < lane[l] ? value : lane[l];
        }
    }
    float least = INFINITY;
    for (uint32_t l = 0; l < LANES; l++) least = lane[l] < least ? lane[l] : least;
    for (; i < c->slots; i++) least = row[i] + c->gone[i] < least ? row[i] + c->gone[i] : least;
    if (preferred != UINT32_MAX && row[preferred] <= least) return preferred;
    for (i = 0; i < c->slots; i++) {
        if (i != slot && row[i] + c->gone[i] <= least) return i;
    }
    return UINT32_MAX;
}

static void merge(clusters_t *c, uint32_t from, uint32_t into)
{
    float *row = row_of(c, into);
    const float *other = row_of(c, from);
    float whole = (float)(c->size[from] + c->size[into]);
    float share = (float)c->size[from] / whole, own = (float)c->size[into] / whole;
    for (uint32_t i = 0; i < c->slots; i++) row[i] = own * row[i] + share * other[i];
    row[into] = INFINITY;
    float *column = c->distance + into;
    for (uint32_t i = 0; i < c->slots; i++) {
        if (c->gone[i] == 0) column[(size_t)i * c->slots] = row[i];
    }
    c->gone[from] = INFINITY;
    c->size[into] += c->size[from];
    c->alive--;
}

/* Remove the slots of merged clusters from the matrix. */
static void compact(clusters_t *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->chained; i++) {
        uint32_t before = 0;
        for (uint32_t s = 0; s < c->chain[i]; s++) before += c->gone[s] == 0;
        c->chain[i] = before;
    }
    for (uint32_t i = 0; i < c->slots; i++) {
        if (c->gone[i] != 0) continue;
        float *to = c->distance + (size_t)count * c->alive; /* `to` never passes `from` */
        const float *from = row_of(c, i);
        uint32_t column = 0;
        for (uint32_t j = 0; j < c->slots; j++) {
            if (c->gone[j] == 0) to[column++] = from[j];
        }
        c->size[count] = c->size[i];
        c->node[count] = c->node[i];
        count++;
    }
    c->slots = c->alive;
    for (uint32_t i = 0; i < c->slots; i++) c->gone[i] = 0;
}

/* The nearest-neighbour chain algorithm. Source: Murtagh, "A survey of recent advances in hierarchical clustering
 * algorithms", The Computer Journal 26(4), 1983. */
int ibp_average_linkage(float *distance, uint32_t leaves, int32_t *child, double *height, uint32_t *size)
{
    if (leaves < 2) return 0;
    clusters_t c = {.distance = distance, .slots = leaves, .alive = leaves};
    c.gone = calloc(leaves, sizeof *c.gone);
    c.size = malloc(leaves * sizeof *c.size);
    c.node = malloc(leaves * sizeof *c.node);
    c.chain = malloc(leaves * sizeof *c.chain);
    int status = -ENOMEM;
    if (!c.gone || !c.size || !c.node || !c.chain) goto out;
    for (uint32_t i = 0; i < leaves; i++) {
        c.size[i] = 1;
        c.node[i] = (int32_t)i;
        row_of(&c, i)[i] = INFINITY;
    }
    status = -EINVAL;
    for (uint32_t k = 0; k + 1 < leaves; k++) {
        if (c.alive * 2 <= c.slots && c.slots > 64) compact(&c);
        if (c.chained == 0) {
            uint32_t first = 0;
            while (c.gone[first] != 0) first++;
            c.chain[c.chained++] = first;
        }
        for (;;) {
            uint32_t last = c.chain[c.chained - 1];
            uint32_t before = c.chained > 1 ? c.chain[c.chained - 2] : UINT32_MAX;
            uint32_t nearest = find_nearest(&c, last, before);
            /* Invalid input: a distance is infinite or NaN, or asymmetric distances made the chain of nearest clusters
             * a cycle. */
            if (nearest == UINT32_MAX || (nearest != before && c.chained == c.alive)) goto out;
            if (nearest != before) {
                c.chain[c.chained++] = nearest;
                continue;
            }
            c.chained -= 2;
            child[2 * k] = c.node[last];
            child[2 * k + 1] = c.node[before];
            height[k] = (double)row_of(&c, last)[before];
            size[k] = c.size[last] + c.size[before];
            merge(&c, last, before);
            c.node[before] = (int32_t)(leaves + k);
            break;
        }
    }
    status = 0;
out:
    free(c.gone);
    free(c.size);
    free(c.node);
    free(c.chain);
    return status;
}
