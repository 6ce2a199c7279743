/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/clear_paths.h"

#include <errno.h>
#include <stdlib.h>

enum {
    /* Several clients, queues or sizes. */
    MANY = IBP_SIM_NOTHING - 1,
    /* Paths that are read before the first tick. */
    PATHS_MAX = 1 << 22
};

/* -- whole messages ------------------------------------------------------------------------------------------------ */

static uint64_t count_packets(const struct ibp_sim_path *path)
{
    return path->bytes <= path->packet ? 1 : path->bytes / path->packet;
}

/* Return the ticks from one packet to the next on the host's link. */
static uint64_t turn_of(const struct ibp_sim_queue *queue, const struct ibp_sim_path *path)
{
    return ibp_sim_ticks_of(queue, path->packet) + queue->gap;
}

/* Return the tick at which the first packet is at the first switch. */
static uint64_t first_arrival(const struct ibp_sim_queue *queue, const struct ibp_sim_path *path)
{
    return path->begun + ibp_sim_ticks_of(queue, path->packet) + queue->delay;
}

void ibp_sim_send_whole(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const uint64_t packets = count_packets(path);
    const uint32_t last = ibp_sim_take_packet(sim);

    if (last == IBP_SIM_NOTHING) return;
    path->begun = queue->free_at > sim->state.now ? queue->free_at : sim->state.now;
    path->last = last;
    queue->free_at = path->begun + packets * turn_of(queue, path);
    process->to_inject = 0;
    process->to_arrive = path->packet;
    sim->packet[last] = (struct ibp_sim_packet){
        .client = number,
        .queue = IBP_SIM_NOTHING,
        .host = path->host,
        .node = path->host,
        .ahead = IBP_SIM_NOTHING,
        .bytes = path->packet,
    };
    sim->state.packets += packets;
    ibp_sim_count_skipped(sim, packets * path->hops - 1);
    sim->state.bytes_sent += packets * path->packet;
    sim->state.bytes_arrived += packets * path->packet;
    ibp_sim_schedule_packet(sim, first_arrival(queue, path) + (packets - 1) * turn_of(queue, path) + path->rest[1],
                            last);
}

/* Return how many packets have reached the first switch. */
static uint64_t count_gone(const struct ibp_sim *sim, const struct ibp_sim_path *path)
{
    const struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    const uint64_t first = first_arrival(queue, path), packets = count_packets(path);
    const uint64_t gone = sim->state.now < first ? 0 : (sim->state.now - first) / turn_of(queue, path) + 1;

    return gone < packets ? gone : packets;
}

/* Put a packet into its host's queue that arrives at the first switch at a known tick. */
static void place(struct ibp_sim *sim, uint32_t process, uint64_t arrival)
{
    const struct ibp_sim_path *path = &sim->path[process];
    const uint32_t number = ibp_sim_take_packet(sim);

    if (number == IBP_SIM_NOTHING) return;
    sim->packet[number] = (struct ibp_sim_packet){
        .client = process,
        .queue = path->queue[0],
        .host = path->host,
        .node = sim->queue[path->queue[0]].to,
        .ahead = path->queue[1],
        .bytes = path->packet,
        .hop = 1,
        .job = (uint16_t)sim->process[process].client.job,
    };
    ibp_sim_schedule_packet(sim, arrival, number);
}

