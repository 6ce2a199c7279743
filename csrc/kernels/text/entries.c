/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "digits.h"
#include "ibprof_kernels/text.h"

#include <stdbool.h>
#include <string.h>

enum { LAST_UNICAST_LID = 0xbfff, LONGEST_READ = 20 };

uint64_t ibp_count_line_breaks(const uint8_t *text, uint64_t size)
{
    uint64_t count = 0;
    while (size) {
        /* The number of line breaks in 255 bytes fits into one byte, so compilers can vectorise the loop. */
        uint64_t part = size < 255 ? size : 255;
        uint8_t here = 0;
        for (uint64_t i = 0; i < part; i++) here = (uint8_t)(here + (text[i] == '\n'));
        count += here;
        text += part;
        size -= part;
    }
    return count;
}

/* Read three decimal digits that are followed by a blank or the end of the line. Return -1 for any other text. */
static int read_port(const uint8_t *at)
{
    unsigned a = digit_value[at[0]] - 1u, b = digit_value[at[1]] - 1u, c = digit_value[at[2]] - 1u;
    if (a > 9 || b > 9 || c > 9 || (at[3] != ' ' && at[3] != '\n')) return -1;
    return (int)(a * 100 + b * 10 + c);
}

/* Read an entry. LONGEST_READ bytes from the start of the line must be readable. An entry contains no line break. */
static bool read_entry(const uint8_t *line, enum ibp_entry_form form, uint16_t *lid, uint8_t *port)
{
    unsigned number = 0;
    for (int i = 2; i < 6; i++) {
        if (!digit_value[line[i]]) return false;
        number = number << 4 | (digit_value[line[i]] - 1u);
    }
    if (number > LAST_UNICAST_LID) return false;
    *lid = (uint16_t)number;
    if (form == IBP_ENTRY_LFT) {
        int given = line[6] == ' ' ? read_port(line + 7) : -1;
        *port = (uint8_t)given;
        return given >= 0 && given <= IBP_NO_PORT;
    }
    if (memcmp(line + 6, " : ", 3)) return false;
    int given = read_port(line + 9);
    if (given >= 0 && given < IBP_NO_PORT) {
        *port = (uint8_t)given;
        return true;
    }
    *port = IBP_NO_PORT;
    return !memcmp(line + 9, "UNREACHABLE", 11);
}

void ibp_read_entries(const uint8_t *text, uint64_t size, enum ibp_entry_form form, struct ibp_entries *entries)
{
    entries->count = entries->others = 0;
    uint8_t last[LONGEST_READ];
    for (uint64_t begin = 0, end; begin <= size; begin = end + 1) {
        const uint8_t *line = text + begin;
        const uint8_t *stop = begin < size ? memchr(line, '\n', size - begin) : NULL;
        end = stop ? (uint64_t)(stop - text) : size;
        bool is_entry = end - begin >= 2 && line[0] == '0' && line[1] == 'x';
        if (is_entry && size - begin < LONGEST_READ) {
            memset(last, '\n', sizeof last);
            memcpy(last, line, size - begin);
            line = last;
        }
        uint64_t entry = entries->count;
        if (is_entry && read_entry(line, form, &entries->lid[entry], &entries->port[entry]))
            entries->count++;
        else
            entries->other[entries->others++] = (struct ibp_other_line){begin, end, entry};
    }
}

int64_t ibp_fill_tables(const struct ibp_entries *entries, const uint64_t *begin, const int32_t *row, uint64_t stanzas,
                        uint8_t *table, uint64_t width)
{
    int64_t first = -1;

    for (uint64_t i = 0; i < stanzas; i++)
        for (uint64_t k = begin[i]; row[i] != IBP_NONE && k < begin[i + 1]; k++)
            table[(uint64_t)row[i] * width + entries->lid[k]] = entries->port[k];
    for (uint64_t i = 0; i < stanzas; i++)
        for (uint64_t k = begin[i]; row[i] != IBP_NONE && k < begin[i + 1]; k++) {
            uint8_t *cell = &table[(uint64_t)row[i] * width + entries->lid[k]];
            if (*cell == entries->port[k]) continue;
            /* The entries of this LID contradict each other. Use no port, because a choice would be arbitrary. */
            *cell = IBP_NO_PORT;
            if (first < 0) first = (int64_t)k;
        }
    return first;
}
