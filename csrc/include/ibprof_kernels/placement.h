/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank placements: the load of a placement on each link direction, and the search for a better placement.
 *
 * Ranks that send to each other are neighbours. A slot is a place for one rank on a host. The rank sends through the
 * port of its slot: an adapter of the host, one on each rail.
 */
#ifndef IBPROF_KERNELS_PLACEMENT_H
#define IBPROF_KERNELS_PLACEMENT_H

#include <stdint.h>

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* The number of a link direction that is not counted. */
#define IBP_UNCOUNTED 4294967295

/* The quality of a placement; the first member that differs decides. */
struct ibp_placement_score {
    /* Bytes that do not arrive. */
    int64_t lost;
    /* The largest time of a link direction. */
    double most;
    /* The largest time of a link direction between switches. */
    double most_between;
    /* The times of all link directions. */
    double sum;
};

/* Ranks, the slots that hosts have for them, and their traffic. Bytes between two ports depend on the set of rails that
 * both ports are on. Each set that occurs has a row. */
struct ibp_placement_problem {
    uint32_t ranks;
    /* At least the number of ranks. The slots of a host have successive numbers, and so do the slots of a group of
     * hosts. */
    uint32_t slots;
    uint32_t ports;
    /* At most 8. */
    uint32_t rails;
    uint32_t rows;
    /* Leaf switches on the rail with the most leaf switches. */
    uint32_t leaves;
    /* Counted link directions: between switches, to and from hosts, and one for all paths that do not arrive. */
    uint32_t ends;
    /* The number of counted link directions between switches, which come first. */
    uint32_t between;
    /* 0: each host has one slot. 1: a host has several slots. 2: as 1, but ranks move to free slots only by whole
     * hosts. */
    uint32_t has_several;
    /* The number of successive ranks that stay on successive slots of one host, as a group; 1 for none. It divides the
     * number of ranks and the number of slots of each host. */
    uint32_t together;
    /* [ranks + 1], index of each rank's first neighbour */
    const uint64_t *first;
    /* The neighbour's rank; each rank of a pair lists the other. */
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
    /* [hosts], 1 where the slots of a host have different ports. The host's ranks then use its first slots, in rank
     * order: the n-th rank of the host uses the port of the n-th slot. */
    const uint8_t *is_numbered;
    /* [ports], one bit for each rail */
    const uint8_t *rails_of_port;
    /* [256] */
    const int32_t *row_of_rails;
    /* [hosts]; hosts close to each other are a group */
    const uint32_t *group_of_host;
    /* [groups + 1], the first slot of each group */
    const uint32_t *group_first;
    /* [rails][ports] */
    const uint32_t *leaf_of_port;
    /* [rails][leaves], the leaf's switch in `routes`, or IBP_NONE: the leaf sends nothing */
    const int32_t *leaf_switch;
    /* [rails][ports], the LID of a port, 0 if there is none */
    const int32_t *lid;
    /* [rails]. Paths are followed on demand: a table of all paths takes gigabytes on large fabrics. */
    const struct ibp_routes *const *routes;
    /* [rails], index of each rail's first link direction in `position` */
    const uint64_t *position_first;
    /* The number, below `ends`, of each link direction of `routes`; IBP_UNCOUNTED for an uncounted link direction. */
    const uint32_t *position;
    /* [rails][ports], the link direction from a port and the link direction to it; used only where paths arrive */
    const uint32_t *out_of_port;
    const uint32_t *into_port;
    /* [rails][leaves][ports] + 1, index in `paths` of the path from a leaf to a port; NULL: no table of paths, paths
     * are followed on demand */
    const uint32_t *path_first;
    const uint32_t *paths;
    /* [ends] */
    const double *seconds_per_byte;
};

/* A search by simulated annealing. It swaps two groups or two hosts, or moves a group to free slots. It keeps changes
 * that lower the energy: the sum over link directions of (bytes * unit) ^ (2 ^ doublings). At first it also keeps some
 * changes that raise the energy. */
struct ibp_placement_search {
    /* [switches of the largest rail + 2], space for one path */
    uint32_t *path;
    /* [ranks], the present slot of each rank */
    uint32_t *slot_of_rank;
    /* [slots], -1 for a free slot */
    int32_t *rank_of_slot;
    /* [ranks], the slots after a proposal; equal to `slot_of_rank` between calls */
    uint32_t *new_slot;
    /* [ranks], the first `moves` elements are the ranks that a proposal moves */
    uint32_t *moved;
    uint64_t moves;
    /* [ranks]; all 0 between calls */
    uint8_t *is_counted;
    /* [ends], weight of a byte in the energy */
    const double *unit;
    /* [ends], bytes; a proposal is refused if it raises a load beyond its limit */
    const int64_t *limit;
    /* [ends], bytes */
    int64_t *load;
    /* [ends]; all 0 between calls, as is `is_touched` */
    int64_t *change;
    /* [ends] */
    uint8_t *is_touched;
    /* [ends], the first `touches` elements are the link directions that a proposal changes */
    uint32_t *touched;
    uint32_t touches;
    /* [ranks], slots of the best placement found */
    uint32_t *best;
    struct ibp_placement_score best_score;
    double energy;
    /* The lowest energy at which a score was computed. */
    double computed_at;
    uint32_t doublings;
    /* Temperatures, relative to the energy: at the beginning and at the end of all work. */
    double first_temperature;
    double last_temperature;
    double temperature;
    /* Sum of the logarithms of the proposed relative rises of the energy, and the number of these rises. */
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

/* A graph whose vertices are divided into two parts, with the weights of its edges. Each edge is listed at both of its
 * vertices. */
struct ibp_graph {
    uint32_t vertices;
    /* [vertices + 1] */
    const uint64_t *first;
    const uint32_t *other;
    const double *weight;
};

/* Write the table of paths: the beginning of each path into first[rails * leaves * ports + 1], and the paths if `paths`
 * is not NULL. `space` has capacity for one path. Return the total length. */
uint64_t ibp_placement_paths(const struct ibp_placement_problem *problem, uint32_t *space, uint32_t *first,
                             uint32_t *paths);

/* Compute the bytes on each link direction under a placement. load[ends] is overwritten. `space` has capacity for one
 * path. */
void ibp_placement_load(const struct ibp_placement_problem *problem, uint32_t *space, const uint32_t *slot_of_rank,
                        int64_t *load);

/* Compute the score of a placement from its loads. */
void ibp_placement_score_load(const struct ibp_placement_problem *problem, const int64_t *load,
                              struct ibp_placement_score *score);

/* Continue the search until `work` reaches `until` or `all_work`. Splitting the work over several calls does not change
 * the result. */
void ibp_placement_search(const struct ibp_placement_problem *problem, struct ibp_placement_search *search,
                          uint64_t until);

/* Divide a graph into parts of exactly `size` and `vertices - size` vertices, with edges of small total weight between
 * the parts. Multilevel bisection: coarsening by heavy edges, refinement by Fiduccia-Mattheyses moves. Sets
 * part[vertices] to 0 or 1. Returns a negative errno without memory. */
int ibp_bisect(const struct ibp_graph *graph, uint32_t size, uint64_t seed, uint8_t *part);

/* Divide a graph in two repeatedly, down to places without gaps. gap[vertices - 1] has the distance between each place
 * and the next. A part is divided at its largest gap; among equal gaps, at the gap nearest to its middle. Sets
 * place[vertices] to the place of each vertex. Returns a negative errno without memory. */
int ibp_divide(const struct ibp_graph *graph, const double *gap, uint64_t seed, uint32_t *place);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
