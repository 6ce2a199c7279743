/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/clear_paths.h"

#include <errno.h>
#include <stdlib.h>

enum {
    /* value of a member of ibp_sim_use if messages have different values */
    MANY = IBP_SIM_NOTHING - 1,
    /* Maximum number of paths that are examined before the first tick. */
    PATHS_MAX = 1 << 22
};

/* -- whole messages ------------------------------------------------------------------------------------------------ */

static uint64_t count_packets(const struct ibp_sim_path *path)
{
    return path->bytes <= path->packet ? 1 : path->bytes / path->packet;
}

static const struct ibp_sim_kind *kind_at(const struct ibp_sim *sim, const struct ibp_sim_path *path, unsigned hop)
{
    return ibp_sim_kind_of(sim, &sim->queue[path->queue[hop]]);
}

/* Return the ticks from the start of a packet to the start of the next packet, on the host's link. */
static uint64_t packet_interval(const struct ibp_sim_kind *kind, const struct ibp_sim_path *path)
{
    return ibp_sim_ticks_of(kind, path->packet) + kind->gap;
}

/* Return the tick at which the first packet of a message arrives at the first switch. */
static uint64_t first_arrival(const struct ibp_sim_kind *kind, const struct ibp_sim_path *path)
{
    return path->begun + ibp_sim_ticks_of(kind, path->packet) + kind->delay;
}

void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const struct ibp_sim_kind *kind = kind_at(sim, path, 0);
    const uint64_t packets = count_packets(path), turn = packet_interval(kind, path);
    struct ibp_sim_packet last = {.client = number, .queue = IBP_SIM_NOTHING, .size = path->packet};

    if (++sim->wholes >= IBP_SIM_AT_HOST) sim->wholes = 0;
    path->whole = last.ahead = sim->wholes;
    path->begun = queue->free_at > sim->state.now ? queue->free_at : sim->state.now;
    queue->free_at = path->begun + packets * turn;
    process->to_inject = 0;
    process->to_arrive = path->packet;
    sim->state.in_flight++;
    sim->state.packets += packets;
    ibp_sim_count_skipped(sim, packets * path->hops - 1);
    sim->state.bytes_sent += packets * path->packet;
    sim->state.bytes_arrived += packets * path->packet;
    ibp_sim_schedule_packet(sim, first_arrival(kind, path) + (packets - 1) * turn + path->rest[1], last);
}

/* Return how many packets of a message have arrived at the first switch. */
static uint64_t count_arrived_packets(const struct ibp_sim *sim, const struct ibp_sim_path *path)
{
    const struct ibp_sim_kind *kind = kind_at(sim, path, 0);
    const uint64_t first = first_arrival(kind, path), packets = count_packets(path);
    const uint64_t gone = sim->state.now < first ? 0 : (sim->state.now - first) / packet_interval(kind, path) + 1;

    return gone < packets ? gone : packets;
}

/* Split a message that was sent as a whole: put its remaining packets into the queue of the sending host. */
static void split_message(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const struct ibp_sim_kind *kind = kind_at(sim, path, 0);
    const uint64_t packets = count_packets(path), gone = count_arrived_packets(sim, path), left = packets - gone;
    const uint64_t fit = kind->capacity / path->packet, queued = left < fit ? left : fit;
    const uint64_t first = first_arrival(kind, path), turn = packet_interval(kind, path);
    const struct ibp_sim_packet packet = {.client = number,
                                          .queue = path->queue[0],
                                          .ahead = path->queue[1],
                                          .size = path->packet + IBP_SIM_PACKET_LIMIT};

    if (!left) return; /* the message keeps its event and tick, because all packets have passed the host's link */
    path->whole = IBP_SIM_NOTHING;
    sim->state.in_flight--;
    ibp_sim_count_skipped(sim, 1 - left * path->hops);
    sim->state.bytes_arrived -= left * path->packet;
    sim->state.packets -= left - queued;
    sim->state.bytes_sent -= (left - queued) * path->packet;
    process->to_arrive = left * path->packet;
    process->to_inject = (left - queued) * path->packet;
    sim->state.in_flight += queued;
    for (uint64_t i = gone; i < gone + queued; i++) ibp_sim_schedule_packet(sim, first + i * turn, packet);
    queue->taken = queue->queued = (uint32_t)queued * path->packet;
    queue->free_at = path->begun + (gone + queued) * turn;
    if (!process->to_inject) return;
    process->next_at_host = number;
    sim->outbox[process->client.host].last = number;
}

