/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The packet engine on small networks, with the sanitizers. The engine's assertions check that bytes are conserved,
 * buffers do not overflow, and time does not go back.
 */
#include "check.h"
#include "ibprof_kernels.h"

#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 16, SWITCHES_MAX = 8, WIDTH = 8, ENDS_MAX = 64, CLIENTS_MAX = 32 };

static const uint64_t byte_ticks = UINT64_C(1) << 29; /* 8 bytes a tick */

struct net {
    struct ibp_sim_network network;
    uint32_t end_to[ENDS_MAX], end_delay[ENDS_MAX], end_gap[ENDS_MAX], end_capacity[ENDS_MAX], host_leaf[HOSTS_MAX];
    uint64_t end_byte_ticks[ENDS_MAX], minimal[SWITCHES_MAX * SWITCHES_MAX];
    int32_t host_end[HOSTS_MAX], port_end[SWITCHES_MAX * WIDTH];
    uint8_t egress[SWITCHES_MAX * HOSTS_MAX], lane[SWITCHES_MAX * SWITCHES_MAX];
};

static void begin_net(struct net *net, uint32_t hosts, uint32_t switches, uint32_t capacity)
{
    memset(net, 0, sizeof *net);
    memset(net->egress, 255, sizeof net->egress);
    for (int i = 0; i < SWITCHES_MAX * WIDTH; i++) net->port_end[i] = IBP_NONE;
    for (int i = 0; i < HOSTS_MAX; i++) net->host_end[i] = IBP_NONE;
    for (int i = 0; i < ENDS_MAX; i++) net->end_capacity[i] = capacity;
    net->network = (struct ibp_sim_network){
        .hosts = hosts,
        .switches = switches,
        .width = WIDTH,
        .end_to = net->end_to,
        .end_byte_ticks = net->end_byte_ticks,
        .end_delay = net->end_delay,
        .end_gap = net->end_gap,
        .end_capacity = net->end_capacity,
        .host_end = net->host_end,
        .port_end = net->port_end,
        .egress = net->egress,
        .host_leaf = net->host_leaf,
        .lanes = 1,
        .packet_bytes = 256,
    };
}

static uint32_t add_end(struct net *net, uint32_t to, uint32_t delay)
{
    const uint32_t end = net->network.ends++;

    net->end_to[end] = to;
    net->end_delay[end] = delay;
    net->end_byte_ticks[end] = byte_ticks;
    return end;
}

static void add_host(struct net *net, uint32_t host, uint32_t at, uint32_t port)
{
    net->host_end[host] = (int32_t)add_end(net, net->network.hosts + at, 10);
    net->port_end[at * WIDTH + port] = (int32_t)add_end(net, host, 2);
    net->host_leaf[host] = at;
    net->egress[at * net->network.hosts + host] = (uint8_t)port;
}

static void add_cable(struct net *net, uint32_t a, uint32_t a_port, uint32_t b, uint32_t b_port)
{
    net->port_end[a * WIDTH + a_port] = (int32_t)add_end(net, net->network.hosts + b, 10);
    net->port_end[b * WIDTH + b_port] = (int32_t)add_end(net, net->network.hosts + a, 10);
}

/* One switch, a host on each port. */
static void make_star(struct net *net, uint32_t hosts, uint32_t capacity)
{
    begin_net(net, hosts, 1, capacity);
    for (uint32_t host = 0; host < hosts; host++) add_host(net, host, 0, host);
}

/* Switches in a ring. Port 0 of each switch leads to a host, port 1 to the next switch. All routes lead clockwise. */
static void make_ring(struct net *net, uint32_t switches, uint32_t capacity)
{
    begin_net(net, switches, switches, capacity);
    for (uint32_t at = 0; at < switches; at++) {
        for (uint32_t host = 0; host < switches; host++) net->egress[at * switches + host] = 1;
        add_host(net, at, at, 0);
    }
    for (uint32_t at = 0; at < switches; at++) add_cable(net, at, 1, (at + 1) % switches, 2);
}

