/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Processes: when they send, what they wait for, and how long it took.
 */
#ifndef IBP_SIMULATION_CLIENTS_H
#define IBP_SIMULATION_CLIENTS_H

#include "simulation/injection.h"

/* Start a process's next step, if what it awaits has arrived. */
void ibp_sim_act(struct ibp_sim *sim, uint32_t process);

/* Deliver bytes of a process's message at a host. */
void ibp_sim_deliver(struct ibp_sim *sim, uint32_t process, uint32_t host, uint32_t bytes);

#endif