/* -- clear paths --------------------------------------------------------------------------------------------------- */

static uint32_t first_packet(const struct ibp_sim *sim, uint64_t bytes)
{
    return bytes < sim->network.packet_bytes ? (bytes ? (uint32_t)bytes : 1) : sim->network.packet_bytes;
}

/* Return whether all packets of a message have the same size. A shorter last packet catches up with the packet before
 * it. */
static bool is_of_equal_packets(const struct ibp_sim *sim, uint64_t bytes)
{
    return bytes <= sim->network.packet_bytes || bytes % sim->network.packet_bytes == 0;
}

/* Return whether successive packets from link `before` never wait for the next link `kind`, and fit into the buffer at
 * its end. */
static bool keeps_up(const struct ibp_sim *sim, const struct ibp_sim_kind *before, const struct ibp_sim_kind *kind,
                     uint64_t ticks)
{
    return kind->byte_ticks <= before->byte_ticks && !kind->gap &&
           (kind->delay / ticks + 3) * sim->network.packet_bytes <= kind->capacity;
}

/* Return whether the buffer at the end of a host's link is so large that the link never idles during a message. */
static bool has_buffer_for_link(const struct ibp_sim *sim, const struct ibp_sim_kind *kind, uint64_t packet)
{
    return (kind->delay / ibp_sim_ticks_of(kind, packet) + 3) * sim->network.packet_bytes <= kind->capacity;
}

/* Return whether all packets of a queue have the same size and come from the path's previous queue. Packets of such a
 * queue never wait for each other. */
static bool is_continuation(const struct ibp_sim *sim, const struct ibp_sim_path *path, uint32_t at)
{
    const struct ibp_sim_use *use = &sim->use[path->queue[at]];

    return use->before == path->queue[at - 1] && use->packet != MANY;
}

/* Find the clear part of a path, and the ticks from each queue of the clear part to the host. */
static void find_clear_part(const struct ibp_sim *sim, uint64_t bytes, struct ibp_sim_path *path)
{
    const uint32_t packet = path->packet = first_packet(sim, bytes);
    uint64_t slack = UINT64_MAX, rest = 0;
    uint8_t at = path->hops;
    bool is_clear = is_of_equal_packets(sim, bytes);

    path->always_from = at;
    while (is_clear && at > 1) {
        const uint32_t number = path->queue[at - 1];
        const struct ibp_sim_kind *kind = kind_at(sim, path, at - 1U);
        const uint64_t ticks = ibp_sim_ticks_of(kind, packet), hop = ticks + kind->delay;
        const bool always = path->always_from == at && is_continuation(sim, path, at - 1);

        if (!always && sim->use[number].earliest < slack) slack = sim->use[number].earliest;
        rest += hop;
        is_clear = slack >= hop && rest <= UINT32_MAX && keeps_up(sim, kind_at(sim, path, at - 2U), kind, ticks);
        if (!is_clear) break;
        if (slack != UINT64_MAX) slack -= hop;
        path->rest[--at] = (uint32_t)rest;
        if (always) path->always_from = at;
    }
    path->alone_from = at;
    path->may_be_whole = at == 1 && path->hops > 1 && has_buffer_for_link(sim, kind_at(sim, path, 0), packet);
}

static void set_path(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_process *process = &sim->process[number];
    const uint64_t bytes = ibp_sim_step_of(sim, process)->bytes;
    struct ibp_sim_path *path = &sim->path[number];

    if (path->from == process->client.host && path->to == process->to && path->bytes == bytes) return;
    path->bytes = bytes;
    ibp_sim_set_path(sim, number, process->client.host, process->to);
    find_clear_part(sim, bytes, path);
}

