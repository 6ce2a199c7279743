/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The packets on the network, and the list of free ones.
 */
#ifndef IBP_SIMULATION_PACKETS_H
#define IBP_SIMULATION_PACKETS_H

#include "simulation/state.h"

/* Take a packet from the list of free ones, its contents unset. IBP_SIM_NOTHING when memory is short. */
uint32_t ibp_sim_take_packet(struct ibp_sim *sim);

/* Put a packet that is not in flight into the list of free ones. */
static inline void ibp_sim_drop_packet(struct ibp_sim *sim, uint32_t packet)
{
    sim->packet[packet].next = sim->free_packet;
    sim->free_packet = packet;
}

/* Put a packet that has arrived back into the list of free ones. */
static inline void ibp_sim_free_packet(struct ibp_sim *sim, uint32_t packet)
{
    ibp_sim_drop_packet(sim, packet);
    sim->state.in_flight--;
}

#endif