/* Put the packets of a message that is sent as a whole into its host's queue. */
static void break_up(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    struct ibp_sim_queue *queue = &sim->queue[path->queue[0]];
    struct ibp_sim_process *process = &sim->process[number];
    const uint64_t packets = count_packets(path), gone = count_gone(sim, path), left = packets - gone;
    const uint64_t fit = queue->capacity / path->packet, queued = left < fit ? left : fit;
    const uint64_t first = first_arrival(queue, path), turn = turn_of(queue, path);
    const uint32_t last = path->last;

    path->last = IBP_SIM_NOTHING;
    if (!left) return; /* its event at the host is right */
    sim->packet[last].client = IBP_SIM_NOTHING;
    sim->state.in_flight--;
    ibp_sim_count_skipped(sim, 1 - left * path->hops);
    sim->state.bytes_arrived -= left * path->packet;
    sim->state.packets -= left - queued;
    sim->state.bytes_sent -= (left - queued) * path->packet;
    process->to_arrive = left * path->packet;
    process->to_inject = (left - queued) * path->packet;
    for (uint64_t i = gone; i < gone + queued; i++) place(sim, number, first + i * turn);
    queue->taken = (uint32_t)queued * path->packet;
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

/* Return whether all packets of a message are of one size; a shorter last one would catch up. */
static bool is_of_equal_packets(const struct ibp_sim *sim, uint64_t bytes)
{
    return bytes <= sim->network.packet_bytes || bytes % sim->network.packet_bytes == 0;
}

/* List the queues from a host to another. Returns false where a table leads elsewhere, or where they are too many. */
static bool list_queues(const struct ibp_sim *sim, uint32_t from, uint32_t to, struct ibp_sim_path *path)
{
    uint32_t queue = ibp_sim_port_of_host(sim, from);
    const struct ibp_sim_packet packet = {.host = to};

    path->hops = 0;
    for (;;) {
        if (queue == IBP_SIM_NOTHING || sim->queue[queue].to == IBP_SIM_NOTHING) return false;
        path->queue[path->hops++] = queue;
        if (sim->queue[queue].to < sim->network.hosts) return sim->queue[queue].to == to;
        if (path->hops == IBP_SIM_PATH_MAX) return false;
        queue = ibp_sim_look_up(sim, sim->queue[queue].to, &packet);
    }
}

/* Return whether packets that come one after the other from a link never queue at the next one, and fit its buffer. */
static bool keeps_up(const struct ibp_sim *sim, const struct ibp_sim_queue *before, const struct ibp_sim_queue *queue,
                     uint64_t ticks)
{
    return queue->byte_ticks <= before->byte_ticks && !queue->gap &&
           (queue->delay / ticks + 3) * sim->network.packet_bytes <= queue->capacity;
}

/* Return whether a host's link never rests while its message has more packets. */
static bool has_buffer_for_link(const struct ibp_sim *sim, const struct ibp_sim_queue *queue, uint64_t packet)
{
    return (queue->delay / ibp_sim_ticks_of(queue, packet) + 3) * sim->network.packet_bytes <= queue->capacity;
}

/* Return whether all packets in a queue are of one size and come from the one before it: they never wait for others. */
static bool is_continuation(const struct ibp_sim *sim, const struct ibp_sim_path *path, uint32_t at)
{
    const struct ibp_sim_use *use = &sim->use[path->queue[at]];

    return use->before == path->queue[at - 1] && use->packet != MANY;
}

/* Find from which queues on a path is clear, and the ticks from each of these to the host. */
static void find_clear_part(const struct ibp_sim *sim, uint64_t bytes, struct ibp_sim_path *path)
{
    const uint32_t packet = path->packet = first_packet(sim, bytes);
    uint64_t slack = UINT64_MAX, rest = 0;
    uint8_t at = path->hops;
    bool is_clear = is_of_equal_packets(sim, bytes);

    path->always_from = at;
    while (is_clear && at > 1) {
        const uint32_t number = path->queue[at - 1];
        const struct ibp_sim_queue *queue = &sim->queue[number];
        const uint64_t ticks = ibp_sim_ticks_of(queue, packet), hop = ticks + queue->delay;
        const bool always = path->always_from == at && is_continuation(sim, path, at - 1);

        if (!always && sim->use[number].earliest < slack) slack = sim->use[number].earliest;
        rest += hop;
        is_clear = slack >= hop && rest <= UINT32_MAX && keeps_up(sim, &sim->queue[path->queue[at - 2]], queue, ticks);
        if (!is_clear) break;
        if (slack != UINT64_MAX) slack -= hop;
        path->rest[--at] = (uint32_t)rest;
        if (always) path->always_from = at;
    }
    path->alone_from = at;
    path->may_be_whole = at == 1 && path->hops > 1 && has_buffer_for_link(sim, &sim->queue[path->queue[0]], packet);
}

static void set_path(const struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_process *process = &sim->process[number];
    const struct ibp_sim_step *step = ibp_sim_step_of(sim, process);
    struct ibp_sim_path *path = &sim->path[number];

    if (path->host == step->host && path->bytes == step->bytes) return;
    path->host = step->host;
    path->bytes = step->bytes;
    list_queues(sim, process->client.host, step->host, path);
    find_clear_part(sim, step->bytes, path);
}

/* Another message will come to a queue of the only one that used it. */
static void cut_clear_part(struct ibp_sim *sim, uint32_t number, uint32_t queue)
{
    struct ibp_sim_path *path = &sim->path[number];

    if (path->last != IBP_SIM_NOTHING) break_up(sim, number);
    for (uint8_t at = path->always_from; at > path->clear_from; at--)
        if (path->queue[at - 1] == queue) path->clear_from = at;
}

bool ibp_sim_use_path(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_path *path = &sim->path[number];
    bool is_alone = true;

    set_path(sim, number);
    path->last = IBP_SIM_NOTHING;
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

/* Note which client uses the queues of a path, and how soon after a message starts. */
static void note_use(struct ibp_sim *sim, uint32_t client, uint64_t bytes, const struct ibp_sim_path *path)
{
    const uint32_t packet = first_packet(sim, bytes);
    uint64_t after = 0;

    for (uint8_t at = 0; at < path->hops; at++) {
        struct ibp_sim_use *use = &sim->use[path->queue[at]];
        const struct ibp_sim_queue *queue = &sim->queue[path->queue[at]];

        note_only(&use->client, client);
        note_only(&use->before, at ? path->queue[at - 1] : MANY);
        note_only(&use->packet, is_of_equal_packets(sim, bytes) ? packet : MANY);
        if (after < use->earliest) use->earliest = after;
        after += ibp_sim_ticks_of(queue, packet) + queue->delay;
    }
}

static bool note_client(struct ibp_sim *sim, uint32_t number)
{
    const struct ibp_sim_client *client = &sim->process[number].client;
    struct ibp_sim_path path;

    for (uint32_t i = 0; i < client->steps; i++) {
        const struct ibp_sim_step *step = &sim->step[client->first_step + i];

        if (step->host == client->host) continue;
        if (!list_queues(sim, client->host, step->host, &path)) return false;
        note_use(sim, number, step->bytes, &path);
    }
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

static void forget(struct ibp_sim *sim)
{
    free(sim->path);
    free(sim->use);
    sim->path = NULL;
    sim->use = NULL;
}

int ibp_sim_skip_hops(struct ibp_sim *sim)
{
    const uint64_t queues = ibp_sim_count_queues(sim);
    bool is_known = true;

    if (!can_skip(sim) || sim->path) return sim->path != NULL;
    sim->path = aligned_alloc(64, ((size_t)sim->clients + 1) * sizeof *sim->path);
    sim->use = calloc(queues, sizeof *sim->use);
    if (!sim->path || !sim->use) {
        forget(sim);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < sim->clients; i++) sim->path[i].host = IBP_SIM_NOTHING;
    for (uint64_t i = 0; i < queues; i++)
        sim->use[i] = (struct ibp_sim_use){
            .client = IBP_SIM_NOTHING, .before = IBP_SIM_NOTHING, .packet = IBP_SIM_NOTHING, .earliest = UINT64_MAX};
    for (uint32_t i = 0; i < sim->clients && is_known; i++) is_known = note_client(sim, i);
    for (uint64_t i = 0; i < queues; i++)
        if (sim->use[i].client != MANY) sim->use[i].earliest = UINT64_MAX; /* its messages follow each other */
    if (!is_known) forget(sim);
    return is_known;
}
