/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Adaptive routing: the choice among the ports on shortest routes.
 */
#ifndef IBP_SIMULATION_ADAPTIVE_H
#define IBP_SIMULATION_ADAPTIVE_H

#include "simulation/state.h"

/* Set up the members of the simulation for adaptive routing. Return false if memory is exhausted. */
bool ibp_sim_set_up_adaptive(struct ibp_sim *sim);

/* Return the choice of a switch for packets to the last switch of a client's path. The choice is a port number, or
 * IBP_SIM_SETS + the index of a set of ports. Without a port on a shortest route, the choice is IBP_SIM_NOTHING. */
static inline uint32_t ibp_sim_choice_of(const struct ibp_sim *sim, uint32_t at, uint32_t client)
{
    return sim->choice[(uint64_t)sim->choice_row[at] * sim->leaves + sim->path[client].queue[3]];
}

/* Choose a packet's queue at a switch with several possible ports. If `message_step_bytes` is 0, return the least
 * occupied queue. Otherwise, return the queue that the message's first packet took. */
uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t client);

#endif
