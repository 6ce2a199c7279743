/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/clients.h"
#include "support/random.h"

/* -- injection ----------------------------------------------------------------------------------------------------- */

/* Advance a host's ring after a packet: move the first process to the end, or remove the process after its last
 * packet. */
static void advance_ring(struct ibp_sim *sim, struct ibp_sim_outbox *outbox, uint32_t number)
{
    const struct ibp_sim_process *process = &sim->process[number];

    if (process->to_inject)
        outbox->last = number;
    else if (number == outbox->last)
        outbox->last = IBP_SIM_NOTHING;
    else
        sim->process[outbox->last].next_at_host = process->next_at_host;
}

/* Put packets of a host's messages on the host's link, until no message is left or the buffer is full. */
static void inject(struct ibp_sim *sim, uint32_t host)
{
    struct ibp_sim_outbox *outbox = &sim->outbox[host];
    const uint32_t port = ibp_sim_port_of_host(sim, host);

    while (outbox->last != IBP_SIM_NOTHING) {
        const uint32_t number = sim->process[outbox->last].next_at_host;
        struct ibp_sim_process *process = &sim->process[number];
        const uint32_t bytes =
            process->to_inject < sim->network.packet_bytes ? (uint32_t)process->to_inject : sim->network.packet_bytes;
        const uint32_t queue = port * sim->network.lanes + ibp_sim_lane_of(sim, number);

        if (!ibp_sim_has_buffer(sim, &sim->queue[queue], bytes)) return;
        sim->state.in_flight++;
        sim->state.packets++;
        sim->state.bytes_sent += bytes;
        process->to_inject -= bytes;
        advance_ring(sim, outbox, number);
        ibp_sim_admit(sim, queue, number, bytes);
        if (sim->failed) return;
    }
}

/* Send the message or request of a process's present step, or the answer to the request, from `host`. */
static void send_message(struct ibp_sim *sim, uint32_t host, uint32_t number, uint64_t bytes)
{
    struct ibp_sim_outbox *outbox = &sim->outbox[host];
    struct ibp_sim_process *process = &sim->process[number];
    const uint64_t sent = bytes ? bytes : 1; /* an empty message has one packet, of 1 byte */

    sim->path[number].last_bytes = (uint32_t)((sent - 1) % sim->network.packet_bytes) + 1;
    process->to = process->answering ? process->client.host : ibp_sim_step_of(sim, process)->host;
    if (!ibp_sim_skips(sim)) {
        ibp_sim_set_path(sim, number, host, process->to);
    } else if (ibp_sim_use_path(sim, number)) {
        ibp_sim_send_whole(sim, number);
        return;
    }
    process->to_inject = process->to_arrive = sent;
    if (outbox->last == IBP_SIM_NOTHING) {
        process->next_at_host = number;
    } else {
        process->next_at_host = sim->process[outbox->last].next_at_host;
        sim->process[outbox->last].next_at_host = number;
    }
    outbox->last = number;
    inject(sim, host);
}

/* Schedule the arrival of a packet that is already listed as waiting: the next queue has free buffer before the packet
 * arrives. */
static void schedule_after_all(struct ibp_sim *sim, uint32_t number, struct ibp_sim_waiter waiter, uint64_t arrival)
{
    const struct ibp_sim_packet packet = {
        .client = waiter.client, .queue = waiter.queue, .ahead = number, .size = waiter.size};

    ibp_sim_count_skipped(sim, -1);
    ibp_sim_schedule_packet(sim, arrival, packet);
}

void ibp_sim_admit_waiting(struct ibp_sim *sim)
{
    while (sim->freed_count) {
        const uint32_t number = sim->freed[--sim->freed_count];
        struct ibp_sim_queue *queue = &sim->queue[number];

        while (queue->waiting && ibp_sim_has_buffer(sim, queue, ibp_sim_bytes_of(queue->head.size))) {
            const uint64_t arrival = sim->arrival ? *ibp_sim_arrival_of(sim, queue, 0) : 0;
            const struct ibp_sim_waiter first = ibp_sim_pop_waiter(sim, queue);

            /* The packet has not arrived yet. The arrival event will admit waiting packets again. Packets behind this
             * packet do not arrive earlier. */
            if (arrival > sim->state.now) {
                queue->queued -= ibp_sim_bytes_of(first.size);
                schedule_after_all(sim, number, first, arrival);
                break;
            }
            ibp_sim_transmit(sim, number, first.client, first.size);
            ibp_sim_release(sim, first.queue, ibp_sim_bytes_of(first.size));
        }
        if (ibp_sim_belongs_to_host(sim, number)) inject(sim, (number - sim->first_of_hosts) / sim->network.lanes);
    }
}

/* -- processes ----------------------------------------------------------------------------------------------------- */

static uint64_t round_of(const struct ibp_sim_process *process)
{
    return process->done / process->client.steps;
}