/* Two leaves with hosts on their first ports, and two spines. */
static void make_tree(struct net *net, uint32_t hosts_a_leaf, uint32_t capacity)
{
    begin_net(net, 2 * hosts_a_leaf, 4, capacity);
    for (uint32_t host = 0; host < 2 * hosts_a_leaf; host++) {
        const uint32_t leaf = host / hosts_a_leaf;

        add_host(net, host, leaf, host % hosts_a_leaf);
        net->egress[(1 - leaf) * 2 * hosts_a_leaf + host] = (uint8_t)(hosts_a_leaf + host % 2);
        for (uint32_t top = 2; top < 4; top++) net->egress[top * 2 * hosts_a_leaf + host] = (uint8_t)leaf;
    }
    for (uint32_t leaf = 0; leaf < 2; leaf++)
        for (uint32_t top = 2; top < 4; top++) {
            add_cable(net, leaf, hosts_a_leaf + top - 2, top, leaf);
            net->minimal[top * 4 + leaf] = UINT64_C(1) << leaf;
            net->minimal[leaf * 4 + (1 - leaf)] |= UINT64_C(1) << (hosts_a_leaf + top - 2);
        }
}

static struct ibp_sim_step send(uint32_t host, uint64_t bytes)
{
    return (struct ibp_sim_step){.host = host, .client = IBP_SIM_NOBODY, .bytes = bytes};
}

static const struct ibp_sim_job once = {.limit = 1, .sampled = 1};

static struct ibp_sim_state finish(struct ibp_sim *sim, struct ibp_sim_sample *sample, uint64_t capacity,
                                   int64_t samples)
{
    struct ibp_sim_state state;

    CHECK(sim);
    CHECK(ibp_sim_run(sim, UINT64_MAX, sample, capacity) == samples);
    ibp_sim_look(sim, &state);
    return state;
}

/* A packet of 256 bytes takes 32 ticks per link, plus the delays of the link directions. Each further packet arrives 32
 * ticks later. */
static void test_exact_times(void)
{
    struct net net;
    struct ibp_sim_sample sample[CLIENTS_MAX];
    const struct ibp_sim_client client[] = {{.host = 0, .steps = 1, .start = 5},
                                            {.host = 1, .first_step = 1, .steps = 1}};

    make_star(&net, 3, 1024);
    const struct ibp_sim_step step[] = {send(1, 10 * 256), send(1, 100)};
    struct ibp_sim *sim = ibp_sim_new(&net.network, &once, 1, client, 1, step, 1, 1);
    CHECK(finish(sim, sample, CLIENTS_MAX, 1).stopped == IBP_SIM_DONE);
    CHECK(sample[0].start == 5 && sample[0].ticks == 2 * 32 + 10 + 2 + 9 * 32 && sample[0].bytes == 2560);
    ibp_sim_free(sim);
    /* A message to the same host takes one tick. */
    sim = ibp_sim_new(&net.network, &once, 1, client + 1, 1, step, 2, 1);
    CHECK(finish(sim, sample, CLIENTS_MAX, 1).packets == 0);
    CHECK(sample[0].ticks == 1);
    ibp_sim_free(sim);
}

/* A client sends a request of 8 bytes, and the host answers. */
static void test_a_read(void)
{
    struct net net;
    struct ibp_sim_sample sample[CLIENTS_MAX];
    const struct ibp_sim_job job = {.limit = 1, .sampled = 1, .reads = 8};
    const struct ibp_sim_client client = {.host = 0, .steps = 1};
    const struct ibp_sim_step step = send(1, 256);

    make_star(&net, 2, 1024);
    struct ibp_sim *sim = ibp_sim_new(&net.network, &job, 1, &client, 1, &step, 1, 1);
    const struct ibp_sim_state state = finish(sim, sample, CLIENTS_MAX, 1);
    CHECK(sample[0].ticks == (2 * 1 + 12) + (2 * 32 + 12) && state.bytes_arrived == 264);
    ibp_sim_free(sim);
}

