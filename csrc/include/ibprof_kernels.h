/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * libibprof_kernels.so: the loops that are too slow in Python. This is the one description of what it exports: C includes
 * it, and ibprof/kernels.py declares to cffi the text between the two marker lines, which therefore holds plain structs,
 * enums, integer defines and prototypes alone.
 *
 * Calls return 0 or a negative errno unless they say otherwise. Arrays belong to the caller, which says how long they are;
 * nothing is written beyond. Nothing is printed and nothing kept from call to call, so calls from several threads do not
 * meet.
 */
#ifndef IBPROF_KERNELS_H
#define IBPROF_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* -- sums (sum.c) -- */

/* Add up values exactly: sum[0] is the lower half, sum[1] the upper half of 128 bits. */
void ibp_sum(const uint64_t *values, size_t count, uint64_t sum[2]);

/* -- tables as text (csv.c) -- */

/* Digits of a number of 64 bits. */
#define IBP_CSV_DIGITS 20

/* Writes rows `source,destination,bytes,messages`: `source` and `destination` number names, of which each is the text from its
 * begin to the next one's, quoted where it has to be. A row takes two names, two numbers of IBP_CSV_DIGITS, and 4 bytes more.
 * Returns how many bytes were written. */
size_t ibp_csv_pairs(const char *names, const uint64_t *name_begin, const int64_t *source, const int64_t *destination,
                     const uint64_t *bytes, const uint64_t *messages, size_t count, char *text);

/* -- routes (routes.c) -- */

#define IBP_NONE -1

/* How a path ends; ibprof_converter/routing/reasons.py has the same numbers. */
enum ibp_reason {
    IBP_DELIVERED = 0,
    IBP_SAME_PORT = 1,
    IBP_UNKNOWN_LID = 2,
    IBP_UNKNOWN_PORT = 3,
    IBP_MISSING_TABLE = 4,
    IBP_UNREACHABLE = 5,
    IBP_WRONG_END = 6,
    IBP_LOOP = 7,
    IBP_REASONS = 8
};

/* What leaving a switch by a port does. */
struct ibp_hop {
    int32_t end; /* the link end that the switch sends on, IBP_NONE where no link is */
    int32_t to;  /* the switch it leads to; else switches + the port (index) of the CA or router; else IBP_NONE */
};

/* A subnet, indexed so that packets can be moved on. A link end is 2 * link + end and stands for what its node sends.
 * Switches that a CA or router is linked to come first. */
struct ibp_routes {
    uint32_t switches; /* at most 65534: each has a LID */
    uint32_t leaves;   /* switches with a CA or router; those before this number */
    uint32_t width;    /* ports in hop for each switch */
    uint32_t lids;     /* LIDs in egress; no table says anything of those beyond */
    uint32_t ends;
    uint32_t ports;
    const uint8_t *egress;       /* [lid][switch], 255 for none */
    const uint8_t *has_table;    /* [switch] */
    const struct ibp_hop *hop;   /* [switch][width] */
    const int32_t *lid_port;     /* [65536], index of the port that has a LID, or IBP_NONE */
    const int32_t *port_switch;  /* [port], the switch whose port 0 it is, or IBP_NONE */
    const struct ibp_hop *first; /* [port], what leaving a CA or router by this port does */
    const uint32_t *into;        /* [switch + 1], where its part of into_end begins */
    const int32_t *into_end;     /* link ends of switches that lead to it */
    const int32_t *end_switch;   /* [end], the switch that sends on it, or IBP_NONE */
};

/* Turn tables [row][width] into egress [lid][switch], for lids = width; row_of[switch] is IBP_NONE where it has no table. */
void ibp_transpose_tables(const uint8_t *table, size_t width, const int32_t *row_of, size_t switches, uint8_t *egress);

/* Follow pairs of LIDs hop by hop. Path i is end[offset[i]] .. end[offset[i + 1] - 1]; those that do not arrive are empty.
 * With end == NULL only offset and reason are filled in, so that a caller knows how many ends there will be. */
