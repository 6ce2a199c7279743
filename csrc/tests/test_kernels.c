/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The kernels on memory that ends with the data, so that the sanitizers detect every access beyond the data.
 */
#include "check.h"
#include "ibprof_kernels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char dump[] = "dump_ucast_routes: Switch 0x10\n"
                           "0x0001 : 001  : 00   : yes\n"
                           "0x0002 : UNREACHABLE\n"
                           "0x0003 : 254\n"
                           "0xBFFF : 000  : HOPS UNKNOWN";

/* Cut a dump after each of its bytes, and read the beginning. */
static void test_cut_dumps(void)
{
    for (size_t size = 0; size < sizeof dump; size++) {
        uint8_t *text = malloc(size ? size : 1);
        memcpy(text, dump, size);
        size_t lines = (size_t)ibp_count_line_breaks(text, size) + 1;
        struct ibp_entries entries = {.lid = malloc(lines * sizeof *entries.lid),
                                      .port = malloc(lines),
                                      .other = malloc(lines * sizeof *entries.other)};
        for (int form = IBP_ENTRY_FDBS; form <= IBP_ENTRY_LFT; form++) {
            ibp_read_entries(text, size, (enum ibp_entry_form)form, &entries);
            CHECK(entries.count + entries.others == lines);
        }
        free(text);
        free(entries.lid);
        free(entries.port);
        free(entries.other);
    }
}

static void test_whole_dump(void)
{
    uint16_t lid[8];
    uint8_t port[8];
    struct ibp_other_line other[8];
    struct ibp_entries entries = {.lid = lid, .port = port, .other = other};
    ibp_read_entries((const uint8_t *)dump, sizeof dump - 1, IBP_ENTRY_FDBS, &entries);
    CHECK(entries.count == 4 && entries.others == 1);
    CHECK(lid[0] == 1 && port[0] == 1);
    CHECK(lid[1] == 2 && port[1] == 255);
    CHECK(lid[2] == 3 && port[2] == 254);
    CHECK(lid[3] == 0xbfff && port[3] == 0);
}

static const char link[] =
    "{ CA Ports:01 SystemGUID:0002c90300000013 NodeGUID:0002c90300000010 "
    "PortGUID:0002c90300000011 VenID:0002C9 DevID:1003 Rev:000000A1 {a} LID: b} LID:000B PN:01 } "
    "{ SW Ports:24 SystemGUID:0002c90200000020 NodeGUID:0002c90200000020 "
    "PortGUID:0002c90200000020 VenID:0002C9 DevID:BD36 Rev:000000A1 {} LID:0010 PN:16 } "
    "PHY=4x LOG=ACT SPD=10 GBPS=1.5";

/* Cut a line of a `.lst` after each of its bytes, and read the beginning. If the line is cut before the speed, the
 * reader reports the first missing field. */
static void test_cut_links(void)
{
    const size_t speed = sizeof link - sizeof " GBPS=1.5";

    for (size_t size = 1; size < sizeof link; size++) {
        uint64_t system_guid[2], node_guid[2], port_guid[2], number[1], packed[1];
        int32_t name[2];
        uint16_t lid[2];
        uint8_t kind[2], ports[2], port[2], lanes[1], active[1];
        double gbps[1];
        struct ibp_span names[2];
        uint32_t slot[4] = {0};
        struct ibp_lst lst = {.system_guid = system_guid,
                              .node_guid = node_guid,
                              .port_guid = port_guid,
                              .name = name,
                              .lid = lid,
                              .kind = kind,
                              .ports = ports,
                              .port = port,
                              .line = number,
                              .speed = packed,
                              .gbps = gbps,
                              .lanes = lanes,
                              .active = active,
                              .names = names,
                              .slot = slot,
                              .slots = 4};
        uint8_t *text = malloc(size);
        memcpy(text, link, size);
        int is_invalid = ibp_read_lst(text, size, &lst);
        /* Complete lines end in `SPD=1`, `SPD=10`, `SPD=10` and a blank, `GBPS=1` or `GBPS=1.5`. */
        bool is_whole = size + 1 >= speed && (size <= speed + 1 || size == speed + 7 || size == speed + 9);
        CHECK(is_invalid == !is_whole);
        CHECK(lst.links == !is_invalid && lst.lines == 1);
        CHECK(!is_invalid || (lst.end == size && lst.mismatch <= size && lst.expected));
        free(text);
        if (size < sizeof link - 1) continue;
        CHECK(kind[0] == IBP_NODE_CA && kind[1] == IBP_NODE_SWITCH && lid[0] == 0xb && port[1] == 0x16);
        CHECK(names[0].end - names[0].begin == 9 && names[1].end == names[1].begin && gbps[0] == 1.5);
    }
}