static void test_a_ring_deadlocks(void)
{
    struct net net;
    struct ibp_sim_client client[6];
    struct ibp_sim_step step[6];
    uint32_t holds[ENDS_MAX], wants[ENDS_MAX];
    struct ibp_sim_state state;

    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        make_ring(&net, 6, 256);
        /* With two lanes, routes change the lane at the link into switch 0. This change breaks the cycle. */
        for (uint32_t from = 0; from < 6; from++)
            for (uint32_t to = 0; to < 6; to++) net.lane[from * 6 + to] = to < from;
        net.network.lanes = lanes;
        net.network.lane = lanes > 1 ? net.lane : NULL;
        for (uint32_t i = 0; i < 6; i++) {
            client[i] = (struct ibp_sim_client){.host = i, .first_step = i, .steps = 1};
            step[i] = send((i + 3) % 6, 1 << 14);
        }
        struct ibp_sim *sim = ibp_sim_new(&net.network, &once, 1, client, 6, step, 6, 1);
        struct ibp_sim_sample sample[CLIENTS_MAX];
        state = finish(sim, sample, CLIENTS_MAX, lanes > 1 ? 6 : 0);
        CHECK(state.stopped == (lanes > 1 ? IBP_SIM_DONE : IBP_SIM_DEADLOCK));
        const uint64_t waits = ibp_sim_waits(sim, 1, holds, wants, ENDS_MAX);
        CHECK((waits > 0) == (lanes == 1) && waits <= ENDS_MAX);
        /* From any packet, the waits lead into the cycle of six packets. */
        uint32_t at = waits ? holds[0] : 0, in_cycle = 0;
        for (uint32_t turn = 0; waits && turn < 12; turn++) {
            uint64_t i = 0;

            if (turn == 6) in_cycle = at;
            while (i < waits && holds[i] != at) i++;
            CHECK(i < waits);
            at = wants[i];
        }
        CHECK(!waits || at == in_cycle);
        ibp_sim_free(sim);
    }
}

static void test_no_route(void)
{
    struct net net;
    struct ibp_sim_state state;
    const struct ibp_sim_client client = {.host = 0, .steps = 1};
    const struct ibp_sim_step step = send(2, 10);

    make_star(&net, 3, 1024);
    net.egress[2] = 255;
    struct ibp_sim *sim = ibp_sim_new(&net.network, &once, 1, &client, 1, &step, 1, 1);
    struct ibp_sim_sample sample[1];
    state = finish(sim, sample, 1, 0);
    CHECK(state.stopped == IBP_SIM_UNROUTED && state.switch_without_route == 0 && state.host_without_route == 2);
    ibp_sim_free(sim);
}

/* Two clients answer each other. Before each message, the second client waits for slot 0, and ignores slot 1. */
static void test_slots(void)
{
    struct net net;
    struct ibp_sim_sample sample[CLIENTS_MAX];
    const struct ibp_sim_job job = {.limit = 4, .sampled = 1};
    const struct ibp_sim_client client[] = {{.host = 0, .steps = 2, .arrivals = 1, .start = 1},
                                            {.host = 1, .first_step = 2, .steps = 1, .arrivals = 2, .start = 1}};
    const struct ibp_sim_step step[] = {
        {.host = 1, .client = 1, .slot = 1, .bytes = 256, .pause = 500},
        {.host = 1, .client = 1, .slot = 0, .bytes = 256},
        {.host = 0, .client = 0, .slot = 0, .awaits = 1, .bytes = 256},
    };

    make_star(&net, 2, 1024);
    struct ibp_sim *sim = ibp_sim_new(&net.network, &job, 1, client, 2, step, 3, 1);
    struct ibp_sim_state state = finish(sim, sample, CLIENTS_MAX, 6);
    CHECK(state.stopped == IBP_SIM_DONE);
    CHECK(sample[0].client == 0 && sample[1].client == 0 && sample[2].client == 1 && sample[3].client == 0);
    CHECK(sample[2].start == sample[1].start + sample[1].ticks + 1);
    /* A round ends when the other client's message arrives; the pause follows. */
    CHECK(sample[3].start == sample[2].start + sample[2].ticks + 500);
    ibp_sim_free(sim);
}

