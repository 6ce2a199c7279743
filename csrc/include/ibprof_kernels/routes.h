/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The routes of a subnet, computed by following forwarding tables hop by hop.
 *
 * A link direction has the number 2 * link + end. `end` is 0 or 1: the transmitting end of the link. Arrays and members
 * named `end` contain numbers of link directions.
 */
#ifndef IBPROF_KERNELS_ROUTES_H
#define IBPROF_KERNELS_ROUTES_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Index that means: no switch, port, link direction or row. */
#define IBP_NONE -1

/* The egress port of an unreachable LID. */
#define IBP_NO_PORT 255

/* Number of LIDs, which have 16 bits. */
#define IBP_LIDS 65536

/* How a path ends. */
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

/* The hop from a node through one of its ports. */
struct ibp_hop {
    /* The link direction on which the node transmits; IBP_NONE if the port has no link. */
    int32_t end;
    /* The next node: a switch, or `switches` + the index of the port of a CA or router. IBP_NONE if the port has no
     * link. */
    int32_t to;
};

/* The arrays that describe a subnet, as needed to follow routes. A leaf switch is a switch to which a CA or router is
 * connected. Leaf switches have the lowest indices. */
struct ibp_routes {
    /* Number of switches; at most 65534, because each has a LID. */
    uint32_t switches;
    uint32_t leaves;
    /* Number of ports that `hop` contains for each switch. */
    uint32_t width;
    /* Number of LIDs in `egress`. No forwarding table contains larger LIDs. */
    uint32_t lids;
    uint32_t ends;
    uint32_t ports;
    /* [lid][switch], the egress port, or IBP_NO_PORT */
    const uint8_t *egress;
    /* [switch] */
    const uint8_t *has_table;
    /* [switch][width] */
    const struct ibp_hop *hop;
    /* [IBP_LIDS], index of the port that has the LID; IBP_NONE if no port has this LID */
    const int32_t *lid_port;
    /* [port], if the port is port 0 of a switch: the switch; otherwise IBP_NONE */
    const int32_t *port_switch;
    /* [port], the first hop of packets that a CA or router sends from this port */
    const struct ibp_hop *first;
    /* [switches + 1], index in `into_end` of the first link direction that leads to the switch */
    const uint32_t *into;
    /* The link directions from other switches to switch 0, then those to switch 1, and so on. */
    const int32_t *into_end;
    /* [end], the transmitting switch, or IBP_NONE */
    const int32_t *end_switch;
};

/* Transpose tables [row][width] to egress [lid][switch]; `width` is the number of LIDs. row_of[switch]: row of the
 * switch's table, or IBP_NONE. */
void ibp_transpose_tables(const uint8_t *table, size_t width, const int32_t *row_of, size_t switches, uint8_t *egress);

/* Compute the paths between pairs of LIDs. Path i is end[offset[i]] .. end[offset[i + 1] - 1]. A path is empty if
 * packets do not arrive. If `end` is NULL, only `offset` and `reason` are set. offset[count] is the required capacity
 * of `end`. */
int ibp_find_paths(const struct ibp_routes *routes, const int32_t *source_lid, const int32_t *destination_lid,
                   size_t count, uint64_t *offset, int32_t *end, uint8_t *reason);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