/* A LID that a table maps to two ports gets no port, whatever the order of the two entries. Other rows stay
 * unchanged. */
static void test_contradicting_entries(void)
{
    uint16_t lid[] = {1, 2, 2, 1, 1, 2};
    uint8_t port[] = {7, 8, 9, 7, 3, 8};
    const uint64_t begin[] = {0, 4, 6};
    const int32_t row[] = {0, 1};
    const struct ibp_entries entries = {.lid = lid, .port = port, .count = 6};
    uint8_t table[2][3];

    memset(table, IBP_NO_PORT, sizeof table);
    CHECK(ibp_fill_tables(&entries, begin, row, 2, &table[0][0], 3) == 1);
    CHECK(table[0][1] == 7 && table[0][2] == IBP_NO_PORT);
    CHECK(table[1][1] == 3 && table[1][2] == 8);
}

/* Two switches with two hosts each (ports 1 and 2), and a link (port 3) that joins the switches. Hosts have the LIDs 1
 * to 4, switches 5 and 6. Link directions 2 * i and 2 * i + 1 are from and to host i; 8 and 9 join the switches. */
enum { LIDS = 7, ENDS = 10, PORTS = 6, WIDTH = 4 };

static struct ibp_routes two_switches(int32_t *lid_port, uint8_t *egress)
{
    static const uint8_t has_table[2] = {1, 1};
    static const struct ibp_hop hop[2 * WIDTH] = {{-1, -1}, {1, 2 + 0}, {3, 2 + 1}, {8, 1},
                                                  {-1, -1}, {5, 2 + 2}, {7, 2 + 3}, {9, 0}};
    static const int32_t port_switch[PORTS] = {-1, -1, -1, -1, 0, 1};
    static const struct ibp_hop first[PORTS] = {{0, 0}, {2, 0}, {4, 1}, {6, 1}, {-1, -1}, {-1, -1}};
    static const uint32_t into[3] = {0, 1, 2};
    static const int32_t into_end[2] = {9, 8};
    static const int32_t end_switch[ENDS] = {-1, 0, -1, 0, -1, 1, -1, 1, 0, 1};
    static const uint8_t table[2][LIDS] = {{255, 1, 2, 3, 3, 0, 3}, {255, 3, 3, 1, 2, 3, 0}};
    static const int32_t row_of[2] = {0, 1};
    for (int lid = 0; lid < 1 << 16; lid++) lid_port[lid] = lid >= 1 && lid <= PORTS ? lid - 1 : IBP_NONE;
    ibp_transpose_tables(&table[0][0], LIDS, row_of, 2, egress);
    return (struct ibp_routes){.switches = 2,
                               .leaves = 2,
                               .width = WIDTH,
                               .lids = LIDS,
                               .ends = ENDS,
                               .ports = PORTS,
                               .egress = egress,
                               .has_table = has_table,
                               .hop = hop,
                               .lid_port = lid_port,
                               .port_switch = port_switch,
                               .first = first,
                               .into = into,
                               .into_end = into_end,
                               .end_switch = end_switch};
}

/* Each host sends one byte to each host, including itself. This traffic is spread three times: as a matrix, as a matrix
 * with in-trees of `ibp_trees_new`, and as flows. */
