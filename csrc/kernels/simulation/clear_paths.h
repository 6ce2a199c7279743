/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Packets whose remaining path is clear: they reach their host without events at the remaining queues.
 *
 * A message uses the queues of its path from its start to its completion. Where it is the only user of the remaining
 * queues, nothing can delay its packets. Each packet arrives after the links' times, and no other packet depends on its
 * buffers. When a later message shares one of these queues, packets have events again from that queue on. Packets that
 * skipped hops before have left that queue when the first packet of the other message can reach it: `earliest` ensures
 * that.
 *
 * So the start and latency of each message equal the results of a simulation of every hop. Loads of links are not
 * counted.
 *
 * Where the whole path is clear, the message has one event, at its completion. Its packets leave the host one after the
 * other, at times that are known. When a message of another process starts to share one of its queues, its packets have
 * events again: those that have not reached the first switch are placed as in a simulation of every hop.
 */
#ifndef IBP_SIMULATION_CLEAR_PATHS_H
#define IBP_SIMULATION_CLEAR_PATHS_H

#include "simulation/queues.h"

/* Note that a message of a process starts. Return whether it can be sent as a whole. To be called only where hops are
 * skipped. */
bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t process);

/* Note that a message of a process is complete. To be called only where hops are skipped. */
void ibp_sim_leave_path(struct ibp_sim *sim, uint32_t process);

/* Return whether nothing can delay a packet from the switch at which it arrives. */
static inline bool ibp_sim_is_path_clear(const struct ibp_sim *sim, struct ibp_sim_packet packet)
{
    return ibp_sim_skips(sim) && ibp_sim_hop_of(packet.size) >= sim->path[packet.client].clear_from;
}

/* Send a process's message as a whole, from a host that sends nothing else. */
void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t process);

#endif
