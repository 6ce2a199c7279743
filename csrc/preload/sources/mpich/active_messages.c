/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/active_messages.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/messages.h"

#include <string.h>

/* MPIDI_OFI_am_header_t of MPICH 4.3 and 5.0. */
struct header {
    uint8_t handler;
    uint8_t type;
    uint8_t next_header_bytes;
    uint8_t data_bytes[3];
    uint8_t channels[2];
    uint16_t number;
    uint64_t sender;
};

/* MPIDIG_hdr_t: the second header of active messages that contain or announce a message of the program. */
struct program_header {
    int32_t sender;
    uint32_t tag;
    /* `context_above`: in some builds of MPICH, the upper half of the context; in other builds, padding. */
    uint16_t context, context_above;
    int32_t errors, flags;
    uint64_t request;
    uint64_t data_bytes;
    uint64_t more_header_bytes;
};

_Static_assert(sizeof(struct header) == 24, "as in MPICH");
_Static_assert(sizeof(struct program_header) == 48, "as in MPICH");

enum { HANDLER_SEND = 0, HANDLER_SEND_DATA = 2 };

/* Return how many bytes of the program's data an active message contains. */
static size_t find_carried(const struct header *header)
{
    if (header->handler != HANDLER_SEND && header->handler != HANDLER_SEND_DATA) return 0;
    return header->data_bytes[0] | (size_t)header->data_bytes[1] << 8 | (size_t)header->data_bytes[2] << 16;
}

static void count_program_message(const void *header, uint32_t peer)
{
    struct program_header program;

    memcpy(&program, header, sizeof program);
    ibp_mpich_count((struct ibp_mpich_envelope){.context = program.context, .tag = program.tag}, peer,
                    program.data_bytes);
}

void ibp_fi_count_active(const void *buffer, size_t bytes, uint32_t peer)
{
    struct header header;
    size_t carried;

    if (!ibp_fi_announces() || !buffer || bytes < sizeof header) {
        ibp_mpich_count_active_message(peer, bytes);
        return;
    }
    memcpy(&header, buffer, sizeof header);
    carried = find_carried(&header);
    if (header.handler == HANDLER_SEND && header.next_header_bytes == sizeof(struct program_header) &&
        bytes >= sizeof header + sizeof(struct program_header))
        count_program_message((const char *)buffer + sizeof header, peer);
    if (carried <= bytes) ibp_mpich_count_own(peer, bytes - carried);
}
