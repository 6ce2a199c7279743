/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hosts that put packets on the network, and waiting packets that get on when buffer is released.
 */
#ifndef IBP_SIMULATION_INJECTION_H
#define IBP_SIMULATION_INJECTION_H

#include "simulation/clear_paths.h"
#include "simulation/packets.h"

/* Have a host send the next message of a process: to the other host of its step, or back as an answer. */
void ibp_sim_send(struct ibp_sim *sim, uint32_t host, uint32_t process, uint64_t bytes);

/* Admit packets to every queue that released buffer. Each packet that moves on releases buffer upstream. */
void ibp_sim_admit_waiting(struct ibp_sim *sim);

/* Release buffer of a queue, and admit packets wherever that makes progress possible. */
static inline void ibp_sim_free_buffer(struct ibp_sim *sim, uint32_t queue, uint32_t bytes)
{
    ibp_sim_release(sim, queue, bytes);
    if (sim->freed_count) ibp_sim_admit_waiting(sim);
}

#endif
