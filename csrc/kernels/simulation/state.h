/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The state of a simulation.
 *
 * A queue is one virtual lane of a link direction. A packet occupies buffer space in one queue. The packet takes this
 * space when the queue admits the packet. The packet releases the space when the next queue admits the packet, or when
 * the host receives the packet. These rules model InfiniBand's credits. A link direction transmits packets in the order
 * of admission. Therefore the tick at which a packet arrives at the next node is known when the packet is admitted. One
 * event for each packet and hop is therefore enough.
 *
 * The files of this module, from low to high. In each line below, a file calls only functions of files to its left:
 *
 *     state < adaptive, agenda < queues < clear_paths < clients < run
 *     state < adaptive, agenda < setup
 *     state < observation
 */
#ifndef IBP_SIMULATION_STATE_H
#define IBP_SIMULATION_STATE_H

#include "ibprof_kernels/simulation.h"

#include <assert.h>
#include <stdbool.h>

/* Index that means: no packet, queue or client. */
#define IBP_SIM_NOTHING UINT32_MAX

/* Values for the next queue of a packet. IBP_SIM_AT_HOST: the packet arrives at its host next. IBP_SIM_CHOOSE + a
 * switch: the queue will be chosen at that switch. */
#define IBP_SIM_AT_HOST (UINT32_MAX - 1)
#define IBP_SIM_CHOOSE UINT32_C(0x80000000)

#define IBP_SIM_SHORT UINT32_C(0x80000000)

enum {
    IBP_SIM_WHEEL_BITS = 14,
    /* Number of ticks, from now on, whose events are in the wheel. Events after the end of the wheel are in the
     * heap. */
    IBP_SIM_WHEEL = 1 << IBP_SIM_WHEEL_BITS,
    /* Number of slots of a chunk of events. The first slot links to the next chunk. */
    IBP_SIM_CHUNK = 8,
    /* The smallest ring of waiting packets has 2^IBP_SIM_RING_BITS elements. */
    IBP_SIM_RING_BITS = 2,
    /* Maximum number of queues that `struct ibp_sim_path` lists. */
    IBP_SIM_PATH_MAX = 15,
    /* Number of ports that adaptive routing compares at a time. */
    IBP_SIM_VECTOR = 4,
    /* Choices of adaptive routing below this number are ports. */
    IBP_SIM_SETS = 256,
    /* Every packet has fewer bytes than this limit. */
    IBP_SIM_PACKET_LIMIT = 1 << 24,
    /* There are fewer queues than this limit. */
    IBP_SIM_QUEUES = 1 << 27
};

/* A packet on its way to the next node. Events and queues contain packets by value, so that packets are read in the
 * order of memory. */
struct ibp_sim_packet {
    uint32_t client;
    /* The queue whose buffer the packet occupies; IBP_SIM_NOTHING if the packet's hops are skipped. */
    uint32_t queue;
    /* The next queue, IBP_SIM_AT_HOST, IBP_SIM_CHOOSE + a switch, or IBP_SIM_NOTHING. */
    uint32_t ahead;
    /* Size of the packet in bytes + IBP_SIM_PACKET_LIMIT * (number of queues that have admitted the packet, modulo
     * 256). */
    uint32_t size;
};

/* A packet that waits for a queue's buffer. The members have the same meaning as in ibp_sim_packet. */
struct ibp_sim_waiter {
    uint32_t client;
    uint32_t queue;
    uint32_t size;
};

/* A waiting packet, stored in few bytes because waiting packets need the most memory. `held` is queue + IBP_SIM_QUEUES
 * * hops. `queue`: the queue whose buffer the packet occupies. `hops`: number of queues that have admitted the packet,
 * at most IBP_SIM_PATH_MAX. IBP_SIM_SHORT is added for a last packet that is smaller than the message's other
 * packets. */
struct ibp_sim_packed {
    uint32_t client, held;
};

static inline uint32_t ibp_sim_bytes_of(uint32_t size)
{
    return size & (IBP_SIM_PACKET_LIMIT - 1);
}

