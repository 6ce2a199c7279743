/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Simulation of the packets of several jobs on one network.
 *
 * Times are in ticks, whose length the caller chooses. `end` is the index of a link direction. Nodes are numbered:
 * first the hosts, 0 .. hosts - 1, then the switches.
 */
#ifndef IBPROF_KERNELS_SIMULATION_H
#define IBPROF_KERNELS_SIMULATION_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

struct ibp_sim_network {
    uint32_t hosts, switches, ends;
    /* Number of ports of each switch, at most 256. */
    uint32_t width;
    /* [end], the receiving node */
    const uint32_t *end_to;
    /* [end], ticks to transmit a byte, times 2^32 */
    const uint64_t *end_byte_ticks;
    /* [end], ticks from the departure of a packet's last bit until the next node can forward the packet; > 0 */
    const uint32_t *end_delay;
    /* [end], idle ticks of the link after each packet */
    const uint32_t *end_gap;
    /* [end], buffer size of each virtual lane, in bytes: at least one packet, at most INT32_MAX / (width + 1) */
    const uint32_t *end_capacity;
    /* [host], the link direction on which the host transmits, or IBP_NONE */
    const int32_t *host_end;
    /* [switch][width], the link direction on which the port transmits, or IBP_NONE */
    const int32_t *port_end;
    /* [switch][host], the egress port, or IBP_NO_PORT */
    const uint8_t *egress;
    /* For adaptive routing: [switch][leaf][(width + 63) / 64], bit i is 1 if a shortest route from the switch to the
     * leaf uses port i. NULL: static routing */
    const uint64_t *minimal;
    /* [host], index of the host's leaf switch among the leaf switches */
    const uint32_t *host_leaf;
    /* [switch][switch], the virtual lane of packets from one leaf switch (first index) to another (second index). NULL:
     * all packets use lane 0 */
    const uint8_t *lane;
    /* Number of virtual lanes, 1 to 16. */
    uint32_t lanes;
    /* Size of the largest packet, less than 2^24. */
    uint32_t packet_bytes;
    /* For adaptive routing. 0: each packet takes the least occupied port. Otherwise: all packets of a message take the
     * first packet's port, at each of the first 15 switches with several possible ports. The first packet takes the
     * least occupied port; occupied bytes are rounded down to multiples of `message_step_bytes`. */
    uint32_t message_step_bytes;
};

/* No client. */
#define IBP_SIM_NOBODY 0xffffffff

/* A step of a client: a message to a host. The step starts when the client has received the messages of the first
 * `awaits` slots of the client. */
struct ibp_sim_step {
    uint32_t host;
    /* `client`: the receiving client, or IBP_SIM_NOBODY. `slot`: the slot of the message in a round of that client. */
    uint32_t client, slot;
    uint32_t awaits;
    uint64_t bytes;
    /* Ticks from the completion of the previous step to the start of this step. */
    uint64_t pause;
    /* Minimum ticks from the start of the previous step to the start of this step. In a job with rounds: from the start
     * of the round to the start of this step. */
    uint64_t window;
};

/* Properties shared by all clients of a job. */
struct ibp_sim_job {
    /* At each use, `pause` and `window` of a step are varied uniformly at random, by at most jitter / 65536 of the
     * value. */
    uint32_t jitter;
    /* 1: in each round, all clients use the same random variation. */
    uint32_t alike;
    /* Number of steps of each client; 0: unlimited. */
    uint64_t limit;
    /* Duration of a round, in ticks: round i is scheduled at tick i * `round`. A late step starts as soon as its
     * `pause` has passed. 0: a round begins when the previous round has ended. */
    uint64_t round;
    /* 1: the simulation writes samples of this job's steps; 0: no samples. */
    uint32_t sampled;
    /* 0: the sender writes the bytes of a step to the host. Otherwise: the sender sends a request of this size in
     * bytes, and the host answers with the bytes of the step. */
    uint32_t reads;
};

