/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of a simulation, and what its parts offer each other.
 *
 * A packet takes room at a link end (in one of its virtual lanes) from when it is admitted to the end's queue until the next
 * end on its way admits it, or its host has it: that is how credits are counted. An end sends in the order of admission, so
 * the moment at which a packet arrives at the next node is known when it is admitted: one event for each packet and hop.
 */
#ifndef IBP_SIMULATION_H
#define IBP_SIMULATION_H

#include "ibprof_kernels/simulation.h"

#include <assert.h>
#include <stdbool.h>

#define IBP_SIM_NOTHING UINT32_MAX /* no packet, no client */

enum {
    IBP_SIM_LEAD = 16, /* packets */
    IBP_SIM_WHEEL_BITS = 14,
    IBP_SIM_WHEEL = 1
        << IBP_SIM_WHEEL_BITS /* ticks ahead of now that the wheel reaches; what is farther lies in the heap */
};

/* Two to a cache line. */
struct ibp_sim_packet {
    _Alignas(32) uint32_t next; /* in a bucket of the wheel, in a queue of those that wait, or free */
    uint32_t client;
    uint32_t queue; /* whose room it takes, and from which it comes */
    uint32_t host; /* that it is for */
    uint32_t node; /* that it comes to next */
    uint32_t ahead; /* queue that it wants there by the tables, or IBP_SIM_NOTHING */
    uint32_t bytes;
    uint8_t lane;
    uint16_t job;
};

/* A virtual lane of a link end: its room, and the packets that wait for it. What an end's lanes share is in the first of
 * them. A hop touches the queue that a packet comes from and the one that it goes to, so each is a cache line, and where it
 * lies follows from switch and port, or host: ends are numbered anew, in that order. */
struct ibp_sim_queue {
    _Alignas(64) uint32_t taken; /* bytes */
    uint32_t waiting; /* bytes */
    uint32_t first, last;
    uint32_t most; /* bytes taken and waiting */
    /* shared */
    uint32_t to; /* node that the end leads to; IBP_SIM_NOTHING: there is no end */
    uint32_t capacity; /* of each lane */
    uint32_t delay;
    uint64_t free_at; /* when all that it has admitted is sent */
    uint64_t byte_ticks;
    uint32_t place; /* of the end */
};

/* Packets that arrive at the same tick. */
struct ibp_sim_bucket {
    uint32_t first, last;
};

/* What an end has admitted of a job's, and how long it takes to send. */
struct ibp_sim_carried {
    uint64_t bytes, ticks;
};

struct ibp_sim_process {
    struct ibp_sim_client client;
    uint32_t position;    /* its next step, from 0 */
    bool under_way;       /* a message of its own is */
    bool waits_for_messages;
    bool between_rounds;  /* what it waits for belongs to the round that it has sent */
    bool answering;       /* its request has arrived, the answer is under way */
    uint64_t first_slot;  /* of its own in `came` */
    uint64_t arrived;     /* messages that have come to it, in the order of rounds and slots, with none missing */
    uint64_t started, last, done, bytes; /* done: steps, and bytes: of them */
    uint64_t to_inject, to_arrive; /* bytes of its message */
    uint32_t next_at_host;
};

/* What a host has to send: a ring of processes, each in turn by a packet. */
struct ibp_sim_outbox {
    uint32_t last; /* of the ring, whose next one is the first; IBP_SIM_NOTHING: empty */
};

struct ibp_sim_later {
    uint64_t when, order; /* order: of two at one tick, the one that was put in first */
    uint32_t what;
    bool is_packet;
};

/* Who looks at packets before their time comes. */
struct ibp_sim_scout {
    uint64_t tick, count;
    uint32_t packet; /* looked at last */
    uint32_t lead; /* packets ahead of what happens, about */
    uint32_t seen[IBP_SIM_LEAD];
};

