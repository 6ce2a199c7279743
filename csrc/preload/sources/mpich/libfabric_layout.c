/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/libfabric_layout.h"
#include "libmpi/library.h"
#include "platform/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The layouts of libfabric's tags. MPI_TAG_UB shows which layout MPI uses. */
static const struct {
    unsigned tag_bits, rank_bits, context_bits, protocol_shift;
    bool of_intel;
} widths[] = {
    {31, 0, 20, 51, false}, /* nearly all providers */
    {20, 0, 20, 40, false}, /* cxi */
    {19, 23, 16, 58, false}, /* providers without remote CQ data */
    {20, 0, 20, 60, true},  /* Intel MPI 2021.18: the rank is above the context */
};

/* The protocol bits of each MPI, before they are shifted left by `protocol_shift`. */
static const struct ibp_fi_protocol_bits of_mpich_5 = {
    .mask = 24, .synchronous = 8, .announced = 16, .announced_packed = 24, .reply = 1, .part = 4};
static const struct ibp_fi_protocol_bits of_mpich_4_3 = {
    .mask = 24, .synchronous = 8, .announced = 24, .announced_packed = 24, .huge = 16, .reply = 1, .part = 32};
static const struct ibp_fi_protocol_bits of_mpich_4 = {.mask = 8, .synchronous = 8};
static const struct ibp_fi_protocol_bits of_intel_mpi = {.mask = 2, .synchronous = 2};

struct ibp_fi_layout ibp_fi_layout = {.tag_bits = 31, .context_shift = 31, .context_bits = 20, .protocol_shift = 51};

static const struct ibp_fi_protocol_bits *find_protocol_bits(bool of_intel)
{
    unsigned major, minor;

    if (of_intel) return &of_intel_mpi;
    if (sscanf(ibp_mpi.version, "MPICH Version: %u.%u", &major, &minor) == 2) {
        if (major >= 5) return &of_mpich_5;
        if (major == 4 && minor >= 3) return &of_mpich_4_3;
    }
    return &of_mpich_4;
}

static void find_widths(bool of_intel)
{
    const unsigned largest_tag = ibp_mpi_largest_tag();

    for (size_t i = 0; largest_tag && i < sizeof widths / sizeof *widths; i++) {
        if (widths[i].of_intel != of_intel || largest_tag >> widths[i].tag_bits) continue;
        ibp_fi_layout.tag_bits = widths[i].tag_bits;
        ibp_fi_layout.context_shift = widths[i].tag_bits + widths[i].rank_bits;
        ibp_fi_layout.context_bits = widths[i].context_bits;
        ibp_fi_layout.protocol_shift = widths[i].protocol_shift;
    }
    ibp_log(3, "the largest tag is %u: the tag has %u of the match bits", largest_tag, ibp_fi_layout.tag_bits);
}

void ibp_fi_find_layout(void)
{
    const bool of_intel = strstr(ibp_mpi.version, "Intel");
    struct ibp_fi_protocol_bits *protocol = &ibp_fi_layout.protocol;

    find_widths(of_intel);
    *protocol = *find_protocol_bits(of_intel);
    protocol->mask <<= ibp_fi_layout.protocol_shift;
    protocol->synchronous <<= ibp_fi_layout.protocol_shift;
    protocol->announced <<= ibp_fi_layout.protocol_shift;
    protocol->announced_packed <<= ibp_fi_layout.protocol_shift;
    protocol->huge <<= ibp_fi_layout.protocol_shift;
    protocol->reply <<= ibp_fi_layout.protocol_shift;
    protocol->part <<= ibp_fi_layout.protocol_shift;
}
