/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/packets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool grow_packets(struct ibp_sim *sim)
{
    const uint32_t capacity = sim->packet_capacity ? 2 * sim->packet_capacity : 1 << 16;
    /* realloc would not keep the alignment. */
    struct ibp_sim_packet *larger = aligned_alloc(64, (size_t)capacity * sizeof *larger);

    if (!larger) {
        sim->failed = -ENOMEM;
        return false;
    }
    if (sim->packets) memcpy(larger, sim->packet, sim->packets * sizeof *larger);
    free(sim->packet);
    sim->packet = larger;
    sim->packet_capacity = capacity;
    return true;
}

uint32_t ibp_sim_take_packet(struct ibp_sim *sim)
{
    uint32_t number = sim->free_packet;

    if (number != IBP_SIM_NOTHING)
        sim->free_packet = sim->packet[number].next;
    else if (sim->packets < sim->packet_capacity || grow_packets(sim))
        number = sim->packets++;
    if (number != IBP_SIM_NOTHING) sim->state.in_flight++;
    return number;
}
