/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of a simulation.
 *
 * A packet occupies buffer at a link direction, in one of its virtual lanes, from its admission to the queue there
 * until the next queue on its route admits it, or its host receives it. That is how credits are counted. A link
 * direction transmits in the order of admission, so the tick at which a packet arrives at the next node is known when it is
 * admitted: one event for each packet and hop.
 *
 * The module's files from low to high; each calls only those before it:
 *
 *     state < agenda < queues < clear_paths < clients < run
 *     state < agenda < setup
 *     state < observation
 */
#ifndef IBP_SIMULATION_STATE_H
#define IBP_SIMULATION_STATE_H

#include "ibprof_kernels/simulation.h"

#include <assert.h>
#include <stdbool.h>

/* No packet, no queue, no client. */
#define IBP_SIM_NOTHING UINT32_MAX

/* Where a packet goes after its queue, if not into a known one: its host, or a queue of the switch that the rest of the
 * number names. */
#define IBP_SIM_AT_HOST (UINT32_MAX - 1)
#define IBP_SIM_CHOOSE UINT32_C(0x80000000)

enum {
    IBP_SIM_WHEEL_BITS = 14,
    /* Ticks that the wheel reaches ahead of now; later events lie in the heap. */
    IBP_SIM_WHEEL = 1 << IBP_SIM_WHEEL_BITS,
    /* Slots of a chunk of events; the first links to the next chunk. */
    IBP_SIM_CHUNK = 8,
    /* Of the smallest ring of waiting packets. */
    IBP_SIM_RING_BITS = 2,
    /* Queues of a path that is listed. */
    IBP_SIM_PATH_MAX = 15,
    /* Packets that the prefetcher is ahead, at most. */
    IBP_SIM_LEAD = 16,
    /* The largest packet is smaller. */
    IBP_SIM_PACKET_LIMIT = 1 << 24
};

/* A packet that is under way to the next node. It has no address: events and queues hold packets by value, so that they
 * lie in the order in which they are read. */
struct ibp_sim_packet {
    uint32_t client;
    /* The queue that it came through and whose buffer it occupies; IBP_SIM_NOTHING where its hops are skipped. */
    uint32_t queue;
    /* The queue that it goes to, IBP_SIM_AT_HOST, IBP_SIM_CHOOSE + a switch, or IBP_SIM_NOTHING. */
    uint32_t ahead;
    /* Its bytes + IBP_SIM_PACKET_LIMIT * (the queues that have admitted it, modulo 256). */
    uint32_t size;
};

/* A packet that waits for a queue's buffer. */
struct ibp_sim_waiter {
    uint32_t client;
    uint32_t queue;
    uint32_t size;
};

static inline uint32_t ibp_sim_bytes_of(uint32_t size)
{
    return size & (IBP_SIM_PACKET_LIMIT - 1);
}

static inline unsigned ibp_sim_hop_of(uint32_t size)
{
    return size / IBP_SIM_PACKET_LIMIT;
}

/* Events of the wheel lie in chunks of slots. */
union ibp_sim_slot {
    /* The first slot: the next chunk of a bucket, or of the free ones. */
    uint32_t next;
    struct ibp_sim_packet packet;
};

/* What transmit ports of a speed, delay and size have in common. */
struct ibp_sim_kind {
    uint64_t byte_ticks;
    uint32_t delay;
    /* Bytes of each lane. */
    uint32_t capacity;
    /* Ticks between packets. */
    uint32_t gap;
};

/* A virtual lane of a transmit port: its buffer, and the packets that wait for it. The first lane of a port also holds
 * what its lanes share. A hop touches the queue that a packet leaves and the one that it enters, so each is a cache
 * line. */
struct ibp_sim_queue {
    /* Bytes admitted, and those with the bytes that wait for admission. */
    _Alignas(64) uint32_t taken;
    uint32_t queued;
    /* The maximum of `queued`. */
    uint32_t most;
    /* Shared: the node that the link leads to, IBP_SIM_NOTHING without a link. */
    uint32_t to;
    /* Shared: the tick when all that it has admitted is sent, with the gap after it. */
    uint64_t free_at;
    /* Packets that wait: a ring of 2^bits of sim->waiter from `base` on, none if `bits` is 0. */
    uint32_t waiting, front, base;
    /* A copy of the first. */
    struct ibp_sim_waiter head;
    /* Shared: bytes and ticks of the job that used it last; sim->carried is without them. */
    uint32_t carried_bytes, carried_ticks;
    uint32_t kind;
    uint16_t carried_job;
    uint8_t bits;
};

_Static_assert(sizeof(struct ibp_sim_queue) == 64 && sizeof(struct ibp_sim_packet) == 16, "cache lines");

