// SPDX-License-Identifier: Apache-2.0
// Sends the messages that a file lists between hosts of a CODES network:
// given_messages --sync=1 -- CONFIG MESSAGES OUTPUT HOURS
//
// MESSAGES has a line `host start_ns bytes count` for each client, then a line `host pause_ns` for each message of the
// client. A message starts when the client's previous message has arrived, and the pause is over. The program writes a line
// `client number start_ns ns` to OUTPUT for each arrived message. After HOURS of wall time, it exits with status 9.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "codes/codes.h"
#include "codes/codes_mapping.h"
#include "codes/configuration.h"
#include "codes/lp-type-lookup.h"
#include "codes/model-net.h"
#include "codes/net/fattree.h"

enum { MOST_HOSTS = 1 << 16, MOST_NAME = 256 };
static const double tick = 0.01;

enum kind { START, ARRIVED, NOTICED };

struct message {
    enum kind kind;
    tw_lpid from;
};

struct client {
    int bytes, count, next;
    double start, begun;
    int *to;
    double *pause;
};

struct state {
    int host;
};

static struct client *client_of[MOST_HOSTS];
static char group[MOST_NAME] = "MODELNET_GRP";
static int network;
static FILE *output;
static time_t until;

static void send_event(tw_lp *lp, tw_lpid to, double after, enum kind kind)
{
    tw_event *event = tw_event_new(to, after, lp);
    struct message *message = tw_event_data(event);
    message->kind = kind, message->from = lp->gid;
    tw_event_send(event);
}

static void begin(struct state *state, tw_lp *lp)
{
    (void)state;
    int host = codes_mapping_get_lp_relative_id(lp->gid, 0, 0);
    state->host = host;
    struct client *client = client_of[host];
    if (client && client->count) send_event(lp, lp->gid, client->start + tick, START);
}

static void send_next(struct state *state, tw_lp *lp)
{
    struct client *client = client_of[state->host];
    tw_lpid to = codes_mapping_get_lpid_from_relative(client->to[client->next], group, "nw-lp", NULL, 0);
    struct message message = {ARRIVED, lp->gid};
    client->begun = tw_now(lp);
    model_net_event(network, "given", to, (uint64_t)client->bytes, 0.0, sizeof message, &message, 0, NULL, lp);
}

static void notice(struct state *state, tw_lp *lp)
{
    struct client *client = client_of[state->host];
    fprintf(output, "%d %d %.2f %.2f\n", state->host, client->next, client->begun, tw_now(lp) - client->begun);
    double pause = client->pause[client->next++];
    if (client->next < client->count) send_event(lp, lp->gid, pause > tick ? pause : tick, START);
    if (time(NULL) > until) {
        fflush(output);
        _Exit(9);
    }
}

static void handle(struct state *state, tw_bf *bits, struct message *message, tw_lp *lp)
{
    (void)bits;
    if (message->kind == START) send_next(state, lp);
    if (message->kind == ARRIVED) send_event(lp, message->from, tick, NOTICED);
    if (message->kind == NOTICED) notice(state, lp);
}

static void handle_back(struct state *state, tw_bf *bits, struct message *message, tw_lp *lp)
{
    (void)state, (void)bits, (void)message, (void)lp;
    abort(); // only one process runs, in order
}

static void end(struct state *state, tw_lp *lp)
{
    (void)state, (void)lp;
}

static tw_lptype host_type = {(init_f)begin, NULL,         (event_f)handle,      (revent_f)handle_back,
                              NULL,          (final_f)end, (map_f)codes_mapping, sizeof(struct state)};

static void read_clients(const char *name)
{
    FILE *file = fopen(name, "r");
    if (!file) exit(3);
    int host;
    double start;
    int bytes, count;
    while (fscanf(file, "%d %lf %d %d", &host, &start, &bytes, &count) == 4) {
        struct client *client = calloc(1, sizeof *client);
        client->bytes = bytes, client->count = count, client->start = start;
        client->to = calloc((size_t)count, sizeof *client->to);
        client->pause = calloc((size_t)count, sizeof *client->pause);
        for (int number = 0; number < count; ++number)
            if (fscanf(file, "%d %lf", &client->to[number], &client->pause[number]) != 2) exit(3);
        if (host < 0 || host >= MOST_HOSTS) exit(3);
        client_of[host] = client;
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    tw_init(&argc, &argv);
    if (argc < 5) return 2;
    codes_comm_update();
    char **words = argv + argc - 4;
    read_clients(words[1]);
    output = fopen(words[2], "w");
    until = time(NULL) + (time_t)(atof(words[3]) * 3600);
    if (!output) return 3;
    configuration_load(words[0], MPI_COMM_CODES, &config);
    model_net_register();
    lp_type_register("nw-lp", &host_type);
    codes_mapping_setup();
    int networks;
    int *ids = model_net_configure(&networks);
    network = *ids;
    tw_run();
    fclose(output);
    tw_end();
    return 0;
}
