/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank placements: the loads that one causes, and the search for a better one.
 *
 * Ranks that send to each other are neighbours. A slot is a place for one rank on a host. Its port is what the rank sends
 * by: an adapter of the host, one on each rail.
 */
#ifndef IBPROF_KERNELS_PLACEMENT_H
#define IBPROF_KERNELS_PLACEMENT_H

#include <stdint.h>

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* The number of a link direction that does not count. */
#define IBP_UNCOUNTED 4294967295

/* How good a placement is; the first member that differs decides. */
struct ibp_placement_score {
    /* Bytes that do not arrive. */
    int64_t lost;
    /* The largest time of a link direction. */
    double most;
    /* The same of those between switches. */
    double most_between;
    /* The times of all link directions. */
    double sum;
};

/* Ranks, the slots that hosts have for them, and their traffic. Bytes between two ports depend on the set of rails that
 * both are on; each such set that occurs has a row. */
struct ibp_placement_problem {
    uint32_t ranks;
    /* At least as many as ranks; those of a host have successive numbers, and those of a group of hosts. */
    uint32_t slots;
    uint32_t ports;
    /* At most 8. */
    uint32_t rails;
    uint32_t rows;
    /* Leaf switches, on the rail that has most of them. */
    uint32_t leaves;
    /* Link directions that count: those between switches, those of hosts, and one that stands for paths that do not
     * arrive. */
    uint32_t ends;
    /* The first of them are between switches. */
    uint32_t between;
    /* 0: each host has one slot. 1: a host has several. 2: and ranks take no free slot other than by whole hosts. */
    uint32_t has_several;
    /* [ranks + 1], where the neighbours of each rank begin */
    const uint64_t *first;
    /* The other rank; each of the two lists the other. */
    const uint32_t *neighbour;
    /* [neighbour][row][rail], bytes from the rank to its neighbour */
    const int64_t *sent;
    /* [neighbour][row][rail], bytes from the neighbour to the rank */
    const int64_t *received;
    /* [slots] */
    const uint32_t *host_of_slot;
    /* [slots] */
    const uint32_t *port_of_slot;
    /* [hosts + 1], the first slot of each host */
    const uint32_t *host_first;
    /* [hosts], 1 where the slots of a host have different ports. Its ranks are on its first slots, in their order, since
     * the number of a rank among those of its host says which port it takes. */
    const uint8_t *is_numbered;
    /* [ports], a bit for each rail */
    const uint8_t *rails_of_port;
    /* [256] */
    const int32_t *row_of_rails;
    /* [hosts]; hosts close to each other are a group */
    const uint32_t *group_of_host;
    /* [groups + 1], the first slot of each group */
    const uint32_t *group_first;
    /* [rails][ports] */
    const uint32_t *leaf_of_port;
    /* [rails][leaves], the switch (of `routes`) that a leaf is, or IBP_NONE: nothing is sent from there */
    const int32_t *leaf_switch;
    /* [rails][ports], the LID of a port, 0 for none */
    const int32_t *lid;
    /* [rails]. Paths are followed when they are needed: all of them take gigabytes on large fabrics. */
    const struct ibp_routes *const *routes;
    /* [rails], where the link directions of each rail begin in `position` */
    const uint64_t *position_first;
    /* The number, below `ends`, of each link direction of `routes`; IBP_UNCOUNTED for those that do not count. */
    const uint32_t *position;
    /* [rails][ports], the link direction out of a port and the one into it; used only where paths arrive */
    const uint32_t *out_of_port;
    const uint32_t *into_port;
    /* [rails][leaves][ports] + 1, where the path from a leaf to a port begins in `paths`; NULL where there is no table of
     * paths, so that they are followed */
    const uint32_t *path_first;
    const uint32_t *paths;
    /* [ends] */
    const double *seconds_per_byte;
};

/* A search by simulated annealing. It swaps two ranks or two hosts, or moves a rank to a free slot, and keeps what lowers
 * the energy: the sum over link directions of (bytes * unit) ^ (2 ^ doublings). At first it also keeps some changes that
 * raise the energy. */
struct ibp_placement_search {
    /* [switches of the largest rail + 2], space for one path */
    uint32_t *path;
    /* [ranks], the present placement */
    uint32_t *slot_of_rank;
    /* [slots], -1 for a free one */
    int32_t *rank_of_slot;
    /* [ranks], as `slot_of_rank` between calls; where a proposal puts them */
    uint32_t *new_slot;
    /* [ranks], those that a proposal moves, `moves` of them */
    uint32_t *moved;
    uint64_t moves;
    /* [ranks]; all 0 between calls */
    uint8_t *is_counted;
    /* [ends], what a byte counts in the energy */
    const double *unit;
    /* [ends], bytes; a proposal that raises a load beyond is refused */
    const int64_t *limit;
    /* [ends], bytes */
    int64_t *load;
    /* [ends]; all 0 between calls, as is `is_touched` */
    int64_t *change;
    /* [ends] */
    uint8_t *is_touched;
    /* [ends], those that a proposal changes, `touches` of them */
    uint32_t *touched;
    uint32_t touches;
    /* [ranks], slots of the best placement found */
    uint32_t *best;
    struct ibp_placement_score best_score;
    double energy;
    /* The lowest energy whose score was computed. */
    double computed_at;
    uint32_t doublings;
    /* Temperatures, relative to the energy: at the beginning, and when all work is done. */
    double first_temperature;
    double last_temperature;
    double temperature;
    /* The sum of the logarithms of relative rises of the energy that were proposed, and their number. */
    double uphill;
    uint64_t climbs;
    /* State of the generator. */
    uint64_t random;
    /* Link directions visited. */
    uint64_t work;
    uint64_t all_work;
    uint64_t proposals;
    uint64_t accepted;
};

/* Vertices to divide into two parts, with the weights of the edges between them: each edge is listed at both ends. */
struct ibp_graph {
    uint32_t vertices;
    /* [vertices + 1] */
    const uint64_t *first;
    const uint32_t *other;
    const double *weight;
};

/* Write the table of paths: where each begins into first[rails * leaves * ports + 1], and the paths, if not NULL. `space`
 * is for one path. Return the length of all. */
uint64_t ibp_placement_paths(const struct ibp_placement_problem *problem, uint32_t *space, uint32_t *first,
                             uint32_t *paths);

/* Compute the bytes that a placement puts on link directions: load[ends] is overwritten. `space` is for one path. */
void ibp_placement_load(const struct ibp_placement_problem *problem, uint32_t *space, const uint32_t *slot_of_rank,
                        int64_t *load);

/* Compute the score of loads. */
void ibp_placement_score_load(const struct ibp_placement_problem *problem, const int64_t *load,
                              struct ibp_placement_score *score);

/* Search on until `work` reaches `until` or `all_work`. Splitting the work over several calls does not change the
 * result. */
void ibp_placement_search(const struct ibp_placement_problem *problem, struct ibp_placement_search *search,
                          uint64_t until);

/* Divide a graph into parts of exactly `size` and `vertices - size` vertices so that edges between the parts weigh little:
 * multilevel, coarsened by heavy edges, refined by moves as Fiduccia and Mattheyses make them. Sets part[vertices] to 0 or
 * 1; returns a negative errno where memory runs out. */
int ibp_bisect(const struct ibp_graph *graph, uint32_t size, uint64_t seed, uint8_t *part);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