int ibp_find_paths(const struct ibp_routes *routes, const int32_t *source_lid, const int32_t *destination_lid,
                   size_t count, uint64_t *offset, int32_t *end, uint8_t *reason);

/* Find the switches that each LID's packets come from over a link end: from[offset[i]] .. are those of lid[i]. The ways of
 * LIDs that do not arrive, or do not pass the end, are empty. Returns how many there are; fills in the first `capacity`. */
int64_t ibp_find_upstream(const struct ibp_routes *routes, int32_t end, const int32_t *lid, size_t count,
                          uint64_t *offset, int32_t *from, uint64_t capacity);

/* -- traffic on link ends (trees.c, spread_flows.c, spread_matrix.c) -- */

/* The in-trees of all destinations, kept: for each LID the steps from the leaves on, upstream before downstream. */
struct ibp_trees;

/* Grow the trees, as many as `limit` bytes can hold; others grow when they are needed. NULL when memory is short. */
struct ibp_trees *ibp_trees_new(const struct ibp_routes *routes, uint64_t limit, unsigned threads);
uint64_t ibp_trees_bytes(const struct ibp_trees *trees);
void ibp_trees_free(struct ibp_trees *trees);

struct ibp_flows {
    uint64_t count; /* below 2^32 */
    const int32_t *source_lid;
    const int32_t *destination_lid;
    const uint64_t *bytes;
    const uint32_t *group; /* below groups; NULL: all 0 */
    uint32_t groups;
};

/* Add each flow's bytes to the ends on its path.
 *
 * load[end * groups + group] is added to; routed[group] and ended[reason] are set; reason, if any, is set for each flow.
 * -EOVERFLOW: the bytes add up to more than 64 bits. -EINVAL: a group out of range, or too many flows. -ENOMEM. */
int ibp_spread_flows(const struct ibp_routes *routes, const struct ibp_flows *flows, unsigned threads, uint64_t *load,
                     uint64_t *routed, uint64_t *ended, uint8_t *reason);

struct ibp_matrix {
    uint64_t rows, columns;
    const int32_t *source_lid;      /* [row] */
    const int32_t *destination_lid; /* [column] */
    const uint64_t *bytes;          /* of (row, column): bytes[row * row_step + column * column_step] */
    uint64_t row_step;
    uint64_t column_step; /* 1, or 0: a row sends the same to every column */
};

/* Add the bytes of each (row, column) to the ends on its path.
 *
 * load[end] is added to; ended[reason] is set. What a port sends to itself counts as IBP_SAME_PORT. trees may be NULL.
 * -EOVERFLOW: the bytes add up to more than 64 bits. -EINVAL: another column_step. -ENOMEM. */
int ibp_spread_matrix(const struct ibp_routes *routes, const struct ibp_trees *trees, const struct ibp_matrix *matrix,
                      unsigned threads, uint64_t *load, uint64_t *ended);
/* -- placements (placement.c) -- */

/* Ranks, the seats that hosts have for them, and what their traffic puts on link ends. Ranks that send to each other are
 * neighbours. Bytes between two hosts depend on the set of rails that both are on, of which each that occurs has a row. */
