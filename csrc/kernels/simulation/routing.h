/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The queue by which a packet leaves a node.
 */
#ifndef IBP_SIMULATION_ROUTING_H
#define IBP_SIMULATION_ROUTING_H

#include "simulation/state.h"

static inline uint32_t ibp_sim_queue_of_port(const struct ibp_sim *sim, uint32_t at, uint32_t port, unsigned lane)
{
    return ibp_sim_port_of_switch(sim, at, port) * sim->network.lanes + lane;
}

/* Return the queue that the forwarding tables name for a packet at a node, or IBP_SIM_NOTHING. It is looked up when the
 * packet departs: nothing waits for the answer yet. */
static inline uint32_t ibp_sim_look_up(const struct ibp_sim *sim, uint32_t node, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;

    if (node < network->hosts) return IBP_SIM_NOTHING;
    const uint32_t at = node - network->hosts;
    const uint32_t port = network->egress[(uint64_t)at * network->hosts + packet->host];
    return port < network->width ? ibp_sim_queue_of_port(sim, at, port, packet->lane) : IBP_SIM_NOTHING;
}

/* Return the least occupied of the queues on shortest routes, a random one of equals. */
uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t leaf, unsigned lane);

/* Return the queue by which a packet leaves a switch, or IBP_SIM_NOTHING. */
static inline uint32_t ibp_sim_next_queue(struct ibp_sim *sim, uint32_t at, const struct ibp_sim_packet *packet)
{
    const struct ibp_sim_network *network = &sim->network;
    const uint32_t leaf = network->host_leaf[packet->host];

    if (network->minimal && at != leaf) return ibp_sim_choose_queue(sim, at, leaf, packet->lane);
    if (packet->ahead == IBP_SIM_NOTHING) return IBP_SIM_NOTHING;
    return ibp_sim_shared(sim, packet->ahead, packet->lane)->to == IBP_SIM_NOTHING ? IBP_SIM_NOTHING : packet->ahead;
}

#endif