struct ibp_sim {
    struct ibp_sim_network network;
    struct ibp_sim_queue *queue; /* [place][lane]; see `ibp_sim_place_of_port` */
    uint32_t places; /* of link ends */
    uint32_t first_of_hosts; /* queue */
    uint32_t *place_of_end; /* [end], IBP_SIM_NOTHING where no host and no port sends on it */
    struct ibp_sim_carried *carried; /* [place][job] */
    struct ibp_sim_packet *packet;
    uint32_t packets, packet_room, free_packet;
    struct ibp_sim_bucket *bucket; /* of the wheel */
    uint64_t *bucket_used; /* a bit for each bucket */
    uint64_t in_wheel;
    struct ibp_sim_later *later; /* a heap */
    uint64_t laters, later_room, order;
    struct ibp_sim_job *job;
    struct ibp_sim_process *process;
    struct ibp_sim_step *step;
    struct ibp_sim_outbox *outbox; /* [host] */
    uint32_t *came;            /* messages by slot, all rounds together */
    uint32_t *freed;           /* queues whose room grew and whose waiting packets have not been looked at */
    uint64_t freed_count, freed_room;
    uint32_t jobs, clients;
    uint64_t random, seed;
    struct ibp_sim_state state;
    uint64_t looked_at; /* packet hops when it was last seen whether packets are stuck */
    bool is_large; /* what a hop may touch is more than caches hold */
    struct ibp_sim_scout scout;
    struct ibp_sim_sample *sample;
    uint64_t samples, sample_room;
    int failed; /* negative errno */
};

/* A number that is different every time, all equally likely. */
static inline uint64_t ibp_sim_random(struct ibp_sim *sim)
{
    uint64_t x = sim->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sim->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Where the link ends of a switch's ports lie, and behind them all those of the hosts. */
static inline uint32_t ibp_sim_place_of_port(const struct ibp_sim *sim, uint32_t at, uint32_t port)
{
    return at * sim->network.width + port;
}

static inline uint32_t ibp_sim_place_of_host(const struct ibp_sim *sim, uint32_t host)
{
    return sim->network.switches * sim->network.width + host;
}

static inline const struct ibp_sim_step *ibp_sim_step_of(const struct ibp_sim *sim,
                                                         const struct ibp_sim_process *process)
{
    return &sim->step[process->client.first_step + process->position];
}

/* -- simulation_time.c: what happens when -- */

/* Have a packet arrive at a later tick, beyond the reach of the wheel. */
void ibp_sim_schedule_later(struct ibp_sim *sim, uint64_t when, uint32_t packet);

/* Have a packet arrive at a later tick. */
static inline void ibp_sim_schedule_packet(struct ibp_sim *sim, uint64_t when, uint32_t packet)
{
    const uint32_t number = (uint32_t)when % IBP_SIM_WHEEL;
    struct ibp_sim_bucket *bucket = &sim->bucket[number];

    assert(when > sim->state.now);
    if (when - sim->state.now >= IBP_SIM_WHEEL) {
        ibp_sim_schedule_later(sim, when, packet);
        return;
    }
    sim->packet[packet].next = IBP_SIM_NOTHING;
    if (bucket->first == IBP_SIM_NOTHING) {
        bucket->first = packet;
        sim->bucket_used[number / 64] |= UINT64_C(1) << (number % 64);
    } else {
        sim->packet[bucket->last].next = packet;
    }
    bucket->last = packet;
    sim->in_wheel++;
}

/* Have a process act at a later tick. */
void ibp_sim_schedule_process(struct ibp_sim *sim, uint64_t when, uint32_t process);

/* -- simulation_queues.c: packets -- */

/* Put as many packets of a host's messages on its link as there is room for. */
void ibp_sim_inject(struct ibp_sim *sim, uint32_t host);

/* Fetch the queues between which a packet will move, and, when these are there, the packet that takes its place. */
void ibp_sim_prefetch_queues(const struct ibp_sim *sim, uint32_t packet);
void ibp_sim_prefetch_waiting(const struct ibp_sim *sim, uint32_t packet);

/* A packet has come to the node that its end leads to. */
void ibp_sim_arrive(struct ibp_sim *sim, uint32_t packet);

/* -- simulation_deadlock.c -- */

/* Whether packets wait for each other so that they never move again, whatever else goes on. */
bool ibp_sim_is_stuck(struct ibp_sim *sim);

/* -- simulation_clients.c: processes -- */

/* A process starts its next step, if what it awaits has arrived. */
void ibp_sim_act(struct ibp_sim *sim, uint32_t process);

/* Bytes of a process's message have arrived at a host. */
void ibp_sim_deliver(struct ibp_sim *sim, uint32_t process, uint32_t host, uint32_t bytes);

#endif