/* The events of a tick: the first chunk, and the slot after the last event; 0 where there is none. */
struct ibp_sim_bucket {
    uint32_t first, end;
};

/* Bytes that a transmit port has admitted of one job, and the ticks to send them. */
struct ibp_sim_carried {
    uint64_t bytes, ticks;
};

/* The first cache line is what packets read. */
struct ibp_sim_process {
    /* Bytes of its present message, and the host that they go to. */
    _Alignas(64) uint64_t to_inject, to_arrive;
    uint32_t to;
    uint32_t next_at_host;
    /* Its next step, from 0. */
    uint32_t position;
    /* Its message is in flight. */
    bool under_way;
    bool waits_for_messages;
    /* It waits for messages of the round whose steps it has sent. */
    bool between_rounds;
    /* Its request has arrived, the answer is in flight. */
    bool answering;
    uint64_t started, last;
    /* Completed steps and their bytes. */
    uint64_t done, bytes;
    struct ibp_sim_client client;
    /* Index in `received` of its first slot. */
    uint64_t first_slot;
    /* Messages received, in the order of rounds and slots, up to the first one missing. */
    uint64_t arrived;
};

/* The path of a process's present message. The first cache line is what a hop reads. */
struct ibp_sim_path {
    /* Where hops are skipped: its packets skip those from this queue on. */
    _Alignas(64) uint8_t clear_from;
    /* Of the listed path; 0 where it is not: packets look up each queue. */
    uint8_t hops;
    uint16_t job;
    /* With adaptive routing: the host's queue, the last switch's, the last switch, its number. */
    uint32_t queue[IBP_SIM_PATH_MAX];
    /* [hop], ticks from the arrival at its queue to the arrival at the host */
    uint32_t rest[IBP_SIM_PATH_MAX];
    uint8_t lane;
    /* The same as clear_from where no other message uses its queues, and where all of them may. */
    uint8_t alone_from, always_from;
    /* Nothing else in its path says that packets must have events of their own (clear_paths.h). */
    bool may_be_whole;
    uint32_t from, to;
    /* Of its packets, which are of one size. */
    uint32_t packet;
    /* Of a message that is sent as a whole: the number of its event, else IBP_SIM_NOTHING, and the tick when the first
     * packet began. */
    uint32_t whole;
    uint64_t begun;
    uint64_t bytes;
};

/* Who uses a queue, where hops are skipped. */
struct ibp_sim_use {
    /* Messages under way whose paths have it, and the sum of their processes. */
    uint32_t messages, processes;
    /* The only client that ever uses it, the only queue that packets come from, and their only size. */
    uint32_t client, before, packet;
    /* Ticks from the start of any message to the arrival of its first packet; UINT64_MAX with a single client. */
    uint64_t earliest;
};

/* Messages that a host has to send: a ring of processes, which take turns by packets. */
struct ibp_sim_outbox {
    /* The last of the ring, whose next one is the first; IBP_SIM_NOTHING: empty. */
    uint32_t last;
};

/* An event in the heap: a packet arrives, or its client acts. Events of one tick keep their order. */
struct ibp_sim_event {
    uint64_t when, order;
    struct ibp_sim_packet packet;
    bool is_packet;
};

/* Reads events before their tick comes: the next slot and the end of its bucket, and the events read last. */
struct ibp_sim_prefetcher {
    uint64_t tick;
    uint32_t slot, end;
    /* Packets ahead of the present event, roughly. */
    uint32_t lead;
    uint32_t count;
    struct ibp_sim_packet seen[IBP_SIM_LEAD];
};

/* Transmit ports are numbered so that a switch and its port, or a host, say where the queues lie: first all ports of
 * all switches, then one port of each host. */
