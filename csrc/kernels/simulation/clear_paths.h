/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Clear paths. A path is clear from a queue on if nothing can delay a packet at this queue and at later queues. Then
 * the packet needs no events at these queues.
 *
 * From its start to its completion, a message uses the queues of its path. If no other message uses the remaining
 * queues, nothing can delay the packets of the message: their time of arrival follows from the links, and no other
 * packet depends on the buffers of these queues. If a later message uses one of these queues, packets have events
 * again, up to this queue. Packets that have already skipped the queue must have left it before a packet of the other
 * message can arrive there: `earliest` ensures this.
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

/* To be called when a message of a process starts, only if hops are skipped. Mark the queues on the message's path as
 * used. Return whether the message can be sent as a whole. */
bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t process);

/* To be called when a message of a process is complete, only if hops are skipped. Undo ibp_sim_use_path. */
void ibp_sim_leave_path(struct ibp_sim *sim, uint32_t process);

/* Return whether the rest of a packet's path is clear, from the switch at which it arrives. */
static inline bool ibp_sim_is_path_clear(const struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    return ibp_sim_skips(sim) && ibp_sim_hop_of(packet.size) >= sim->path[packet.client].clear_from;
}

/* Send a process's message as a whole. Its host must have no other message to send. */
void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t process);

#endif
