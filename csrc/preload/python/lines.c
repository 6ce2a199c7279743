/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "python/lines.h"

#include <stdbool.h>

#define UNIT_BYTES 2 /* bytes of an instruction */
#define NO_LINE (-1)

struct cursor {
    const uint8_t *at, *end;
};

/* Return the next byte; 0 after the end of the table. No entry of a location table begins with 0. */
static uint8_t next_byte(struct cursor *table)
{
    return table->at < table->end ? *table->at++ : 0;
}

static int64_t find_in_lnotab(struct cursor table, int64_t line, int64_t position)
{
    int64_t begin = 0;

    while (table.at < table.end) {
        begin += next_byte(&table);
        if (begin > position) break;
        line += (int8_t)next_byte(&table);
    }
    return line;
}

static int64_t find_in_ranges(struct cursor table, int64_t line, int64_t position)
{
    int64_t end = 0;

    while (table.at < table.end) {
        int8_t difference;
        bool has_line;

        end += next_byte(&table);
        difference = (int8_t)next_byte(&table);
        has_line = difference != INT8_MIN;
        if (has_line) line += difference;
        if (end > position) return has_line ? line : NO_LINE;
    }
    return NO_LINE;
}

/* Read a variable-length number: six bits in each byte, least significant byte first. The lowest bit is the sign. */
static int64_t read_signed(struct cursor *table)
{
    uint64_t number = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = next_byte(table);
        if (shift < 60) number |= (uint64_t)(byte & 63) << shift;
        shift += 6;
    } while (byte & 64);
    return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

static int64_t find_in_locations(struct cursor table, int64_t line, int64_t position)
{
    int64_t end = 0;

    while (table.at < table.end) {
        uint8_t head = next_byte(&table);
        unsigned code = head >> 3 & 15;

        if (code == 13 || code == 14)
            line += read_signed(&table);
        else if (code >= 10 && code <= 12)
            line += code - 10;
        end += ((head & 7) + 1) * UNIT_BYTES;
        if (end > position) return code == 15 ? NO_LINE : line;
        /* Skip the columns. Only the first byte of an entry has the highest bit set. */
        while (table.at < table.end && !(*table.at & 128)) table.at++;
    }
    return NO_LINE;
}

uint32_t ibp_python_line(enum ibp_line_table format, const uint8_t *table, size_t bytes, uint32_t first_line,
                         int64_t position)
{
    const struct cursor cursor = {table, table + bytes};
    int64_t line;

    switch (format) {
    case IBP_LINES_LNOTAB:
        line = find_in_lnotab(cursor, first_line, position);
        break;
    case IBP_LINES_RANGES:
        line = find_in_ranges(cursor, first_line, position);
        break;
    default:
        line = find_in_locations(cursor, first_line, position);
    }
    return position < 0 || line <= 0 || line > UINT32_MAX ? first_line : (uint32_t)line;
}