static void test_all_to_all(void)
{
    static const uint64_t expected[ENDS] = {3, 3, 3, 3, 3, 3, 3, 3, 4, 4};
    int32_t *lid_port = malloc((1 << 16) * sizeof *lid_port);
    uint8_t *egress = malloc(LIDS * 2);
    struct ibp_routes routes = two_switches(lid_port, egress);
    static const int32_t lid[4] = {1, 2, 3, 4};
    uint64_t bytes[16], ended[IBP_REASONS], routed;
    int32_t source[16], destination[16];
    for (int i = 0; i < 16; i++) {
        bytes[i] = 1;
        source[i] = lid[i / 4];
        destination[i] = lid[i % 4];
    }
    struct ibp_trees *trees = ibp_trees_new(&routes, 1 << 20, 2);
    struct ibp_matrix matrix = {4, 4, lid, lid, bytes, 4, 1};
    for (int with = 0; with < 2; with++) {
        uint64_t load[ENDS] = {0};
        CHECK(!ibp_spread_matrix(&routes, with ? trees : NULL, &matrix, 2, load, ended));
        CHECK(!memcmp(load, expected, sizeof load));
        CHECK(ended[IBP_DELIVERED] == 12 && ended[IBP_SAME_PORT] == 4);
    }
    ibp_trees_free(trees);
    uint64_t load[ENDS] = {0};
    struct ibp_flows flows = {16, source, destination, bytes, NULL, 1};
    CHECK(!ibp_spread_flows(&routes, &flows, 2, load, &routed, ended, NULL));
    CHECK(!memcmp(load, expected, sizeof load));
    CHECK(routed == 12 && ended[IBP_SAME_PORT] == 4);
    free(lid_port);
    free(egress);
}

/* Compute trees for many numbers of hosts, each in separate memory. */
static void test_trees(void)
{
    for (uint32_t leaves = 2; leaves < 150; leaves += leaves < 12 ? 1 : 23) {
        size_t nodes = leaves - 1, cells = (size_t)leaves * leaves;
        float *distance = malloc(cells * sizeof *distance), *detour = malloc(cells * sizeof *detour);
        double *additive = malloc(cells * sizeof *additive);
        for (uint32_t a = 0; a < leaves; a++) {
            for (uint32_t b = 0; b < leaves; b++) {
                distance[a * leaves + b] = a == b ? 0.0f : 1.0f + (float)((a * b + a + b) % 7);
                additive[a * leaves + b] = (double)distance[a * leaves + b];
            }
        }
        ibp_find_detours(distance, leaves, detour);
        if (leaves > 2) CHECK(detour[1] >= 2.0f && detour[1] <= 14.0f);
        int32_t *child = malloc(2 * nodes * sizeof *child), *into = malloc(nodes * sizeof *into);
        double *height = malloc(nodes * sizeof *height), *weight = malloc(nodes * sizeof *weight), lost;
        double *heights = malloc(nodes * sizeof *heights), *weights = malloc(nodes * sizeof *weights);
        uint32_t *size = malloc(nodes * sizeof *size);
        CHECK(ibp_join_neighbours(additive, leaves, child) == 0);
        for (size_t k = 0; k < 2 * nodes; k++) CHECK(child[k] < (int32_t)(leaves + k / 2));
        CHECK(ibp_average_linkage(distance, leaves, child, height, size) == 0);
        CHECK(size[nodes - 1] == leaves);
        for (size_t k = 0; k < nodes; k++) weight[k] = 1;
        struct ibp_binary_tree tree = {.leaves = leaves, .child = child, .weight = weight, .height = height};
        CHECK(ibp_prune_tree(&tree, 1.0, 1.0, into, weights, heights, &lost) == 0);
        CHECK(into[nodes - 1] == (int32_t)(leaves + nodes - 1));
        for (size_t k = 0; k < nodes; k++) CHECK(into[k] >= (int32_t)(leaves + k));
        free(distance), free(detour), free(additive), free(child), free(into), free(height), free(weight);
        free(heights), free(weights), free(size);
    }
}

int main(void)
{
    test_trees();
    test_cut_dumps();
    test_whole_dump();
    test_cut_links();
    test_contradicting_entries();
    test_all_to_all();
    return 0;
}