/* Return a random number. If the job's `alike` is 1, all clients of the job get the same random number in a round. */
static uint64_t sample_number(struct ibp_sim *sim, const struct ibp_sim_process *process)
{
    const uint32_t job = process->client.job;

    if (!sim->job[job].alike) return ibp_sim_random(sim);
    return ibp_mix(ibp_mix(sim->seed) + (round_of(process) * sim->jobs + job) * IBP_RANDOM_STEP);
}

/* Return a uniformly distributed random time with the mean `ticks`. */
static uint64_t vary(struct ibp_sim *sim, const struct ibp_sim_process *process, uint64_t ticks)
{
    const uint64_t width = (uint64_t)((double)ticks * sim->job[process->client.job].jitter / 65536);

    return width ? ticks - width + sample_number(sim, process) % (2 * width + 1) : ticks;
}

static void write_sample(struct ibp_sim *sim, uint32_t number, const struct ibp_sim_step *step)
{
    const struct ibp_sim_process *process = &sim->process[number];

    if (sim->samples == sim->sample_capacity) return; /* never true, because the run ends before the array is full */
    sim->sample[sim->samples++] = (struct ibp_sim_sample){
        .client = number,
        .host = step->host,
        .start = process->started,
        .ticks = sim->state.now - process->started,
        .bytes = step->bytes,
    };
}

static bool has_what_it_awaits(const struct ibp_sim *sim, const struct ibp_sim_process *process)
{
    const uint32_t this_round = process->between_rounds ? 0 : ibp_sim_step_of(sim, process)->awaits;

    return process->arrived >= round_of(process) * process->client.arrivals + this_round;
}

/* Return the earliest tick at which a process may start its next step if it awaits no messages. */
static uint64_t next_start(struct ibp_sim *sim, const struct ibp_sim_process *process)
{
    const struct ibp_sim_step *step = ibp_sim_step_of(sim, process);
    const uint64_t round = sim->job[process->client.job].round, now = sim->state.now;
    const uint64_t paused = now + vary(sim, process, step->pause);
    const uint64_t window = step->window ? vary(sim, process, step->window) : 0;
    const uint64_t in_window = round ? round_of(process) * round + window : window ? process->started + window : 0;
    const uint64_t next = paused > in_window ? paused : in_window;

    return next > now ? next : now + 1;
}

static void notify(struct ibp_sim *sim, uint32_t number, uint32_t slot)
{
    struct ibp_sim_process *process = &sim->process[number];
    const uint32_t slots = process->client.arrivals;
    uint32_t *received = &sim->received[process->first_slot];

    received[slot]++;
    while (received[process->arrived % slots] > process->arrived / slots) process->arrived++;
    if (!process->waits_for_messages || !has_what_it_awaits(sim, process)) return;
    process->waits_for_messages = false;
    ibp_sim_schedule_process(sim, process->between_rounds ? next_start(sim, process) : sim->state.now + 1, number);
    process->between_rounds = false;
}

static void complete(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_process *process = &sim->process[number];
    const struct ibp_sim_job *job = &sim->job[process->client.job];
    const struct ibp_sim_step *step = ibp_sim_step_of(sim, process);

    if (ibp_sim_skips(sim) && step->host != process->client.host) ibp_sim_leave_path(sim, number);
    process->done++;
    process->bytes += step->bytes;
    process->last = sim->state.now;
    process->under_way = process->answering = false;
    sim->state.steps++;
    if (job->sampled) write_sample(sim, number, step);
    process->position = (process->position + 1) % process->client.steps;
    if (!job->limit || process->done < job->limit) {
        process->between_rounds = !process->position;
        if (process->between_rounds && !has_what_it_awaits(sim, process)) {
            process->waits_for_messages = true;
        } else {
            process->between_rounds = false;
            ibp_sim_schedule_process(sim, next_start(sim, process), number);
        }
    }
    if (step->client != IBP_SIM_NOBODY) notify(sim, step->client, step->slot);
}

void ibp_sim_act(struct ibp_sim *sim, uint32_t number)
{
    struct ibp_sim_process *process = &sim->process[number];
    const struct ibp_sim_job *job = &sim->job[process->client.job];
    const struct ibp_sim_step *step = ibp_sim_step_of(sim, process);

    if (process->under_way) { /* the message goes to the process's own host, and arrives now */
        complete(sim, number);
        return;
    }
    if (!has_what_it_awaits(sim, process)) {
        process->waits_for_messages = true;
        return;
    }
    process->started = sim->state.now;
    process->under_way = true;
    if (step->host == process->client.host)
        ibp_sim_schedule_process(sim, sim->state.now + 1, number);
    else
        send_message(sim, process->client.host, number, job->reads ? job->reads : step->bytes);
}

void ibp_sim_deliver(struct ibp_sim *sim, uint32_t number, uint32_t host, uint32_t bytes)
{
    struct ibp_sim_process *process = &sim->process[number];

    assert(process->under_way && process->to_arrive >= bytes);
    process->to_arrive -= bytes;
    if (process->to_arrive) return;
    if (sim->job[process->client.job].reads && !process->answering) {
        process->answering = true;
        send_message(sim, host, number, ibp_sim_step_of(sim, process)->bytes);
        return;
    }
    complete(sim, number);
}