struct ibp_placement_problem {
    uint32_t ranks;
    uint32_t seats; /* at least as many; those of a group of hosts have successive numbers */
    uint32_t sites; /* hosts */
    uint32_t rails; /* at most 8 */
    uint32_t rows;
    uint32_t gates;                  /* switches that hosts are cabled to, on the rail that has most of them */
    uint32_t ends;                   /* link ends that count; the last stands for paths that do not arrive */
    const uint64_t *first;           /* [ranks + 1] where the neighbours of each rank begin */
    const uint32_t *neighbour;       /* the other rank; each of the two lists the other */
    const int64_t *sent;             /* [neighbour][row][rail] bytes from the rank to its neighbour */
    const int64_t *received;         /* [neighbour][row][rail] the other way */
    const uint32_t *site_of_seat;    /* [seats] */
    const uint8_t *rails_of_site;    /* [sites] a bit a rail */
    const int32_t *row_of_rails;     /* [256] */
    const uint32_t *group_of_site;   /* [sites] hosts close to each other are a group */
    const uint32_t *group_first;     /* [groups + 1] its seats */
    const uint32_t *gate_of_site;    /* [rails][sites] */
    const uint64_t *path_first;      /* [rails][gates][sites] + 1; where the path from a gate to a site begins */
    const uint32_t *path;            /* link ends */
    const double *seconds_per_byte;  /* [ends] */
};

/* A search for a better placement: it swaps ranks, or moves one to a free seat, and keeps what lowers the energy, the sum
 * over link ends of (seconds / scale) ^ (2 ^ doublings); at first also some that raise it. */
struct ibp_placement_search {
    uint32_t *seat_of_rank; /* [ranks] as it is now */
    int32_t *rank_of_seat;  /* [seats] -1 for a free one */
    int64_t *load;          /* [ends] bytes */
    int64_t *change;        /* [ends] all 0 between calls, as is is_touched */
    uint8_t *is_touched;    /* [ends] */
    uint32_t *touched;      /* [ends] */
    uint32_t *best;         /* [ranks] seats of the best placement met */
    int64_t best_lost;      /* its bytes that do not arrive */
    double best_max;        /* its largest seconds of a link end */
    double best_squares;    /* its sum of squared seconds */
    double energy;
    double looked_at; /* the least energy whose largest time was looked at */
    double scale;
    uint32_t doublings;
    double hottest; /* temperatures, relative to the energy: at the beginning, and when all work is done */
    double coldest;
    double temperature;
    uint64_t random; /* state of the generator */
    uint64_t work;   /* link ends visited */
    uint64_t all_work;
    uint64_t proposals;
    uint64_t accepted;
};

/* Add up what a placement puts on link ends: load[ends] is overwritten. */
void ibp_placement_load(const struct ibp_placement_problem *problem, const uint32_t *seat_of_rank, int64_t *load);

/* Search on until `work` is at `until` or at `all_work`. How the work is cut into calls does not change the result. */
void ibp_placement_search(const struct ibp_placement_problem *problem, struct ibp_placement_search *search,
                          uint64_t until);

/* -- events of an OTF2 archive (otf2_events.c) -- */

enum ibp_event_kind {
    IBP_EVENT_ENTER = 0,  /* reference is a region */
    IBP_EVENT_LEAVE = 1,
    IBP_EVENT_NUMBER = 2, /* reference is a parameter, its value the event's one value */
    IBP_EVENT_TEXT = 3,   /* likewise, the value is the number of a string */
    IBP_EVENT_METRIC = 4  /* reference is a metric, whose numbers are the event's values, at most 255 */
};

/* Events of one location. Their values lie in an array of their own, one event's behind the other's. */
struct ibp_event {
    uint64_t time_ns;
    uint32_t reference;
    uint16_t kind; /* enum ibp_event_kind */
    uint16_t values;
};

/* Functions of OTF2, which the caller has loaded, as its header declares them: OTF2_EvtWriter_Enter, ...Leave,
 * ...ParameterUnsignedInt, ...ParameterString, ...Metric. */
struct ibp_otf2_writer {
    int (*enter)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*leave)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*number)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint64_t value);
    int (*text)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint32_t text);
    int (*metric)(void *writer, void *attributes, uint64_t time_ns, uint32_t metric, uint8_t count,
                  const uint8_t *types, const uint64_t *values);
};

/* Write events through OTF2_EvtWriter `writer`. Returns 0, OTF2's error, or -EINVAL for an event that is none. */
int ibp_otf2_write(const struct ibp_otf2_writer *otf2, void *writer, const struct ibp_event *events, size_t count,
                   const uint64_t *values);