static inline unsigned ibp_sim_hop_of(uint32_t size)
{
    return size / IBP_SIM_PACKET_LIMIT;
}

/* Events of the wheel are in chunks of slots. */
union ibp_sim_slot {
    /* Used in the first slot of a chunk: the next chunk of the chunk's bucket, or of the list of free chunks. */
    uint32_t next;
    struct ibp_sim_packet packet;
};

/* A kind: transmit ports with the same speed, delay and buffer. */
struct ibp_sim_kind {
    uint64_t byte_ticks;
    uint32_t delay;
    /* Buffer size of each lane, in bytes. */
    uint32_t capacity;
    /* Idle ticks between packets. */
    uint32_t gap;
};

/* A queue: a virtual lane of a transmit port, its buffer, and the packets that wait for this buffer. The queue of a
 * port's first lane also contains the state that the lanes of the port share ("shared" below). Each queue is one cache
 * line, because a hop accesses two queues. */
struct ibp_sim_queue {
    /* `taken`: admitted bytes. `queued`: admitted bytes plus bytes that wait for admission. */
    _Alignas(64) uint32_t taken;
    uint32_t queued;
    /* The maximum of `queued` so far. */
    uint32_t most;
    /* Shared: the node at the other end of the link; IBP_SIM_NOTHING if the port has no link. */
    uint32_t to;
    /* Shared: the tick at which all admitted packets are sent and the gap after the last packet is over. */
    uint64_t free_at;
    /* Waiting packets are in a ring: 2^bits elements of sim->waiter from `base` on. If `bits` is 0, no ring is
     * allocated. */
    uint32_t waiting, front, base;
    /* A copy of the first waiting packet. */
    struct ibp_sim_waiter head;
    /* Shared: bytes and ticks of job `carried_job` that are not yet in sim->carried. */
    uint32_t carried_bytes, carried_ticks;
    uint32_t kind;
    uint16_t carried_job;
    uint8_t bits;
};

_Static_assert(sizeof(struct ibp_sim_queue) == 64 && sizeof(struct ibp_sim_packet) == 16, "cache lines");

/* The events of a tick: the first chunk, and the slot after the last event. Both members are 0 if the tick has no
 * events. */
struct ibp_sim_bucket {
    uint32_t first, end;
};

/* Bytes that a transmit port has admitted for a job, and the ticks to transmit these bytes. */
struct ibp_sim_carried {
    uint64_t bytes, ticks;
};

/* The state of a client's process. Hops of packets access only the first cache line. */
struct ibp_sim_process {
    /* The present message: unsent bytes, bytes that have not arrived, and the destination host. */
    _Alignas(64) uint64_t to_inject, to_arrive;
    uint32_t to;
    uint32_t next_at_host;
    /* Index of the next step. */
    uint32_t position;
    /* True if the message of the process is in flight. */
    bool under_way;
    bool waits_for_messages;
    /* True if the process has sent all messages of a round, and waits for messages of this round. */
    bool between_rounds;
    /* True if the request has arrived, and the answer is in flight. */
    bool answering;
    uint64_t started, last;
    /* Number of completed steps, and their bytes. */
    uint64_t done, bytes;
    struct ibp_sim_client client;
    /* Index in `received` of the first slot of the process. */
    uint64_t first_slot;
    /* Number of received messages, in the order of rounds and slots, up to the first missing message. */
    uint64_t arrived;
};

