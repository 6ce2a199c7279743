/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages whose whole path is clear (clear_paths.h): one event, at their completion.
 *
 * Their packets leave the host one after the other, at times that are known. A message of another process that shares a
 * queue breaks them up: packets that have not reached the first switch are put where they would be.
 */
#ifndef IBP_SIMULATION_WHOLE_MESSAGES_H
#define IBP_SIMULATION_WHOLE_MESSAGES_H

#include "simulation/packets.h"
#include "simulation/queues.h"

/* Send a process's message as a whole, from a host that sends nothing else. */
void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t process);

/* Put the packets of a message that is sent as a whole into its host's queue. */
void ibp_sim_break_up(struct ibp_sim *sim, uint32_t process);

#endif
