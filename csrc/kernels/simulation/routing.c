/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/routing.h"

uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t leaf, unsigned lane)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t words = (network->width + 63) / 64;
    const uint64_t *minimal = &network->minimal[(at * (uint64_t)network->switches + leaf) * words];
    uint32_t least = UINT32_MAX, ties = 0, chosen = IBP_SIM_NOTHING;

    for (uint32_t word = 0; word < words; word++)
        for (uint64_t ports = minimal[word]; ports; ports &= ports - 1) {
            const uint32_t port = word * 64 + (uint32_t)__builtin_ctzll(ports);
            const uint32_t number = ibp_sim_queue_of_port(sim, at, port, lane);
            const uint32_t queued = sim->queue[number].taken + sim->queue[number].waiting;

            if (queued > least) continue;
            if (queued < least) ties = 0;
            least = queued;
            if (ibp_sim_random(sim) % ++ties == 0) chosen = number;
        }
    return chosen;
}
