/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Arrivals of packets, and actions of processes.
 */
#ifndef IBP_SIMULATION_EVENTS_H
#define IBP_SIMULATION_EVENTS_H

#include "simulation/clients.h"

/* Process all events of the present tick. */
void ibp_sim_process_tick(struct ibp_sim *sim);

#endif
