/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Packets of several jobs on one network.
 *
 * Time is counted in ticks of a length that the caller chooses. A link direction, `end`, carries the packets that one
 * node of a link transmits. Nodes are the hosts, 0 .. hosts - 1, and then the switches.
 */
#ifndef IBPROF_KERNELS_SIMULATION_H
#define IBPROF_KERNELS_SIMULATION_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

struct ibp_sim_network {
    uint32_t hosts, switches, ends;
    /* Ports of a switch, at most 256. */
    uint32_t width;
    /* [end], the receiving node */
    const uint32_t *end_to;
    /* [end], ticks per byte, times 2^32 */
    const uint64_t *end_byte_ticks;
    /* [end], ticks from the departure of the last bit until the next node acts on it; > 0 */
    const uint32_t *end_delay;
    /* [end], idle ticks of the link after each packet */
    const uint32_t *end_gap;
    /* [end], bytes of each virtual lane: from one packet to UINT32_MAX / (width + 1) */
    const uint32_t *end_capacity;
    /* [host], the link direction on which it transmits, or IBP_NONE */
    const int32_t *host_end;
    /* [switch][width], or IBP_NONE */
    const int32_t *port_end;
    /* [switch][host], the egress port, or IBP_NO_PORT */
    const uint8_t *egress;
    /* [switch][leaf][(width + 63) / 64], one bit for each port on a shortest route to a leaf; NULL: static routing */
    const uint64_t *minimal;
    /* [host], the number of its switch, from 0 */
    const uint32_t *host_leaf;
    /* [switch][switch], virtual lane from the first leaf to the second; NULL: lane 0 */
    const uint8_t *lane;
    /* Virtual lanes, 1 to 16. */
    uint32_t lanes;
    /* The largest packet, less than 2^24. */
    uint32_t packet_bytes;
};

/* No client. */
#define IBP_SIM_NOBODY 0xffffffff

/* A message to a host. It starts when the messages of the first `awaits` slots have reached its sender. */
struct ibp_sim_step {
    uint32_t host;
    /* The receiving client, or IBP_SIM_NOBODY, and the message's slot in that client's round. */
    uint32_t client, slot;
    uint32_t awaits;
    uint64_t bytes;
    /* Ticks from the completion of the previous step to its start. */
    uint64_t pause;
    /* Minimum ticks between the starts of the previous step and this one; in a job with rounds, between the start of
     * the round and the start of the step. */
    uint64_t window;
};

/* Properties shared by all clients of a job. */
struct ibp_sim_job {
    /* Pauses and windows vary uniformly by up to this many parts in 65536. */
    uint32_t jitter;
    /* 1: in each round, all clients vary by the same sampled part. */
    uint32_t alike;
    /* Number of steps of each client; 0: unlimited. */
    uint64_t limit;
    /* Ticks of a round. Rounds begin at multiples of this time, and late steps catch up; 0: a round begins when the
     * previous one has ended. */
    uint64_t round;
    /* 1: steps are written to the samples. */
    uint32_t sampled;
    /* 0: the sender writes the step's bytes to the host. Otherwise, size of a request in bytes, which the host answers
     * with the step's bytes. */
    uint32_t reads;
};

/* A process that repeats its steps, one message at a time. A round is complete when the process has sent all of its
 * steps and has received all messages of the round. */
struct ibp_sim_client {
    uint32_t host, job;
    /* Index of the client's first step. */
    uint64_t first_step;
    uint32_t steps;
    /* The first step to execute, from 0; 0 for clients that receive messages, and in jobs with rounds. */
    uint32_t next;
    /* Messages that the client receives in a round, one slot each. */
    uint32_t arrivals;
    /* Ticks. */
    uint64_t start;
};

struct ibp_sim_sample {
    /* The client that waited; the other host. */
    uint32_t client, host;
    uint64_t start, ticks;
    uint64_t bytes;
};

enum ibp_sim_stop {
    IBP_SIM_TIME = 0,
    IBP_SIM_SAMPLES = 1,
    IBP_SIM_DONE = 2,
    /* Some packets wait for each other and never move again; other packets may still move. */
    IBP_SIM_DEADLOCK = 3,
    IBP_SIM_UNROUTED = 4,
    IBP_SIM_HOPS = 5
};

/* Number of packet hops in one call, which limits a call to about a second. */
#define IBP_SIM_HOPS_AT_A_TIME 33554432

struct ibp_sim_state {
    uint64_t now, packet_hops, packets;
    /* Packet hops without an event, counted when they are skipped. */
    uint64_t skipped_hops;
    /* Completed. */
    uint64_t steps;
    /* Bytes that hosts sent, and bytes that arrived at hosts. */
    uint64_t bytes_sent, bytes_arrived;
    /* Packets. */
    uint64_t in_flight;
    /* enum ibp_sim_stop */
    uint32_t stopped;
    /* For IBP_SIM_UNROUTED: the switch without a valid route, and the destination host. The switch has no route to the
     * host, or a route that leads to another host. */
    uint32_t switch_without_route, host_without_route;
};

struct ibp_sim;

/* Set up a simulation. The arrays of the network must outlive it; all other input is copied. Returns NULL without
 * memory, or for a number out of range. */
struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed);
void ibp_sim_free(struct ibp_sim *sim);

/* Let packets skip the hops on which nothing can delay them. To be called before the first run. The start and latency
 * of each message stay the same, apart from the order of events within a tick. ibp_sim_ends does not count skipped
 * hops. Returns 1, 0 where hops cannot be skipped (adaptive routing, several lanes, reads, long paths), or -ENOMEM. */
int ibp_sim_skip_hops(struct ibp_sim *sim);

/* Run until the given tick, `capacity` written samples, the end of all work, or IBP_SIM_HOPS_AT_A_TIME hops. Returns
 * the number of samples, or a negative errno without memory. */
int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity);

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state);

/* Per link direction. Since the beginning: admitted bytes[end][job], and the ticks to transmit them, busy[end][job].
 * Now: bytes in the queue and bytes waiting for buffer, summed over the lanes. most_queued: the maximum of one lane. */
void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued);

/* Per client: number of completed steps, their bytes, the tick of the last completion; busy is 1 during a step. */
void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy);

/* Find waiting packets: packet i occupies buffer of link direction holds[i] and waits for buffer of wants[i]. With
 * `only_stuck`, only packets that never get buffer are found. Returns their number, 0 without memory, and sets the
 * first `capacity` elements. */
uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
