/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rank placements: the load of a placement on each link direction, and the search for a better placement.
 *
 * Ranks that send to each other are neighbours. A slot is a place for one rank on a host. A rank sends through the
 * adapter of its slot. An adapter has at most one port on each rail. In this file, `port` means the adapter of a slot.
 */
#ifndef IBPROF_KERNELS_PLACEMENT_H
#define IBPROF_KERNELS_PLACEMENT_H

#include <stdint.h>

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Value in the array `position` for a link direction whose load is not counted. */
#define IBP_UNCOUNTED 4294967295

/* The score of a placement; lower is better. Two scores are compared by their first members that differ. */
struct ibp_placement_score {
    /* Number of bytes whose path does not reach the receiver. */
    int64_t lost;
    /* Longest time that any link direction needs for its bytes, in seconds. */
    double most;
    /* Longest time that any link direction from a switch to a switch needs for its bytes, in seconds. */
    double most_between;
    /* Sum over all link directions of the time that the direction needs for its bytes, in seconds. */
    double sum;
};

/* A placement problem: ranks, their traffic, and the slots of hosts. The bytes between two ports are split among the
 * rails to which both ports belong. `sent` and `received` have one row for each set of rails that two ports may
 * share. */
struct ibp_placement_problem {
    uint32_t ranks;
    /* Number of slots, at least the number of ranks. The slots of a host have successive numbers. The slots of a group
     * of hosts also have successive numbers. */
    uint32_t slots;
    uint32_t ports;
    /* Number of rails, up to 8. */
    uint32_t rails;
    uint32_t rows;
    /* Number of leaf switches on the rail with the most leaf switches. */
    uint32_t leaves;
    /* Number of counted link directions. The last link direction is artificial: it represents every path that does not
     * reach the path's destination. */
    uint32_t ends;
    /* Number of counted link directions between switches; their indices are 0 to `between` - 1. */
    uint32_t between;
    /* 0: each host has one slot. 1: hosts may have several slots. 2: as 1, but ranks move to free slots only together
     * with all ranks of their host. */
    uint32_t has_several;
    /* Number of ranks in a group of ranks. A group consists of successive ranks, and stays on successive slots of one
     * host. The number of ranks, and the number of slots of each host, are multiples of this number. */
    uint32_t together;
    /* [ranks + 1], index of each rank's first neighbour */
    const uint64_t *first;
    /* [first[ranks]], rank of each neighbour. Each rank of a pair lists the other rank as a neighbour. */
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
    /* [hosts], 1 if the slots of a host have different ports. If so, ranks use the first slots of the host, in the
     * order of ranks. */
    const uint8_t *is_numbered;
    /* [ports], bit i is 1 if the port is on rail i */
    const uint8_t *rails_of_port;
    /* [256], the row in `sent` and `received` of a set of rails; bit i of the index is 1 if rail i is in the set */
    const int32_t *row_of_rails;
    /* [hosts], the group of hosts to which a host belongs: hosts that are close in the network */
    const uint32_t *group_of_host;
    /* [groups + 1], the first slot of each group of hosts */
    const uint32_t *group_first;
    /* [rails][ports] */
    const uint32_t *leaf_of_port;
    /* [rails][leaves], the leaf's switch in `routes`; IBP_NONE if the leaf sends nothing */
    const int32_t *leaf_switch;
    /* [rails][ports], the LID of a port; 0 if the port has no LID */
    const int32_t *lid;
    /* [rails], the routes of each rail. If there is no table `paths`, each use of a path computes the path from these
     * routes. On large fabrics, the table would need gigabytes. */
    const struct ibp_routes *const *routes;
    /* [rails], index in `position` of the first link direction of each rail */
    const uint64_t *position_first;
    /* The index of each link direction of `routes` among the counted link directions; IBP_UNCOUNTED if the link
     * direction is not counted. */
    const uint32_t *position;
    /* [rails][ports], the link directions from the port and to the port; used only for paths that reach their
     * destination */
    const uint32_t *out_of_port;
    const uint32_t *into_port;
    /* [rails * leaves * ports + 1], where the path from a leaf to a port begins in `paths`; NULL without a table of
     * paths */
    const uint32_t *path_first;
    const uint32_t *paths;
    /* [ends] */
    const double *seconds_per_byte;
};

