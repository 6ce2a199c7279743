/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Packets of several jobs on one network.
 *
 * Time is counted in ticks of a length that the caller chooses. A link direction, `end`, is what a node transmits on a
 * link. Nodes are the hosts, 0 .. hosts - 1, and then the switches.
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
    /* [end], the node that it leads to */
    const uint32_t *end_to;
    /* [end], ticks for a byte, times 2^32 */
    const uint64_t *end_byte_ticks;
    /* [end], ticks from the last bit's departure until the next node acts on it; > 0 */
    const uint32_t *end_delay;
    /* [end], ticks that the link rests after each packet */
    const uint32_t *end_gap;
    /* [end], bytes of each virtual lane: from one packet to UINT32_MAX / (width + 1) */
    const uint32_t *end_capacity;
    /* [host], the end that it transmits on, or IBP_NONE */
    const int32_t *host_end;
    /* [switch][width], or IBP_NONE */
    const int32_t *port_end;
    /* [switch][host], the egress port, or IBP_NO_PORT */
    const uint8_t *egress;
    /* [switch][leaf][(width + 63) / 64], ports on shortest routes to a switch, a bit each; NULL: static routing */
    const uint64_t *minimal;
    /* [host], its switch, from 0 */
    const uint32_t *host_leaf;
    /* [switch][switch], virtual lane from leaf to leaf; NULL: 0 */
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
    /* The client that it is for, or IBP_SIM_NOBODY, and its slot in that client's round. */
    uint32_t client, slot;
    uint32_t awaits;
    uint64_t bytes;
    /* Ticks from the completion of the previous step to its start. */
    uint64_t pause;
    /* Ticks at least from the start of the previous step to its start; of a job with rounds, from the start of the
     * round. */
    uint64_t window;
};

/* What all clients of a job have in common. */
struct ibp_sim_job {
    /* Pauses and windows vary uniformly by up to this many parts in 65536. */
    uint32_t jitter;
    /* 1: they vary by the same part for all clients, sampled once a round. */
    uint32_t alike;
    /* Steps of a client, total; 0: no end. */
    uint64_t limit;
    /* Ticks: rounds begin at multiples of it, late steps catch up; 0: when the previous round has ended. */
    uint64_t round;
    /* 1: steps are written to the samples. */
    uint32_t sampled;
    /* 0: bytes go to the host; else bytes of a request to it, which the host answers with the step's bytes. */
    uint32_t reads;
};

/* A process that repeats its steps, one message at a time. A round is complete when it has sent all of its steps and
 * has received all messages of the round. */
struct ibp_sim_client {
    uint32_t host, job;
    /* Its part of the steps. */
    uint64_t first_step;
    uint32_t steps;
    /* The step to begin with, from 0; 0 where messages come to it, and in jobs with rounds. */
    uint32_t next;
    /* Messages that come to it in a round, a slot each. */
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
    /* Some packets wait for each other and never move again; others may. */
    IBP_SIM_DEADLOCK = 3,
    IBP_SIM_UNROUTED = 4,
    IBP_SIM_HOPS = 5
};

/* Packet hops after which a run returns: about a second. */
#define IBP_SIM_HOPS_AT_A_TIME 33554432

struct ibp_sim_state {
    uint64_t now, packet_hops, packets;
    /* Packet hops that were no events, counted when they are skipped. */
    uint64_t skipped_hops;
    /* Completed. */
    uint64_t steps;
    /* By hosts, at hosts. */
    uint64_t bytes_sent, bytes_arrived;
    /* Packets. */
    uint64_t in_flight;
    /* enum ibp_sim_stop */
    uint32_t stopped;
    /* For IBP_SIM_UNROUTED: the switch has no route to the host, or one to another host. */
    uint32_t switch_without_route, host_without_route;
};

struct ibp_sim;

/* Set up a simulation. The arrays of the network must outlive it; all else is copied. NULL when memory is short or a
 * number is out of range. */
struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed);
void ibp_sim_free(struct ibp_sim *sim);

/* Have packets skip the hops on which nothing can delay them, before the first run. Start and latency of each message
 * stay as they are, up to the order of what happens at one tick; ibp_sim_ends no longer counts them. Returns 1, 0 where
 * hops cannot be skipped (adaptive routing, several lanes, reads, long paths), or -ENOMEM. */
int ibp_sim_skip_hops(struct ibp_sim *sim);

/* Run until the given tick, until `capacity` samples are written, until nothing is left to do, or for
 * IBP_SIM_HOPS_AT_A_TIME. Returns the number of samples, or a negative errno when memory runs short. */
int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity);

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state);

/* Per link direction, since the beginning: bytes[end][job] that it admitted, and busy[end][job], the ticks to
 * transmit them. Now: bytes queued there or waiting for buffer there, all lanes together. most_queued: the maximum
 * of one lane. */
void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued);

/* Per client: completed steps, their bytes, the tick of the last completion; busy: 1 while a step is under way. */
void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy);

/* Find waiting packets: packet i came over the end holds[i] and waits for buffer at the end wants[i]. With
 * `only_stuck`, those that never get it. Returns their number, 0 when memory is short; fills in the first
 * `capacity`. */
uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
