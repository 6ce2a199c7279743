/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of a simulation.
 *
 * A packet occupies buffer in one virtual lane of a link direction. It takes the buffer when the queue admits it, and
 * releases the buffer when the next queue admits it or its host receives it. Credits are counted in this way. A link
 * direction transmits in the order of admission, so the tick at which a packet arrives at the next node is known when
 * it is admitted: one event for each packet and hop.
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

/* The next queue of a packet if it is not a known number: its host, or a queue to be chosen at the switch with the rest
 * of the number. */
#define IBP_SIM_AT_HOST (UINT32_MAX - 1)
#define IBP_SIM_CHOOSE UINT32_C(0x80000000)

enum {
    IBP_SIM_WHEEL_BITS = 14,
    /* Ticks from now to the end of the wheel; the heap holds later events. */
    IBP_SIM_WHEEL = 1 << IBP_SIM_WHEEL_BITS,
    /* Slots of a chunk of events; the first links to the next chunk. */
    IBP_SIM_CHUNK = 8,
    /* Bits of the smallest ring of waiting packets. */
    IBP_SIM_RING_BITS = 2,
    /* Maximum number of queues in a listed path. */
    IBP_SIM_PATH_MAX = 15,
    /* Maximum lead of the prefetcher, in packets. */
    IBP_SIM_LEAD = 16,
    /* Every packet is smaller than this. */
    IBP_SIM_PACKET_LIMIT = 1 << 24
};

/* A packet on its way to the next node. Events and queues hold packets by value, so that packets lie in the order in
 * which they are read. */
struct ibp_sim_packet {
    uint32_t client;
    /* The queue whose buffer it occupies; IBP_SIM_NOTHING where its hops are skipped. */
    uint32_t queue;
    /* The next queue, IBP_SIM_AT_HOST, IBP_SIM_CHOOSE + a switch, or IBP_SIM_NOTHING. */
    uint32_t ahead;
    /* Bytes of the packet + IBP_SIM_PACKET_LIMIT * (number of queues that have admitted it, modulo 256). */
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
    /* In the first slot of a chunk: the next chunk of the bucket, or of the free list. */
    uint32_t next;
    struct ibp_sim_packet packet;
};

/* Properties shared by transmit ports of the same speed, delay and buffer. */
struct ibp_sim_kind {
    uint64_t byte_ticks;
    uint32_t delay;
    /* Bytes of buffer in each lane. */
    uint32_t capacity;
    /* Idle ticks between packets. */
    uint32_t gap;
};

/* A virtual lane of a transmit port: its buffer, and the packets that wait for it. The first lane of a port also holds
 * the state that the port's lanes share. A hop accesses the queue that a packet leaves and the queue that it enters, so
 * each queue is one cache line. */
struct ibp_sim_queue {
    /* Admitted bytes, and admitted bytes plus bytes that wait for admission. */
    _Alignas(64) uint32_t taken;
    uint32_t queued;
    /* The maximum of `queued`. */
    uint32_t most;
    /* Shared: the node at the other end of the link; IBP_SIM_NOTHING without a link. */
    uint32_t to;
    /* Shared: the tick when all admitted packets are sent, including the gap after the last one. */
    uint64_t free_at;
    /* Waiting packets: a ring of 2^bits elements of sim->waiter from `base` on; no ring if `bits` is 0. */
    uint32_t waiting, front, base;
    /* A copy of the first waiting packet. */
    struct ibp_sim_waiter head;
    /* Shared: bytes and ticks of the last job; sim->carried does not contain them. */
    uint32_t carried_bytes, carried_ticks;
    uint32_t kind;
    uint16_t carried_job;
    uint8_t bits;
};

_Static_assert(sizeof(struct ibp_sim_queue) == 64 && sizeof(struct ibp_sim_packet) == 16, "cache lines");

/* The events of a tick: the first chunk, and the slot after the last event; 0 without events. */
struct ibp_sim_bucket {
    uint32_t first, end;
};

/* Bytes of one job that a transmit port has admitted, and the ticks to send them. */
struct ibp_sim_carried {
    uint64_t bytes, ticks;
};

/* Packets read only the first cache line. */
struct ibp_sim_process {
    /* Bytes of the present message that are not sent, and not arrived; the destination host. */
    _Alignas(64) uint64_t to_inject, to_arrive;
    uint32_t to;
    uint32_t next_at_host;
    /* The next step, from 0. */
    uint32_t position;
    /* Its message is in flight. */
    bool under_way;
    bool waits_for_messages;
    /* It waits for messages of a round after it has sent the round's steps. */
    bool between_rounds;
    /* Its request has arrived, the answer is in flight. */
    bool answering;
    uint64_t started, last;
    /* Completed steps and their bytes. */
    uint64_t done, bytes;
    struct ibp_sim_client client;
    /* Index of its first slot in `received`. */
    uint64_t first_slot;
    /* Number of received messages, in the order of rounds and slots, up to the first missing message. */
    uint64_t arrived;
};

