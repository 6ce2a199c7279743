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
    /* Link directions that count; the last stands for paths that do not arrive. */
    uint32_t ends;
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
    /* [switches of the largest rail + 1], space for one path */
    uint32_t *path;
    /* [ends] */
    const double *seconds_per_byte;
};

/* A search by simulated annealing. It swaps two ranks, or moves one to a free slot, and keeps what lowers the energy:
 * the sum over link directions of (seconds / scale) ^ (2 ^ doublings). At first it also keeps some changes that raise
 * the energy. */
struct ibp_placement_search {
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
    /* [ends], bytes */
    int64_t *load;
    /* [ends]; all 0 between calls, as is `is_touched` */
    int64_t *change;
    /* [ends] */
    uint8_t *is_touched;
    /* [ends] */
    uint32_t *touched;
    /* [ranks], slots of the best placement found */
    uint32_t *best;
    /* Of the best placement: bytes that do not arrive, the bottleneck time, the sum of squared seconds. */
    int64_t best_lost;
    double best_max;
    double best_squares;
    double energy;
    /* The lowest energy whose bottleneck time was computed. */
    double computed_at;
    double scale;
    uint32_t doublings;
    /* Temperatures, relative to the energy: at the beginning, and when all work is done. */
    double first_temperature;
    double last_temperature;
    double temperature;
    /* State of the generator. */
    uint64_t random;
    /* Link directions visited. */
    uint64_t work;
    uint64_t all_work;
    uint64_t proposals;
    uint64_t accepted;
};

/* Compute the bytes that a placement puts on link directions: load[ends] is overwritten. */
void ibp_placement_load(const struct ibp_placement_problem *problem, const uint32_t *slot_of_rank, int64_t *load);

/* Search on until `work` reaches `until` or `all_work`. Splitting the work over several calls does not change the
 * result. */
void ibp_placement_search(const struct ibp_placement_problem *problem, struct ibp_placement_search *search,
                          uint64_t until);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