/* Shorten the clear part of a path, because another message will use `queue`. */
static void cut_clear_part(struct ibp_sim *sim, uint32_t number, uint32_t queue)
{
    struct ibp_sim_path *path = &sim->path[number];

    if (path->whole != IBP_SIM_NOTHING) split_message(sim, number);
    for (uint8_t at = path->always_from; at > path->clear_from; at--)
        if (path->queue[at - 1] == queue) path->clear_from = at;
}

bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    bool is_alone = true;

    set_path(sim, number);
    path->whole = IBP_SIM_NOTHING;
    path->clear_from = path->alone_from;
    for (uint8_t at = 0; at < path->hops; at++) {
        struct ibp_sim_use *use = &sim->use[path->queue[at]];

        if (use->messages == 1) cut_clear_part(sim, use->processes, path->queue[at]);
        if (use->messages) {
            is_alone = false;
            if (path->clear_from <= at && at < path->always_from) path->clear_from = (uint8_t)(at + 1);
        }
        use->messages++;
        use->processes += number;
    }
    return is_alone && path->may_be_whole;
}

void ibp_sim_leave_path(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_path *path = &sim->path[number];

    for (uint8_t at = 0; at < path->hops; at++) {
        struct ibp_sim_use *use = &sim->use[path->queue[at]];

        use->messages--;
        use->processes -= number;
    }
}

static void note_only(uint32_t *only, uint32_t value)
{
    if (*only == IBP_SIM_NOTHING) *only = value;
    if (*only != value) *only = MANY;
}

/* For each queue of a path, record how messages of a client use the queue (struct ibp_sim_use). */
static void note_use(struct ibp_sim *sim, uint32_t client, uint64_t bytes, const struct ibp_sim_path *path)
{
    const uint32_t packet = first_packet(sim, bytes);
    uint64_t after = 0;

    for (uint8_t at = 0; at < path->hops; at++) {
        struct ibp_sim_use *use = &sim->use[path->queue[at]];
        const struct ibp_sim_kind *kind = kind_at(sim, path, at);

        note_only(&use->client, client);
        note_only(&use->before, at ? path->queue[at - 1] : MANY);
        note_only(&use->packet, is_of_equal_packets(sim, bytes) ? packet : MANY);
        if (after < use->earliest) use->earliest = after;
        after += ibp_sim_ticks_of(kind, packet) + kind->delay;
    }
}

static bool note_client(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_client *client = &sim->process[number].client;
    struct ibp_sim_path *path = &sim->path[number];

    for (uint32_t i = 0; i < client->steps; i++) {
        const struct ibp_sim_step *step = &sim->step[client->first_step + i];

        if (step->host == client->host) continue;
        ibp_sim_set_path(sim, number, client->host, step->host);
        if (!path->hops) return false;
        note_use(sim, number, step->bytes, path);
    }
    path->from = IBP_SIM_NOTHING; /* the clear part of this path is still unknown */
    return true;
}

static bool can_skip(const struct ibp_sim *sim)
{
    uint64_t paths = 0;

    for (uint32_t i = 0; i < sim->jobs; i++)
        if (sim->job[i].reads) return false;
    for (uint32_t i = 0; i < sim->clients; i++) paths += sim->process[i].client.steps;
    return paths <= PATHS_MAX && !sim->network.minimal && sim->network.lanes == 1;
}

int ibp_sim_skip_hops(struct ibp_sim *sim)
{
    const uint64_t queues = ibp_sim_count_queues(sim);
    bool is_known = true;

    if (!can_skip(sim) || ibp_sim_skips(sim)) return ibp_sim_skips(sim);
    sim->use = calloc(queues, sizeof *sim->use);
    if (!sim->use) return -ENOMEM;
    for (uint64_t i = 0; i < queues; i++)
        sim->use[i] = (struct ibp_sim_use){
            .client = IBP_SIM_NOTHING, .before = IBP_SIM_NOTHING, .packet = IBP_SIM_NOTHING, .earliest = UINT64_MAX};
    for (uint32_t i = 0; i < sim->clients && is_known; i++) is_known = note_client(sim, i);
    for (uint64_t i = 0; i < queues; i++)
        if (sim->use[i].client != MANY) sim->use[i].earliest = UINT64_MAX; /* messages of a client never overlap */
    if (is_known) return 1;
    free(sim->use);
    sim->use = NULL;
    return 0;
}