/* The path of a process's present message. A hop accesses only the first cache line of this struct. */
struct ibp_sim_path {
    /* If hops are skipped: packets skip the hops from this index of the path on. */
    _Alignas(64) uint8_t clear_from;
    /* Number of queues in the member `queue`. 0 if `queue` does not contain the path; packets then look up the next
     * queue at each hop. With adaptive routing: number of queues in the member `rest`. */
    uint8_t hops;
    uint16_t job;
    /* The queues of the path, in order. With adaptive routing: the queue of the sending host, the queue of the last
     * switch, the last switch, and the leaf index of the last switch. */
    uint32_t queue[IBP_SIM_PATH_MAX];
    /* [hop], ticks from the arrival at the hop's queue to the arrival at the host. With adaptive routing: the queues
     * that the message's first packet took. */
    uint32_t rest[IBP_SIM_PATH_MAX];
    uint8_t lane;
    /* `alone_from`: value of clear_from while no other message uses the queues of the path. `always_from`: value of
     * clear_from while all messages that may ever use the queues are active. */
    uint8_t alone_from, always_from;
    /* False if the message must not be sent as a whole (clear_paths.h). */
    bool may_be_whole;
    uint32_t from, to;
    /* Size of each packet of the message, except the last packet. */
    uint32_t packet;
    /* Size of the last packet of the message. */
    uint32_t last_bytes;
    /* For a message that is sent as a whole: the number of its event, and the tick at which sending began. For other
     * messages, `whole` is IBP_SIM_NOTHING. */
    uint32_t whole;
    uint64_t begun;
    uint64_t bytes;
};

/* The use of a queue by messages, recorded only if hops are skipped. */
struct ibp_sim_use {
    /* `messages`: number of active messages whose path contains the queue. `processes`: sum of the indices of the
     * processes that send these messages. If `messages` is 1, `processes` is the index of the message's process. */
    uint32_t messages, processes;
    /* `client`: the only client that ever uses the queue. `before`: the queue that all packets leave before they enter
     * this queue. `packet`: the size of all packets. A member is MANY (clear_paths.c) if several values occur. */
    uint32_t client, before, packet;
    /* Minimum over all messages of the ticks from the start to the arrival at this queue. UINT64_MAX if only one client
     * uses the queue. */
    uint64_t earliest;
};

/* A ring of processes: each has a message that the host must still send. In turn, each process sends one packet. */
struct ibp_sim_outbox {
    /* The last process of the ring; IBP_SIM_NOTHING if the ring is empty. The last process links to the first
     * process. */
    uint32_t last;
};

/* An event in the heap: a packet arrives, or a client acts. Events of the same tick are processed in the order of
 * scheduling. */
struct ibp_sim_event {
    uint64_t when, order;
    struct ibp_sim_packet packet;
    bool is_packet;
};

/* Transmit ports are numbered: first all ports of all switches, then one port of each host. */
struct ibp_sim {
    struct ibp_sim_network network;
    /* [port][lane] */
    struct ibp_sim_queue *queue;
    /* Number of ports that are stored for each switch: the highest number of a port with a link, over all switches. The
     * network's `width` may be far larger, and queues of unused ports would waste memory and cache. */
    uint32_t width;
    uint32_t ports;
    /* Index of the first queue that belongs to a host. */
    uint32_t first_of_hosts;
    /* [end], the transmit port of each link direction; IBP_SIM_NOTHING if no port transmits on the link direction */
    uint32_t *port_of_end;
    /* [port][job] */
    struct ibp_sim_carried *carried;
    struct ibp_sim_kind *kind;
    uint32_t kinds;
    /* `waiter`: the memory of all rings. Free rings with equal `bits` form a list, linked by the member `client`. */
    struct ibp_sim_packed *waiter;
    /* Arrival time of each element of `waiter`; NULL if hops are not skipped. */
    uint64_t *arrival;
    uint64_t waiters, waiter_capacity;
    uint32_t free_ring[32];
    /* With adaptive routing: [queue], a copy of `queued` of each queue. Otherwise NULL. */
    uint32_t *queued;
    /* The buffer of every queue in bytes; 0 if queues have different buffers. */
    uint32_t capacity;
    /* With adaptive routing. `choice`: [row][leaf], a choice (ibp_sim_choice_of). `choice_row`: [switch]; switches with
     * equal choices have the same row. `choices`: [set], sets of ports; port i is bit i. `number_of_leaf`: [switch],
     * the leaf index; IBP_SIM_NOTHING if no host has this leaf switch. */
    uint32_t *choice, *choice_row;
    uint64_t *choices;
    uint32_t *number_of_leaf;
    uint32_t leaves;
    /* The wheel. Bit i of `bucket_used` is 1 if bucket i has events. */
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
    /* [queue], the use of each queue; NULL if hops are not skipped. */
    struct ibp_sim_use *use;
    /* Number of messages that were sent as a whole, modulo 2^32. */
    uint32_t wholes;
    /* For each message that a client receives in a round: how often the client has received this message, over all
     * rounds. */
    uint32_t *received;
    /* Queues that have released buffer space, but have not yet admitted waiting packets. */
    uint32_t *freed;
    uint64_t freed_count, freed_capacity;
    uint32_t jobs, clients;
    uint64_t random, seed;
    struct ibp_sim_state state;
    /* `search_hops`: number of packet hops between two searches for a deadlock. `checked_at`: number of packet hops at
     * the last search. */
    uint64_t search_hops;
    uint64_t checked_at;
    struct ibp_sim_sample *sample;
    uint64_t samples, sample_capacity;
    /* A negative errno after a failure, otherwise 0. */
    int failed;
};

