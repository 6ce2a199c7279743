/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A path is clear from a queue on if nothing can delay a packet at this queue and at later queues. A packet needs no
 * events at the queues of the clear part.
 *
 * From its start to its completion, a message uses the queues of its path. While no other message uses the remaining
 * queues of the path, nothing can delay the packets of the message. The speeds and delays of the links then determine
 * the arrival times. No other packet waits for the buffers of the remaining queues. If a later message uses one of the
 * remaining queues, packets have events again, up to the shared queue. The member `earliest` of ibp_sim_use ensures
 * that all packets which skipped the shared queue leave the queue before the later message arrives.
 *
 * So each message has the same start and latency as in a simulation of every hop. Loads do not include skipped hops.
 *
 * If the whole path is clear, a message is sent as a whole, and its completion is its only event. When another process
 * uses one of the path's queues, the message is split into packets again. Packets that have not yet reached the first
 * switch get the same state as in a simulation of every hop.
 */
#ifndef IBP_SIMULATION_CLEAR_PATHS_H
#define IBP_SIMULATION_CLEAR_PATHS_H

#include "simulation/queues.h"

/* If hops are skipped: mark the queues on the path of a starting message as used. Return whether the message can be
 * sent as a whole. */
bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t process);

/* If hops are skipped: undo ibp_sim_use_path when the message is complete. */
void ibp_sim_leave_path(struct ibp_sim *sim, uint32_t process);

/* Return whether the rest of a packet's path is clear, from the packet's next switch on. */
static inline bool ibp_sim_is_path_clear(const struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    return ibp_sim_skips(sim) && ibp_sim_hop_of(packet.size) >= sim->path[packet.client].clear_from;
}

/* Send a process's message as a whole. The host must have no other message to send. */
void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t process);

#endif
