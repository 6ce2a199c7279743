/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The steps of processes, and the packets of their messages. Hosts put packets on the network; queues admit waiting
 * packets when buffer space is released.
 */
#ifndef IBP_SIMULATION_CLIENTS_H
#define IBP_SIMULATION_CLIENTS_H

#include "simulation/clear_paths.h"

/* Admit waiting packets to all queues in `freed`. Each admitted packet releases buffer space in its previous queue. */
void ibp_sim_admit_waiting(struct ibp_sim *sim);

/* Release buffer space of a queue, and admit all packets that can then move. */
static inline void ibp_sim_free_buffer(struct ibp_sim *sim, uint32_t queue, uint32_t bytes)
{
    ibp_sim_release(sim, queue, bytes);
    if (sim->freed_count) ibp_sim_admit_waiting(sim);
}

/* Start a process's next step, if the messages that the step awaits have arrived. */
void ibp_sim_act(struct ibp_sim *sim, uint32_t process);

/* Deliver bytes of a process's message at a host. */
void ibp_sim_deliver(struct ibp_sim *sim, uint32_t process, uint32_t host, uint32_t bytes);

#endif
