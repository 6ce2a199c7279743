/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/state.h"

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state)
{
    *state = sim->state;
}

void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued)
{
    const uint32_t lanes = sim->network.lanes;

    for (uint32_t end = 0; end < sim->network.ends; end++) {
        const uint32_t port = sim->port_of_end[end];

        queued[end] = most_queued[end] = 0;
        for (uint32_t job = 0; job < sim->jobs; job++) {
            const struct ibp_sim_carried none = {0};
            const struct ibp_sim_carried *carried =
                port == IBP_SIM_NOTHING ? &none : &sim->carried[(uint64_t)port * sim->jobs + job];

            bytes[(uint64_t)end * sim->jobs + job] = carried->bytes;
            busy[(uint64_t)end * sim->jobs + job] = carried->ticks;
        }
        if (port != IBP_SIM_NOTHING) {
            const struct ibp_sim_queue *shared = &sim->queue[(uint64_t)port * lanes];

            bytes[(uint64_t)end * sim->jobs + shared->carried_job] += shared->carried_bytes;
            busy[(uint64_t)end * sim->jobs + shared->carried_job] += shared->carried_ticks;
        }
        for (uint32_t lane = 0; lane < lanes && port != IBP_SIM_NOTHING; lane++) {
            const struct ibp_sim_queue *queue = &sim->queue[(uint64_t)port * lanes + lane];

            queued[end] += queue->queued;
            if (queue->most > most_queued[end]) most_queued[end] = queue->most;
        }
    }
}

void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy)
{
    for (uint32_t i = 0; i < sim->clients; i++) {
        steps[i] = sim->process[i].done;
        bytes[i] = sim->process[i].bytes;
        last[i] = sim->process[i].last;
        busy[i] = sim->process[i].under_way || sim->process[i].waits_for_messages;
    }
}
