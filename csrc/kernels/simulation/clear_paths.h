/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Clear paths. If nothing can delay a packet on the rest of its path, it needs no events at the remaining queues.
 *
 * A message uses the queues of its path from its start to its completion. If it is the only user of the remaining
 * queues, nothing can delay its packets: the time of arrival follows from the links, and no other packet depends on
 * their buffers. If a later message uses one of these queues, packets have events again, up to this queue. Packets that
 * have already skipped the queue must have left it before a packet of the other message can arrive there: `earliest`
 * ensures this.
 *
 * So each message has the same start and latency as in a simulation of every hop. Loads of links are not counted.
 *
 * If the whole path is clear, a message has only one event, at its completion: it is sent as a whole. If a message of
 * another process then uses one of these queues, the packets of the whole message get events again. Packets that have
 * not reached the first switch get the state that they would have in a simulation of every hop.
 */
#ifndef IBP_SIMULATION_CLEAR_PATHS_H
#define IBP_SIMULATION_CLEAR_PATHS_H

#include "simulation/queues.h"

/* A message of a process starts: mark the queues of its path as used. Return whether it can be sent as a whole. To be
 * called only if hops are skipped. */
bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t process);

/* A message of a process is complete: undo ibp_sim_use_path. To be called only if hops are skipped. */
void ibp_sim_leave_path(struct ibp_sim *sim, uint32_t process);

/* Return whether the rest of a packet's path is clear, from the switch at which it arrives. */
static inline bool ibp_sim_is_path_clear(const struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    return ibp_sim_skips(sim) && ibp_sim_hop_of(packet.size) >= sim->path[packet.client].clear_from;
}

/* Send a process's message as a whole. Its host must have no other message to send. */
void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t process);

#endif