/* OTF2_EvtReaderCallbacks_New, ..._Delete, ..._SetEnterCallback and so on, OTF2_Reader_RegisterEvtCallbacks,
 * OTF2_Reader_ReadAllLocalEvents. */
struct ibp_otf2_reader {
    void *(*callbacks_new)(void);
    void (*callbacks_delete)(void *callbacks);
    int (*set_enter)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t));
    int (*set_leave)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t));
    int (*set_number)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint64_t));
    int (*set_text)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint32_t));
    int (*set_metric)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint8_t,
                                               const uint8_t *, const uint64_t *));
    int (*register_callbacks)(void *archive, void *reader, void *callbacks, void *user_data);
    int (*read_all)(void *archive, void *reader, uint64_t *count);
};

/* Where events are read to: `events` and `values` have room for the capacities. */
struct ibp_events {
    struct ibp_event *events;
    size_t count;
    size_t capacity;
    uint64_t *values;
    size_t values_count;
    size_t values_capacity;
    int overflown;
};

/* Read the events of one location, OTF2_EvtReader `reader` of OTF2_Reader `archive`, behind those that are in `into`.
 * Returns 0, OTF2's error, -E2BIG when there is no room for all of them, or -ENOMEM. */
int ibp_otf2_read(const struct ibp_otf2_reader *otf2, void *archive, void *reader, struct ibp_events *into);
/* -- packets (simulation.c, simulation_time.c, simulation_queues.c, simulation_clients.c, simulation_deadlock.c) -- */

/* Time is counted in ticks, of a length that the caller chooses. A link end is what a node sends on a link. Nodes are the
 * hosts, 0 .. hosts - 1, and then the switches. */
struct ibp_sim_network {
    uint32_t hosts, switches, ends, width; /* width: ports of a switch, at most 256 */
    const uint32_t *end_to;                /* [end], the node it leads to */
    const uint64_t *end_byte_ticks;        /* [end], ticks for a byte, times 2^32 */
    const uint32_t *end_delay; /* [end], ticks from the last bit's leaving until the next node acts on it; > 0 */
    const uint32_t *end_capacity; /* [end], bytes of each virtual lane: a packet to UINT32_MAX / (width + 1) */
    const int32_t *host_end; /* [host], the end it sends on, or IBP_NONE */
    const int32_t *port_end; /* [switch][width], or IBP_NONE */
    const uint8_t *egress; /* [switch][host], the port towards a host, 255 for none */
    /* [switch][leaf][(width + 63) / 64], ports on shortest ways to a switch, a bit each, 64 to a word; NULL: static */
    const uint64_t *minimal;
    const uint32_t *host_leaf; /* [host], the switch (from 0) that it is at */
    const uint8_t *lane; /* [switch][switch], virtual lane from leaf to leaf; NULL: 0 */
    uint32_t lanes; /* virtual lanes, 1 to 16 */
    uint32_t packet_bytes; /* the largest packet */
};

/* A step of a client: a message to a host, and there to a client or (UINT32_MAX) none, for which it is the message of that
 * slot in its round. It starts when the messages of the first `awaits` slots have come to the client that sends it. */
struct ibp_sim_step {
    uint32_t host, client;
    uint32_t slot, awaits;
    uint64_t bytes;
    uint64_t pause; /* ticks from the completion of the step before to its start */
    /* Ticks from the start of the step before to its start at least; of a job with rounds, from the round's. */
    uint64_t window;
};

/* What all clients of a job have in common. */
struct ibp_sim_job {
    uint32_t jitter; /* pauses and windows vary evenly by up to this many parts in 65536 */
    uint32_t alike; /* whether they do so by the same part for all clients, in each round anew */
    uint64_t limit; /* steps of a client in all; 0: no end */
    /* Ticks: rounds begin at multiples of it, late steps make up for it; 0: when the one before has ended. */
    uint64_t round;
    uint32_t sampled; /* whether its steps are written to the samples */
    uint32_t reads; /* 0: bytes go to the host; else bytes of a request to it, which the host answers with the bytes */
};