/* On random networks, all sent bytes arrive, in one long run or in many short runs. */
static void test_many(uint32_t seed)
{
    struct net net;
    struct ibp_sim_client client[CLIENTS_MAX];
    struct ibp_sim_step step[CLIENTS_MAX];
    struct ibp_sim_sample sample[2][CLIENTS_MAX * 8];
    const struct ibp_sim_job job[] = {{.limit = 8, .sampled = 1, .jitter = 30000},
                                      {.limit = 5, .sampled = 1, .reads = 64}};
    struct ibp_sim_state state[2];
    int64_t samples[2] = {0, 0};
    uint64_t sent = 0;

    srand(seed);
    make_tree(&net, 3, 256 * (1 + (uint32_t)rand() % 4));
    net.network.minimal = seed % 2 ? net.minimal : NULL;
    for (int i = 0; i < ENDS_MAX; i++)
        if (rand() % 4 == 0) net.end_byte_ticks[i] *= 1 + (uint64_t)rand() % 40; /* beyond the wheel's end */
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        client[i] = (struct ibp_sim_client){.host = (uint32_t)rand() % 6, .job = (uint32_t)rand() % 2, .steps = 1};
        client[i].first_step = i;
        client[i].start = (uint64_t)rand() % 1000;
        step[i] = send((uint32_t)rand() % 6, 1 + (uint64_t)rand() % 5000);
        step[i].pause = (uint64_t)rand() % 40000;
        step[i].window = (uint64_t)rand() % 3 * 10000;
        if (step[i].host != client[i].host)
            sent += job[client[i].job].limit * (step[i].bytes + job[client[i].job].reads);
    }
    for (int run = 0; run < 2; run++) {
        struct ibp_sim *sim = ibp_sim_new(&net.network, job, 2, client, CLIENTS_MAX, step, CLIENTS_MAX, seed);
        const uint64_t bit = run ? 777 : UINT64_MAX;
        CHECK(sim);
        do {
            ibp_sim_look(sim, &state[run]);
            const uint64_t until = bit == UINT64_MAX ? bit : state[run].now + bit;
            const int64_t more = ibp_sim_run(sim, until, sample[run] + samples[run], CLIENTS_MAX * 8);
            CHECK(more >= 0);
            samples[run] += more;
            ibp_sim_look(sim, &state[run]);
        } while (state[run].stopped == IBP_SIM_TIME || state[run].stopped == IBP_SIM_SAMPLES);
        CHECK(state[run].stopped == IBP_SIM_DONE && !state[run].in_flight);
        CHECK(state[run].bytes_sent == sent && state[run].bytes_arrived == sent);
        ibp_sim_free(sim);
    }
    CHECK(samples[0] == samples[1]);
    CHECK(state[0].packet_hops == state[1].packet_hops);
    for (int64_t i = 0; i < samples[0]; i++)
        CHECK(sample[0][i].client == sample[1][i].client && sample[0][i].ticks == sample[1][i].ticks);
}

/* If no two events have the same tick, skipped hops change no message. The networks are random, with links so slow that
 * a tick is short. Some messages have packets of equal size; some share hosts, links and destinations. */
static void test_skipped_hops(uint32_t seed, uint64_t *skipped)
{
    enum { CLIENTS = 6 };
    struct net net;
    struct ibp_sim_client client[CLIENTS];
    struct ibp_sim_step step[2 * CLIENTS];
    struct ibp_sim_sample sample[2][CLIENTS * 9];
    const struct ibp_sim_job job = {.limit = 8, .sampled = 1, .jitter = 30000};
    struct ibp_sim_state state[2];

    srand(seed);
    make_tree(&net, 3, 256 * (uint32_t)(rand() % 2 ? 16 : 1 + rand() % 6));
    net.network.minimal = NULL;
    for (int i = 0; i < ENDS_MAX; i++) {
        net.end_byte_ticks[i] = (UINT64_C(1000) << 32) * (rand() % 4 ? 1 : 1 + (uint64_t)rand() % 3) + (uint64_t)rand();
        net.end_delay[i] = 1 + (uint32_t)rand() % 300000;
        net.end_gap[i] = rand() % 8 ? 0 : (uint32_t)rand() % 100000;
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client[i] = (struct ibp_sim_client){.host = (uint32_t)rand() % 6, .first_step = 2 * i, .steps = 2};
        client[i].start = (uint64_t)rand() % 10000000;
        for (uint32_t at = 2 * i; at < 2 * i + 2; at++) {
            step[at] =
                send((uint32_t)rand() % 6, rand() % 3 ? 256 * (1 + (uint64_t)rand() % 20) : (uint64_t)rand() % 3000);
            step[at].pause = (uint64_t)rand() % 3 * (uint64_t)(rand() % 10000000);
        }
    }
    for (int run = 0; run < 2; run++) {
        struct ibp_sim *sim = ibp_sim_new(&net.network, &job, 1, client, CLIENTS, step, 2 * CLIENTS, seed);
        CHECK(sim);
        if (run) CHECK(ibp_sim_skip_hops(sim) == 1);
        state[run] = finish(sim, sample[run], CLIENTS * 9, CLIENTS * 8);
        CHECK(state[run].stopped == IBP_SIM_DONE && !state[run].in_flight);
        ibp_sim_free(sim);
    }
    for (uint32_t i = 0; i < CLIENTS * 8; i++)
        CHECK(sample[0][i].client == sample[1][i].client && sample[0][i].start == sample[1][i].start &&
              sample[0][i].ticks == sample[1][i].ticks);
    CHECK(state[0].packet_hops == state[1].packet_hops && state[0].packets == state[1].packets);
    CHECK(state[0].bytes_sent == state[1].bytes_sent && state[0].bytes_arrived == state[1].bytes_arrived);
    CHECK(!state[0].skipped_hops);
    *skipped += state[1].skipped_hops;
}

