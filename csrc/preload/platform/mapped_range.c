/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/cancellation.h"
#include "platform/mapped_range.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A partly parsed line of /proc/self/maps: "begin-end rwxp ...", with hexadecimal numbers. */
struct line {
    struct ibp_mapped_range range;
    enum { IN_BEGIN, IN_END, IN_ACCESS, IN_REST } part;
    bool is_readable;
};

static unsigned digit_of(char character)
{
    return (unsigned)(character <= '9' ? character - '0' : (character | 0x20) - 'a' + 10);
}

/* Parse the next character of a line. Return true at the end of the line. */
static bool read_character(struct line *line, char character)
{
    switch (line->part) {
    case IN_BEGIN:
        if (character == '-')
            line->part = IN_END;
        else
            line->range.begin = line->range.begin << 4 | digit_of(character);
        break;
    case IN_END:
        if (character == ' ')
            line->part = IN_ACCESS;
        else
            line->range.end = line->range.end << 4 | digit_of(character);
        break;
    case IN_ACCESS:
        line->is_readable = character == 'r';
        line->part = IN_REST;
        break;
    case IN_REST:
        break;
    }
    return character == '\n';
}

static bool search(int file, uintptr_t address, struct ibp_mapped_range *range)
{
    char text[512]; /* short, because threads may have small stacks */
    struct line line = {.part = IN_BEGIN};

    for (ssize_t length; (length = read(file, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < length; i++) {
            if (!read_character(&line, text[i])) continue;
            if (address - line.range.begin < line.range.end - line.range.begin) {
                *range = line.range;
                return line.is_readable;
            }
            line = (struct line){.part = IN_BEGIN};
        }
    }
    return false;
}

bool ibp_mapped_range_find(uintptr_t address, struct ibp_mapped_range *range)
{
    const int error = errno; /* errno of the program, restored at the end */
    const int held = ibp_cancellation_hold();
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const bool is_found = file >= 0 && search(file, address, range);

    if (file >= 0) close(file);
    ibp_cancellation_allow(held);
    errno = error;
    return is_found;
}