/* A search by simulated annealing. A proposal exchanges two groups of ranks, exchanges all ranks of two hosts, or moves
 * a group of ranks to free slots. The energy is the sum over link directions of (bytes * unit) ^ (2 ^ doublings). The
 * search accepts every proposal that lowers the energy, and at random some that raise the energy, fewer at low
 * temperatures. */
struct ibp_placement_search {
    /* [switches of the largest rail + 2], memory for one path */
    uint32_t *path;
    /* [ranks], the present slot of each rank */
    uint32_t *slot_of_rank;
    /* [slots], -1 for a free slot */
    int32_t *rank_of_slot;
    /* [ranks], the slot of each rank after the present proposal; equal to `slot_of_rank` between calls */
    uint32_t *new_slot;
    /* [ranks], the first `moves` elements are the ranks that the present proposal moves */
    uint32_t *moved;
    uint64_t moves;
    /* [ranks], 1 if the traffic of a moved rank is already in `change`; all 0 between calls */
    uint8_t *is_counted;
    /* [ends], the factor `unit` of each link direction in the formula of the energy */
    const double *unit;
    /* [ends], maximum load of each link direction, in bytes. The search refuses a proposal that raises a load above
     * this maximum */
    const int64_t *limit;
    /* [ends], bytes */
    int64_t *load;
    /* [ends], change of the load by the present proposal; all 0 between calls */
    int64_t *change;
    /* [ends] */
    uint8_t *is_touched;
    /* [ends], the first `touches` elements are the link directions whose load the present proposal changes */
    uint32_t *touched;
    uint32_t touches;
    /* [ranks], slots of the best placement found */
    uint32_t *best;
    struct ibp_placement_score best_score;
    double energy;
    /* Energy of the last placement whose score was computed. A score is computed only for a placement whose energy is
     * below this value. */
    double computed_at;
    uint32_t doublings;
    /* Temperature at the beginning of the search, and at the end. Temperatures are relative to the energy. */
    double first_temperature;
    double last_temperature;
    double temperature;
    /* For proposals that raise the energy: sum of log(new energy / old energy - 1), and number of these proposals. */
    double uphill;
    uint64_t climbs;
    /* State of the random number generator. */
    uint64_t random;
    /* Work done so far, measured in visits of link directions. */
    uint64_t work;
    uint64_t all_work;
    uint64_t proposals;
    uint64_t accepted;
};

/* A graph with weighted edges. Each edge is listed at both of its vertices. */
struct ibp_graph {
    uint32_t vertices;
    /* [vertices + 1] */
    const uint64_t *first;
    const uint32_t *other;
    const double *weight;
};

/* Compute the table of paths. Set `first` to the values for the member `path_first`. Write the paths to `paths`, unless
 * it is NULL. `space` is memory for one path. Return the total length of all paths. */
uint64_t ibp_placement_paths(const struct ibp_placement_problem *problem, uint32_t *space, uint32_t *first,
                             uint32_t *paths);

/* Set load[ends] to the bytes that a placement causes on each link direction. `space` is memory for one path. */
void ibp_placement_load(const struct ibp_placement_problem *problem, uint32_t *space, const uint32_t *slot_of_rank,
                        int64_t *load);

void ibp_placement_score_load(const struct ibp_placement_problem *problem, const int64_t *load,
                              struct ibp_placement_score *score);

/* Continue the search until `work` reaches `until` or `all_work`. The result does not depend on how the work is split
 * over calls. */
void ibp_placement_search(const struct ibp_placement_problem *problem, struct ibp_placement_search *search,
                          uint64_t until);

/* Divide a graph into two parts, with `size` and `vertices - size` vertices. Keep the total weight of the edges that
 * join the two parts small. Set part[vertex] to the part of the vertex, 0 or 1. The method is multilevel bisection:
 * coarsening by heavy edges, refinement by Fiduccia-Mattheyses moves. Return 0, or a negative errno if memory is
 * exhausted. */
int ibp_bisect(const struct ibp_graph *graph, uint32_t size, uint64_t seed, uint8_t *part);

/* Assign the vertices of a graph to places in a row. If a heavy edge joins two vertices, their places are near each
 * other. The array gap[vertices - 1] contains the distance from each place to the next place. The function divides the
 * row at its largest gap, and each part in the same way, until each part is one place. Of equal gaps, the function
 * chooses the gap nearest to the middle of the part. Set place[vertices] to the place of each vertex. Return 0, or a
 * negative errno if memory is exhausted. */
int ibp_divide(const struct ibp_graph *graph, const double *gap, uint64_t seed, uint32_t *place);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