static void test_no_skipping(void)
{
    struct net net;
    const struct ibp_sim_client client = {.host = 0, .steps = 1};
    const struct ibp_sim_step step = send(1, 10);
    const struct ibp_sim_job reads = {.limit = 1, .reads = 64};
    struct ibp_sim *sim;

    make_tree(&net, 3, 1024);
    sim = ibp_sim_new(&net.network, &once, 1, &client, 1, &step, 1, 1);
    CHECK(ibp_sim_skip_hops(sim) == !net.network.minimal);
    ibp_sim_free(sim);
    net.network.minimal = NULL;
    sim = ibp_sim_new(&net.network, &reads, 1, &client, 1, &step, 1, 1);
    CHECK(ibp_sim_skip_hops(sim) == 0);
    ibp_sim_free(sim);
    net.network.lanes = 2;
    sim = ibp_sim_new(&net.network, &once, 1, &client, 1, &step, 1, 1);
    CHECK(ibp_sim_skip_hops(sim) == 0);
    ibp_sim_free(sim);
}

static void test_invalid(void)
{
    struct net net;
    struct ibp_sim_client client = {.host = 0, .steps = 1};
    struct ibp_sim_step step = send(1, 10);
    struct ibp_sim_job job = once;

    make_star(&net, 2, 1024);
#define REFUSED(change)                                                                                                \
    do {                                                                                                               \
        const struct ibp_sim_client kept_client = client;                                                              \
        const struct ibp_sim_step kept_step = step;                                                                    \
        const struct ibp_sim_job kept_job = job;                                                                       \
        const struct net kept_net = net;                                                                               \
        change;                                                                                                        \
        CHECK(!ibp_sim_new(&net.network, &job, 1, &client, 1, &step, 1, 1));                                           \
        client = kept_client;                                                                                          \
        step = kept_step;                                                                                              \
        job = kept_job;                                                                                                \
        net = kept_net;                                                                                                \
    } while (0)
    REFUSED(client.host = 2);
    REFUSED(client.job = 1);
    REFUSED(client.steps = 0);
    REFUSED(client.steps = 2);
    REFUSED(client.next = 1);
    REFUSED(step.host = 2);
    REFUSED(step.client = 1);
    REFUSED(step.client = 0); /* it receives no messages */
    REFUSED(step.awaits = 1);
    REFUSED(job.jitter = 65537);
    REFUSED(net.host_end[1] = IBP_NONE);
    REFUSED(net.end_capacity[3] = 255);
    REFUSED(net.end_capacity[3] = INT32_MAX / WIDTH); /* buffered and waiting bytes could exceed 31 bits */
    REFUSED(net.end_delay[1] = 0);
    REFUSED(net.network.lanes = 17);
    REFUSED(net.network.packet_bytes = 0);
#undef REFUSED
    /* A client that begins with its second step is refused if its job has rounds. */
    const struct ibp_sim_client late = {.steps = 2, .next = 1, .arrivals = 1};
    const struct ibp_sim_step both[] = {send(1, 10), send(1, 10)};
    CHECK(!ibp_sim_new(&net.network, &job, 1, &late, 1, both, 2, 1));
    struct ibp_sim *sim = ibp_sim_new(&net.network, &job, 1, &client, 1, &step, 1, 1);
    CHECK(sim);
    ibp_sim_free(sim);
}

int main(void)
{
    test_exact_times();
    test_a_read();
    test_a_ring_deadlocks();
    test_no_route();
    test_slots();
    for (uint32_t seed = 1; seed <= 40; seed++) test_many(seed);
    uint64_t skipped = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) test_skipped_hops(seed, &skipped);
    CHECK(skipped > 10000);
    test_no_skipping();
    test_invalid();
    return 0;
}