/* The path of a process's present message. A hop reads only the first cache line. */
struct ibp_sim_path {
    /* Where hops are skipped: packets of the message skip the hops from this queue on. */
    _Alignas(64) uint8_t clear_from;
    /* Number of queues of the listed path; 0 without a list: packets look up each queue. */
    uint8_t hops;
    uint16_t job;
    /* With adaptive routing: the host's queue, the last switch's queue, the last switch, its number. */
    uint32_t queue[IBP_SIM_PATH_MAX];
    /* [hop], ticks from the arrival at the hop's queue to the arrival at the host */
    uint32_t rest[IBP_SIM_PATH_MAX];
    uint8_t lane;
    /* clear_from if no other message uses the path's queues, and if all other messages may use them. */
    uint8_t alone_from, always_from;
    /* No other member of the path requires packets with separate events (clear_paths.h). */
    bool may_be_whole;
    uint32_t from, to;
    /* Size of its packets, which is the same for all of them. */
    uint32_t packet;
    /* For a message that is sent as a whole: the number of its event, and the tick when the first packet began.
     * Otherwise the number is IBP_SIM_NOTHING. */
    uint32_t whole;
    uint64_t begun;
    uint64_t bytes;
};

/* The use of a queue, where hops are skipped. */
struct ibp_sim_use {
    /* Number of active messages whose paths contain the queue, and the sum of their process numbers. */
    uint32_t messages, processes;
    /* The only client that ever uses the queue, the only previous queue of its packets, and their only size. */
    uint32_t client, before, packet;
    /* Minimum ticks from the start of a message to the arrival of its first packet; UINT64_MAX with a single client. */
    uint64_t earliest;
};

/* Messages that a host has to send: a ring of processes, which take turns by packets. */
struct ibp_sim_outbox {
    /* The last process of the ring, which links to the first; IBP_SIM_NOTHING: empty. */
    uint32_t last;
};

/* An event in the heap: a packet arrives, or its client acts. Events of one tick keep their order. */
struct ibp_sim_event {
    uint64_t when, order;
    struct ibp_sim_packet packet;
    bool is_packet;
};

/* Reads events before their tick: the next slot, the end of its bucket, and the events read last. */
struct ibp_sim_prefetcher {
    uint64_t tick;
    uint32_t slot, end;
    /* Approximate number of packets between the present event and the prefetcher. */
    uint32_t lead;
    uint32_t count;
    struct ibp_sim_packet seen[IBP_SIM_LEAD];
};

/* Transmit ports are numbered so that the number of a switch and port, or of a host, determines the place of the
 * queues: first all ports of all switches, then one port of each host. */
struct ibp_sim {
    struct ibp_sim_network network;
    /* [port][lane] */
    struct ibp_sim_queue *queue;
    /* Number of ports of a switch up to the last port with a link. The network's width may be far larger. Queues at
     * intervals of that width would compete for a small part of the caches. */
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
    /* The memory of all rings; free rings by `bits`, linked by `client`. */
    struct ibp_sim_waiter *waiter;
    /* Arrival time of each waiting packet, in the same order; NULL where every hop is an event. */
    uint64_t *arrival;
    uint64_t waiters, waiter_capacity;
    uint32_t free_ring[32];
    /* With adaptive routing, else NULL: [queue], a copy of each `queued`. */
    uint32_t *queued;
    /* [switch][leaf], the number of a set of ports of the switch, whose sets begin in `choices` at `first_choice`; and
     * the leaf number of each switch. */
    uint16_t *choice;
    uint64_t *choices, *first_choice;
    uint32_t *number_of_leaf;
    uint32_t leaves;
    /* The wheel; `bucket_used` has one bit for each bucket. */
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
    /* Number of messages sent as a whole, modulo 2^32. */
    uint32_t wholes;
    /* Number of received messages by slot, summed over all rounds. */
    uint32_t *received;
    /* Queues that released buffer and have not yet admitted waiting packets. */
    uint32_t *freed;
    uint64_t freed_count, freed_capacity;
    uint32_t jobs, clients;
    uint64_t random, seed;
    struct ibp_sim_state state;
    /* Packet hops between two searches for a deadlock, and the count at the last search. */
    uint64_t search_hops;
    uint64_t checked_at;
    /* The memory that hops access exceeds the caches. */
    bool is_large;
    struct ibp_sim_prefetcher prefetcher;
    struct ibp_sim_sample *sample;
    uint64_t samples, sample_capacity;
    /* Negative errno. */
    int failed;
};

/* Allocate zeroed elements that begin on a cache line; large arrays use huge pages. Return NULL without memory.
 * Released by free(). */
void *ibp_sim_allocate(uint64_t count, size_t size);

/* Enlarge an array of ibp_sim_allocate. Return false without memory. */
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

/* Count skipped hops. To subtract hops that are not skipped after all, pass their negative number modulo 2^64. */
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

/* Return the queue that holds the state shared by the lanes of a port. */
static inline struct ibp_sim_queue *ibp_sim_shared(const struct ibp_sim *sim, uint32_t queue, uint32_t client)
{
    return &sim->queue[queue - ibp_sim_lane_of(sim, client)];
}

/* Return a waiting packet of a queue, numbered from the first. */
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