/* A client: a process that repeats its steps and sends one message at a time. A round is complete when the process has
 * sent and received all messages of the round. */
struct ibp_sim_client {
    uint32_t host, job;
    /* Index of the client's first step. */
    uint64_t first_step;
    uint32_t steps;
    /* Index of the client's step that is executed first. The index must be 0 for clients that receive messages, and in
     * jobs with rounds. */
    uint32_t next;
    /* Number of messages that the client receives in a round. Each message has a slot. */
    uint32_t arrivals;
    /* The tick at which the client starts. */
    uint64_t start;
};

struct ibp_sim_sample {
    /* A completed step. `client`: the client of the step. `host`: the host to which the client sent, or from which the
     * client read. */
    uint32_t client, host;
    uint64_t start, ticks;
    uint64_t bytes;
};

enum ibp_sim_stop {
    IBP_SIM_TIME = 0,
    IBP_SIM_SAMPLES = 1,
    IBP_SIM_DONE = 2,
    /* Some packets wait for each other and will never move again. Other packets may still move. */
    IBP_SIM_DEADLOCK = 3,
    IBP_SIM_UNROUTED = 4,
    IBP_SIM_HOPS = 5
};

/* Maximum number of packet hops in one call of ibp_sim_run, so that the call returns after about a second. */
#define IBP_SIM_HOPS_AT_A_TIME 33554432

struct ibp_sim_state {
    uint64_t now, packet_hops, packets;
    /* Number of packet hops that were skipped (ibp_sim_skip_hops). */
    uint64_t skipped_hops;
    uint64_t steps;
    /* Sums over all hosts: sent bytes, and received bytes. */
    uint64_t bytes_sent, bytes_arrived;
    /* Number of packets in flight; a message that is sent as a whole counts as one packet. */
    uint64_t in_flight;
    /* enum ibp_sim_stop */
    uint32_t stopped;
    /* For IBP_SIM_UNROUTED: a switch and a destination host. Either the switch has no route to the host, or the
     * switch's route leads to another host. */
    uint32_t switch_without_route, host_without_route;
};

struct ibp_sim;

/* Set up a simulation. The arrays of the network must exist until the end of the simulation; all other input is copied.
 * Return NULL if memory is exhausted or a number is out of range. */
struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed);
void ibp_sim_free(struct ibp_sim *sim);

/* Make the simulation faster: packets skip hops at which nothing can delay the packet. Call this function before the
 * first run. Skips do not change the start or latency of any message, but may change the order of events within a tick.
 * ibp_sim_ends does not count skipped hops. Return 1 on success, -ENOMEM if memory is exhausted, and 0 with adaptive
 * routing, several lanes, reads, long or unknown paths, or too many paths. */
int ibp_sim_skip_hops(struct ibp_sim *sim);

/* Run until tick `until`. The run ends earlier if all work is done, after IBP_SIM_HOPS_AT_A_TIME hops, in a deadlock,
 * or if a packet has no route. The run also ends if `sample` cannot hold one more sample of each client. If `capacity`
 * is 0, no samples are written. Return the number of written samples, or a negative errno. */
int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity);

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state);

/* Read the state of each link direction. bytes[end][job]: bytes admitted since the beginning. busy[end][job]: ticks to
 * transmit the admitted bytes. queued[end]: sum over the lanes of the present bytes in the buffer and the bytes that
 * wait for buffer. most_queued[end]: the largest number of these bytes in any lane so far. */
void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued);

/* Read each client's number of completed steps, bytes of these steps, and tick of the last completion. Element
 * busy[client] is 1 during a step, and while the client waits for messages. */
void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy);

/* Find waiting packets. Packet i occupies buffer of link direction holds[i] and waits for buffer of link direction
 * wants[i]. `only_stuck`: find only packets that will wait forever. Set the first `capacity` elements of the arrays.
 * Return the number of packets; 0 if memory is exhausted. */
uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
