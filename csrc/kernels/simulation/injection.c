/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/injection.h"

static unsigned choose_lane(const struct ibp_sim *sim, uint32_t from, uint32_t to)
{
    const struct ibp_sim_network *network = &sim->network;

    if (!network->lane) return 0;
    return network->lane[(uint64_t)network->host_leaf[from] * network->switches + network->host_leaf[to]];
}

/* After a packet of the first process in the ring: it becomes the last, or leaves when it has no more to send. */
static void turn_ring(struct ibp_sim *sim, struct ibp_sim_outbox *outbox, uint32_t number)
{
    const struct ibp_sim_process *process = &sim->process[number];

    if (process->to_inject)
        outbox->last = number;
    else if (number == outbox->last)
        outbox->last = IBP_SIM_NOTHING;
    else
        sim->process[outbox->last].next_at_host = process->next_at_host;
}

/* Put as many packets of a host's messages on its link as there is buffer for. */
static void inject(struct ibp_sim *sim, uint32_t host)
{
    struct ibp_sim_outbox *outbox = &sim->outbox[host];
    const uint32_t port = ibp_sim_port_of_host(sim, host);

    while (outbox->last != IBP_SIM_NOTHING) {
        const uint32_t number = sim->process[outbox->last].next_at_host;
        struct ibp_sim_process *process = &sim->process[number];
        const uint32_t to = process->answering ? process->client.host : ibp_sim_step_of(sim, process)->host;
        const unsigned lane = choose_lane(sim, host, to);
        const uint32_t bytes =
            process->to_inject < sim->network.packet_bytes ? (uint32_t)process->to_inject : sim->network.packet_bytes;
        const uint32_t queue = port * sim->network.lanes + lane;
        uint32_t packet;

        if (!ibp_sim_has_buffer(&sim->queue[queue], ibp_sim_shared(sim, queue, lane), bytes)) return;
        packet = ibp_sim_take_packet(sim);
        if (packet == IBP_SIM_NOTHING) return;
        sim->packet[packet] = (struct ibp_sim_packet){
            .client = number,
            .host = to,
            .bytes = bytes,
            .lane = (uint8_t)lane,
            .job = (uint16_t)process->client.job,
        };
        sim->state.packets++;
        sim->state.bytes_sent += bytes;
        process->to_inject -= bytes;
        turn_ring(sim, outbox, number);
        ibp_sim_admit(sim, queue, packet);
    }
}

void ibp_sim_send(struct ibp_sim *sim, uint32_t host, uint32_t number, uint64_t bytes)
{
    struct ibp_sim_outbox *outbox = &sim->outbox[host];
    struct ibp_sim_process *process = &sim->process[number];

    if (sim->path && ibp_sim_use_path(sim, number)) {
        ibp_sim_send_whole(sim, number);
        return;
    }
    process->to_inject = process->to_arrive = bytes ? bytes : 1; /* an empty message is a packet too */
    if (outbox->last == IBP_SIM_NOTHING) {
        process->next_at_host = number;
    } else {
        process->next_at_host = sim->process[outbox->last].next_at_host;
        sim->process[outbox->last].next_at_host = number;
    }
    outbox->last = number;
    inject(sim, host);
}

/* There is buffer before a packet arrives that was to wait for it. */
static void schedule_after_all(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_packet *packet = &sim->packet[number];
    const uint64_t arrival = packet->arrival;

    packet->node = sim->queue[packet->queue].to;
    packet->ahead = IBP_SIM_NOTHING;
    ibp_sim_count_skipped(sim, -1);
    ibp_sim_schedule_packet(sim, arrival, number);
}

void ibp_sim_admit_waiting(struct ibp_sim *sim)
{
    while (sim->freed_count) {
        const uint32_t number = sim->freed[--sim->freed_count];
        struct ibp_sim_queue *queue = &sim->queue[number];

        while (queue->first != IBP_SIM_NOTHING) {
            const uint32_t next = queue->first;
            struct ibp_sim_packet *packet = &sim->packet[next];
            const uint32_t behind = packet->queue, after = sim->queue[behind].first;

            if (after != IBP_SIM_NOTHING) __builtin_prefetch(&sim->packet[after], 1);
            if (!ibp_sim_has_buffer(queue, ibp_sim_shared(sim, number, packet->lane), packet->bytes)) break;
            queue->first = packet->next;
            queue->waiting -= packet->bytes;
            if (packet->arrival > sim->state.now) { /* those behind it arrive no sooner, and it serves the queue */
                schedule_after_all(sim, next);
                break;
            }
            ibp_sim_admit(sim, number, next);
            ibp_sim_release(sim, behind, packet->bytes);
        }
        if (ibp_sim_belongs_to_host(sim, number)) inject(sim, (number - sim->first_of_hosts) / sim->network.lanes);
    }
}