/* Allocate elements filled with zeros, beginning at a cache line. Large arrays use huge pages. Return NULL if memory is
 * exhausted. The caller calls free(). */
void *ibp_sim_allocate(uint64_t count, size_t size);

/* Enlarge an array that ibp_sim_allocate has returned. Return false if memory is exhausted. */
bool ibp_sim_grow(struct ibp_sim *sim, void **array, uint64_t count, uint64_t capacity, size_t size);

static inline bool ibp_sim_skips(const struct ibp_sim *sim)
{
    return sim->use != NULL;
}

static inline uint64_t ibp_sim_random(struct ibp_sim *sim)
{
    uint64_t x = sim->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sim->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Count skipped hops. To subtract N hops that are not skipped after all, pass -N modulo 2^64. */
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

static inline uint64_t ibp_sim_port_of(const struct ibp_sim *sim, const struct ibp_sim_queue *shared)
{
    return (uint64_t)(shared - sim->queue) / sim->network.lanes;
}

static inline uint64_t ibp_sim_count_queues(const struct ibp_sim *sim)
{
    return (uint64_t)sim->ports * sim->network.lanes;
}

static inline unsigned ibp_sim_lane_of(const struct ibp_sim *sim, uint32_t client)
{
    return sim->network.lanes > 1 ? sim->path[client].lane : 0;
}

/* Return the queue with the state that the lanes of a port share. */
static inline struct ibp_sim_queue *ibp_sim_shared(const struct ibp_sim *sim, uint32_t queue, uint32_t client)
{
    return &sim->queue[queue - ibp_sim_lane_of(sim, client)];
}

static inline struct ibp_sim_packed ibp_sim_pack(const struct ibp_sim *sim, struct ibp_sim_waiter waiter)
{
    const uint32_t hop =
        ibp_sim_hop_of(waiter.size) < IBP_SIM_PATH_MAX ? ibp_sim_hop_of(waiter.size) : IBP_SIM_PATH_MAX;
    const uint32_t is_short = ibp_sim_bytes_of(waiter.size) == sim->network.packet_bytes ? 0 : IBP_SIM_SHORT;

    return (struct ibp_sim_packed){waiter.client, waiter.queue + IBP_SIM_QUEUES * hop + is_short};
}

static inline struct ibp_sim_waiter ibp_sim_unpack(const struct ibp_sim *sim, struct ibp_sim_packed packed)
{
    const uint32_t hop = packed.held / IBP_SIM_QUEUES % (IBP_SIM_PATH_MAX + 1);
    const uint32_t bytes =
        packed.held & IBP_SIM_SHORT ? sim->path[packed.client].last_bytes : sim->network.packet_bytes;

    return (struct ibp_sim_waiter){packed.client, packed.held % IBP_SIM_QUEUES, bytes + IBP_SIM_PACKET_LIMIT * hop};
}

/* Return waiting packet number `place` of a queue, from 0. */
static inline struct ibp_sim_packed *ibp_sim_waiter_of(const struct ibp_sim *sim, const struct ibp_sim_queue *queue,
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
