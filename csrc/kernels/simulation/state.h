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

enum {
    /* Packets that the prefetcher is ahead. */
    IBP_SIM_LEAD = 16,
    IBP_SIM_WHEEL_BITS = 14,
    /* Ticks that the wheel reaches ahead of now; later events lie in the heap. */
    IBP_SIM_WHEEL = 1 << IBP_SIM_WHEEL_BITS,
    /* Queues of a path whose hops are skipped. */
    IBP_SIM_PATH_MAX = 15
};

/* Two in a cache line. */
struct ibp_sim_packet {
    /* In a bucket of the wheel, in a queue of waiting packets, or in the list of free ones. */
    _Alignas(32) uint32_t next;
    uint32_t client;
    /* The queue that it came through and whose buffer it occupies. */
    uint32_t queue;
    union {
        /* Its destination. */
        uint32_t host;
        /* Where hops are skipped, and it waits behind another packet: that one. */
        uint32_t before;
    };
    union {
        struct {
            /* The node that it arrives at next. */
            uint32_t node;
            /* The queue there that the forwarding tables name, or IBP_SIM_NOTHING. */
            uint32_t ahead;
        };
        /* While it waits: since when, or from when on. */
        uint64_t arrival;
    };
    uint32_t bytes;
    uint8_t lane;
    /* Queues that have admitted it; counted where hops are skipped. */
    uint8_t hop;
    uint16_t job;
};

/* A virtual lane of a transmit port: its buffer, and the packets that wait for it. The first lane of a port also holds
 * what its lanes share. A hop touches the queue that a packet leaves and the one that it enters, so each is a cache
 * line. */
struct ibp_sim_queue {
    /* Bytes admitted, and bytes waiting for admission. */
    _Alignas(64) uint32_t taken;
    uint32_t waiting;
    uint32_t first, last;
    /* The maximum of taken + waiting. */
    uint32_t most;
    /* Shared: the node that the link leads to, IBP_SIM_NOTHING without a link. */
    uint32_t to;
    /* Of each lane. */
    uint32_t capacity;
    uint32_t delay;
    /* The tick when all that it has admitted is sent, with the gap after it. */
    uint64_t free_at;
    uint64_t byte_ticks;
    /* When the last of those that wait arrives. */
    uint64_t last_arrival;
    uint32_t port;
    /* Shared: ticks between packets. */
    uint32_t gap;
};

/* Packets that arrive at the same tick. */
struct ibp_sim_bucket {
    uint32_t first, last;
};

/* Bytes that a transmit port has admitted of one job, and the ticks to send them. */
struct ibp_sim_carried {
    uint64_t bytes, ticks;
};

struct ibp_sim_process {
    struct ibp_sim_client client;
    /* Its next step, from 0. */
    uint32_t position;
    /* Its message is in flight. */
    bool under_way;
    bool waits_for_messages;
    /* It waits for messages of the round whose steps it has sent. */
    bool between_rounds;
    /* Its request has arrived, the answer is in flight. */
    bool answering;
    /* Index in `received` of its first slot. */
    uint64_t first_slot;
    /* Messages received, in the order of rounds and slots, up to the first one missing. */
    uint64_t arrived;
    uint64_t started, last;
    /* Completed steps and their bytes. */
    uint64_t done, bytes;
    /* Bytes of its present message. */
    uint64_t to_inject, to_arrive;
    uint32_t next_at_host;
};

/* The path of a process's present message, where hops are skipped (clear_paths.h). The first cache line is what a hop
 * reads. */
struct ibp_sim_path {
    /* Its packets skip the hops from this queue on. */
    _Alignas(64) uint8_t clear_from;
    /* The same where no other message uses its queues, and where all of them may. */
    uint8_t alone_from, always_from;
    uint8_t hops;
    /* Nothing else in its path says that packets must have events of their own (clear_paths.h). */
    bool may_be_whole;
    uint32_t queue[IBP_SIM_PATH_MAX];
    /* [hop], ticks from the arrival at its queue to the arrival at the host */
    uint32_t rest[IBP_SIM_PATH_MAX];
    uint32_t host;
    /* Of its packets, which are of one size. */
    uint32_t packet;
    /* Of a message that is sent as a whole: its last packet, else IBP_SIM_NOTHING, and the tick when the first began. */
    uint32_t last;
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

/* An event in the heap: a packet arrives or a process acts. Events of one tick keep their order. */
struct ibp_sim_event {
    uint64_t when, order;
    uint32_t subject;
    bool is_packet;
};

/* Reads packets before their tick comes. */
struct ibp_sim_prefetcher {
    uint64_t tick, count;
    /* Read last. */
    uint32_t packet;
    /* Packets ahead of the present event, roughly. */
    uint32_t lead;
    uint32_t seen[IBP_SIM_LEAD];
};

/* Transmit ports are numbered so that a switch and its port, or a host, say where the queues lie: first all ports of
 * all switches, then one port of each host. */
struct ibp_sim {
    struct ibp_sim_network network;
    /* [port][lane] */
    struct ibp_sim_queue *queue;
    /* Transmit ports. */
    uint32_t ports;
    /* The first queue of a host. */
    uint32_t first_of_hosts;
    /* [end], IBP_SIM_NOTHING where no port transmits on it */
    uint32_t *port_of_end;
    /* [port][job] */
    struct ibp_sim_carried *carried;
    struct ibp_sim_packet *packet;
    uint32_t packets, packet_capacity, free_packet;
    /* The wheel; in `bucket_used` a bit for each bucket. */
    struct ibp_sim_bucket *bucket;
    uint64_t *bucket_used;
    uint64_t in_wheel;
    struct ibp_sim_event *heap;
    uint64_t heap_count, heap_capacity, order;
    struct ibp_sim_job *job;
    struct ibp_sim_process *process;
    struct ibp_sim_step *step;
    /* [host] */
    struct ibp_sim_outbox *outbox;
    /* [client] and [queue]; NULL where every hop is an event. */
    struct ibp_sim_path *path;
    struct ibp_sim_use *use;
    /* Messages by slot, all rounds together. */
    uint32_t *received;
    /* Queues that released buffer and whose waiting packets are yet to be admitted. */
    uint32_t *freed;
    uint64_t freed_count, freed_capacity;
    uint32_t jobs, clients;
    uint64_t random, seed;
    struct ibp_sim_state state;
    /* Packet hops at the last search for a deadlock. */
    uint64_t checked_at;
    /* The memory that hops touch exceeds caches. */
    bool is_large;
    struct ibp_sim_prefetcher prefetcher;
    struct ibp_sim_sample *sample;
    uint64_t samples, sample_capacity;
    /* Negative errno. */
    int failed;
};

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
    return at * sim->network.width + port;
}

static inline uint32_t ibp_sim_port_of_host(const struct ibp_sim *sim, uint32_t host)
{
    return sim->network.switches * sim->network.width + host;
}

static inline uint64_t ibp_sim_count_queues(const struct ibp_sim *sim)
{
    return (uint64_t)sim->ports * sim->network.lanes;
}

/* Return what the lanes of a queue's port share. */
static inline struct ibp_sim_queue *ibp_sim_shared(const struct ibp_sim *sim, uint32_t queue, unsigned lane)
{
    return &sim->queue[queue - lane];
}

static inline const struct ibp_sim_step *ibp_sim_step_of(const struct ibp_sim *sim,
                                                         const struct ibp_sim_process *process)
{
    return &sim->step[process->client.first_step + process->position];
}

#endif