/* A process that goes through its steps again and again, one message at a time. Once through them all, with all messages of
 * others that belong there, is a round. */
struct ibp_sim_client {
    uint32_t host, job;
    uint64_t first_step;
    uint32_t steps; /* its part of the steps */
    /* The step to begin with, from 0; 0 where messages come to it, and in jobs with rounds: they begin there. */
    uint32_t next;
    uint32_t arrivals; /* messages that come to it in a round, a slot each */
    uint64_t start; /* ticks */
};

struct ibp_sim_sample {
    uint32_t client, host; /* who waited for it; the other end */
    uint64_t start, ticks;
    uint64_t bytes;
};

enum ibp_sim_stop {
    IBP_SIM_TIME = 0,
    IBP_SIM_SAMPLES = 1,
    IBP_SIM_DONE = 2,
    IBP_SIM_DEADLOCK = 3, /* packets wait for each other, and never move again; others may */
    IBP_SIM_UNROUTED = 4,
    IBP_SIM_HOPS = 5
};

#define IBP_SIM_HOPS_AT_A_TIME 33554432 /* packet hops after which a run comes back: a second or some */

struct ibp_sim_state {
    uint64_t now, packet_hops, packets, steps; /* steps completed */
    uint64_t bytes_sent, bytes_arrived; /* by hosts, at hosts */
    uint64_t in_flight; /* packets */
    uint32_t stopped; /* enum ibp_sim_stop */
    uint32_t switch_without_route, host_without_route; /* where IBP_SIM_UNROUTED: no way, or one to another host */
};

struct ibp_sim;

/* Set up a simulation. What the network points to must outlive it; the rest is copied. NULL when memory is short or a
 * number is out of range. */
struct ibp_sim *ibp_sim_new(const struct ibp_sim_network *network, const struct ibp_sim_job *job, uint32_t jobs,
                            const struct ibp_sim_client *client, uint32_t clients, const struct ibp_sim_step *step,
                            uint64_t steps, uint64_t seed);
void ibp_sim_free(struct ibp_sim *sim);

/* Go on until the given tick, until `capacity` samples are written, until nothing is left to do, or for some time. Gives the number of
 * samples, negative errno when memory runs short. */
int64_t ibp_sim_run(struct ibp_sim *sim, uint64_t until, struct ibp_sim_sample *sample, uint64_t capacity);

void ibp_sim_look(const struct ibp_sim *sim, struct ibp_sim_state *state);

/* Per link end, since the beginning: bytes[end][job] that it admitted and busy[end][job], the ticks that sending them takes;
 * bytes that lie in its queues or wait for room there now, those of all lanes, and the most that did of one lane. */
void ibp_sim_ends(const struct ibp_sim *sim, uint64_t *bytes, uint64_t *busy, uint64_t *queued, uint64_t *most_queued);

/* Per client: steps completed, their bytes, the tick at which the last one was, and whether one is under way. */
void ibp_sim_clients(const struct ibp_sim *sim, uint64_t *steps, uint64_t *bytes, uint64_t *last, uint8_t *busy);

/* Who waits for whom: packets that came over the end holds[i] wait for room at the end wants[i], all or those that never get
 * it. Gives how many there are, none when memory is short; fills in the first `capacity`. */
uint64_t ibp_sim_waits(const struct ibp_sim *sim, uint32_t only_stuck, uint32_t *holds, uint32_t *wants,
                       uint64_t capacity);

/* -- dumps of forwarding tables (entries.c) -- */

/* How a line that maps a LID to a port goes on after `0x` and four hexadecimal digits. */
enum ibp_entry_form {
    IBP_ENTRY_FDBS = 0, /* ` : 001`, then a blank or the line's end; or ` : UNREACHABLE`; ports below 255 */
    IBP_ENTRY_LFT = 1 /* ` 001`, then a blank or the line's end; ports up to 255 */
};