struct ibp_sim {
    struct ibp_sim_network network;
    /* [port][lane] */
    struct ibp_sim_queue *queue;
    /* Ports of a switch up to the last that any has a link on. The network's width may be far larger: queues of few
     * ports, at its distances, would all compete for a small part of the caches. */
    uint32_t width;
    /* Transmit ports. */
    uint32_t ports;
    /* The first queue of a host. */
    uint32_t first_of_hosts;
    /* [end], IBP_SIM_NOTHING where no port transmits on it */
    uint32_t *port_of_end;
    /* [port][job] */
    struct ibp_sim_carried *carried;
    struct ibp_sim_kind *kind;
    uint32_t kinds;
    /* Of all rings, and the free ones by `bits`, linked by `client`. */
    struct ibp_sim_waiter *waiter;
    /* When each of them arrives, in the same order; NULL where every hop is an event. */
    uint64_t *arrival;
    uint64_t waiters, waiter_capacity;
    uint32_t free_ring[32];
    /* With adaptive routing, else NULL. [queue], `queued` of each again. */
    uint32_t *queued;
    /* [switch][leaf], the number of a set of ports among those of the switch, which begin in `choices` at
     * `first_choice`; and the number of each switch that is a leaf. */
    uint16_t *choice;
    uint64_t *choices, *first_choice;
    uint32_t *number_of_leaf;
    uint32_t leaves;
    /* The wheel; in `bucket_used` a bit for each bucket. */
    struct ibp_sim_bucket *bucket;
    uint64_t *bucket_used;
    uint64_t in_wheel;
    union ibp_sim_slot *slot;
    uint32_t slots, slot_capacity, free_chunk;
    struct ibp_sim_event *heap;
    uint64_t heap_count, heap_capacity, order;
    struct ibp_sim_job *job;
    struct ibp_sim_process *process;
    struct ibp_sim_step *step;
    /* [host] */
    struct ibp_sim_outbox *outbox;
    /* [client] */
    struct ibp_sim_path *path;
    /* [queue]; NULL where every hop is an event. */
    struct ibp_sim_use *use;
    /* Messages sent as a whole so far, modulo 2^32. */
    uint32_t wholes;
    /* Messages by slot, all rounds together. */
    uint32_t *received;
    /* Queues that released buffer and whose waiting packets are yet to be admitted. */
    uint32_t *freed;
    uint64_t freed_count, freed_capacity;
    uint32_t jobs, clients;
    uint64_t random, seed;
    struct ibp_sim_state state;
    /* Packet hops from one search for a deadlock to the next, and at the last one. */
    uint64_t search_hops;
    uint64_t checked_at;
    /* The memory that hops touch exceeds caches. */
    bool is_large;
    struct ibp_sim_prefetcher prefetcher;
    struct ibp_sim_sample *sample;
    uint64_t samples, sample_capacity;
    /* Negative errno. */
    int failed;
};

/* Allocate zeroed elements from the beginning of a cache line on, of large arrays in huge pages; NULL when memory is
 * short. For free(). */
void *ibp_sim_allocate(uint64_t count, size_t size);

/* Move an array of ibp_sim_allocate to one of a larger capacity. Returns false when memory is short. */
bool ibp_sim_grow(struct ibp_sim *sim, void **array, uint64_t count, uint64_t capacity, size_t size);

/* Return whether packets may skip hops. */
static inline bool ibp_sim_skips(const struct ibp_sim *sim)
{
    return sim->use != NULL;
}

/* Return a random number of 64 bits, uniformly distributed. */
static inline uint64_t ibp_sim_random(struct ibp_sim *sim)
{
    uint64_t x = sim->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sim->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Count hops that are skipped; of those that are not after all, their number modulo 2^64. */
static inline void ibp_sim_count_skipped(struct ibp_sim *sim, uint64_t hops)
{
    sim->state.packet_hops += hops;
    sim->state.skipped_hops += hops;
}

static inline uint32_t ibp_sim_port_of_switch(const struct ibp_sim *sim, uint32_t at, uint32_t port)
{
    return at * sim->width + port;
}

static inline uint32_t ibp_sim_port_of_host(const struct ibp_sim *sim, uint32_t host)
{
    return sim->network.switches * sim->width + host;
}

/* Return the transmit port whose lanes share a queue. */
static inline uint64_t ibp_sim_port_of(const struct ibp_sim *sim, const struct ibp_sim_queue *shared)
{
    return (uint64_t)(shared - sim->queue) / sim->network.lanes;
}

static inline uint64_t ibp_sim_count_queues(const struct ibp_sim *sim)
{
    return (uint64_t)sim->ports * sim->network.lanes;
}

/* Return the virtual lane of a client's packets. */
static inline unsigned ibp_sim_lane_of(const struct ibp_sim *sim, uint32_t client)
{
    return sim->network.lanes > 1 ? sim->path[client].lane : 0;
}

/* Return what the lanes of a queue's port share. */
static inline struct ibp_sim_queue *ibp_sim_shared(const struct ibp_sim *sim, uint32_t queue, uint32_t client)
{
    return &sim->queue[queue - ibp_sim_lane_of(sim, client)];
}

/* Return a packet that waits for a queue, counted from the first. */
static inline struct ibp_sim_waiter *ibp_sim_waiter_of(const struct ibp_sim *sim, const struct ibp_sim_queue *queue,
                                                       uint32_t place)
{
    return &sim->waiter[queue->base + ((queue->front + place) & ((UINT32_C(1) << queue->bits) - 1))];
}

static inline const struct ibp_sim_step *ibp_sim_step_of(const struct ibp_sim *sim,
                                                         const struct ibp_sim_process *process)
{
    return &sim->step[process->client.first_step + process->position];
}

#endif