/* A line that is no entry. */
struct ibp_other_line {
    uint64_t begin, end; /* bytes in the text, without the line break */
    uint64_t entries; /* how many entries are before it */
};

struct ibp_entries {
    uint16_t *lid; /* [entry] */
    uint8_t *port; /* [entry], 255 for none */
    struct ibp_other_line *other;
    uint64_t count, others;
    int64_t bad; /* the first entry that is not what it should be, or -1; its bytes: */
    uint64_t bad_begin, bad_end;
};

/* How many line breaks are in a text; it has one line more. */
uint64_t ibp_count_line_breaks(const uint8_t *text, uint64_t size);

/* Cut a text into entries, lines that begin with `0x`, and other lines. The arrays have room for every line. */
void ibp_read_entries(const uint8_t *text, uint64_t size, enum ibp_entry_form form, struct ibp_entries *entries);

/* Put entries into tables: those from begin[i] to begin[i + 1] belong to row[i], IBP_NONE for nowhere. Returns the first
 * entry that a later one contradicts, or -1. */
int64_t ibp_fill_tables(const struct ibp_entries *entries, const uint64_t *begin, const int32_t *row, uint64_t stanzas,
                        uint8_t *table, uint64_t width);

/* -- positions in space (stress.c) -- */

/* The stress of a drawing, by ordered pairs: stress[0] of edges, the squares of d^2 - length^2; stress[1] of pairs that no edge
 * joins and that are nearer than 1, gamma / d^2, or gamma at one place; stress[2], the number of the latter.
 * gradient[vertex]: of (stress[0] + stress[1]) / 2. An edge joins two vertices that differ, and is there once.
 * -EDOM: a place is no number, or too far out. */
int ibp_stress(const double (*place)[3], uint32_t vertices, const uint32_t (*edge)[2], const double *length,
               size_t edges, double gamma, double (*gradient)[3], double stress[3]);

/* -- trees over hosts (linkage.c, joining.c, prune.c) -- */

/* A binary tree has the leaves 0 to leaves - 1; node leaves + k joins child[2 * k] and child[2 * k + 1], both below it in
 * number. The last node is the root. */

/* Average linkage. distance[leaf][leaf], symmetric, finite, is written over. size[k]: leaves below node leaves + k, height[k]:
 * mean distance between its children's leaves. */
int ibp_average_linkage(float *distance, uint32_t leaves, int32_t *child, double *height, uint32_t *size);

/* Neighbour joining. distance[leaf][leaf], symmetric, finite, 0 on the diagonal, is written over. The tree has no root by
 * itself: the last two that are left are joined by one. */
int ibp_join_neighbours(double *distance, uint32_t leaves, int32_t *child);

/* detour[a][b]: the least distance[a][k] + distance[k][b] over all others k. The diagonal is of no meaning. */
void ibp_find_detours(const float *distance, uint32_t count, float *detour);

struct ibp_binary_tree {
    uint32_t leaves;
    const int32_t *child;
    const double *weight; /* [node], of the pairs of leaves that meet in it, each by the inverse of its variance */
    const double *height; /* [node], weighted mean over these pairs */
};

/* Merge nodes into those above them while that costs less than it saves: a node is kept where giving its pairs a height
 * of their own gains more than `penalty`, and the log of the ways in which chance could have made one, in log-likelihood.
 * A node that is not below the one above it in height is merged.
 *
 * variance: of a pair of weight 1. into[node]: the node that it became part of, itself where it is kept. weight, height
 * [node]: of those kept, with what they took in. lost: weighted squares that the fit lost. */
int ibp_prune_tree(const struct ibp_binary_tree *tree, double variance, double penalty, int32_t *into, double *weight,
                   double *height, double *lost);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
