/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Tables as text: write pairs of names as CSV; read lists of links and dumps of forwarding tables.
 */
#ifndef IBPROF_KERNELS_TEXT_H
#define IBPROF_KERNELS_TEXT_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Digits of a number of 64 bits. */
#define IBP_CSV_DIGITS 20

/* Write rows `source,destination,bytes,messages`. `source` and `destination` number names; name i is the text from
 * name_begin[i] to name_begin[i + 1], already quoted where CSV needs it. A row takes at most the bytes of its two
 * names, two numbers of IBP_CSV_DIGITS, and 4. Returns the number of bytes written. */
size_t ibp_csv_pairs(const char *names, const uint64_t *name_begin, const int64_t *source, const int64_t *destination,
                     const uint64_t *bytes, const uint64_t *messages, size_t count, char *text);

/* The form of a line that maps a LID to a port: the text behind `0x` and four hexadecimal digits. */
enum ibp_entry_form {
    /* ` : 001` before a blank or the line's end, or ` : UNREACHABLE`; ports below IBP_NO_PORT */
    IBP_ENTRY_FDBS = 0,
    /* ` 001` before a blank or the line's end; ports up to IBP_NO_PORT */
    IBP_ENTRY_LFT = 1
};

/* A line that is not a valid entry. */
struct ibp_other_line {
    /* Bytes in the text, without the line break. */
    uint64_t begin, end;
    /* The number of entries before this line. */
    uint64_t entries;
};

struct ibp_entries {
    /* [entry] */
    uint16_t *lid;
    /* [entry], or IBP_NO_PORT */
    uint8_t *port;
    struct ibp_other_line *other;
    uint64_t count, others;
};

/* Return the number of line breaks in a text: one less than its lines. */
uint64_t ibp_count_line_breaks(const uint8_t *text, uint64_t size);

/* Split a text into entries, which begin with `0x`, and other lines, which include invalid entries. The arrays have
 * capacity for every line. */
void ibp_read_entries(const uint8_t *text, uint64_t size, enum ibp_entry_form form, struct ibp_entries *entries);

/* Write entries into tables. Entries begin[i] to begin[i + 1] belong to row[i], or to no row (IBP_NONE). Contradicting
 * entries become IBP_NO_PORT. Returns the index of the first contradicted entry, or -1. */
int64_t ibp_fill_tables(const struct ibp_entries *entries, const uint64_t *begin, const int32_t *row, uint64_t stanzas,
                        uint8_t *table, uint64_t width);

enum ibp_node_kind {
    IBP_NODE_CA = 0,
    IBP_NODE_SWITCH = 1,
    IBP_NODE_ROUTER = 2,
};

/* A part of a text: offsets in bytes. */
struct ibp_span {
    uint64_t begin, end;
};

/* Minimum bytes of a `.lst` line: a text of n bytes has at most n / IBP_LST_LINE links. */
#define IBP_LST_LINE 256

/* The links of a `.lst`, and the progress of reading them. */
struct ibp_lst {
    /* [link, 2]; `kind` is an ibp_node_kind, a LID is 0 where the line has none, `name` is an index into `names` */
    uint64_t *system_guid, *node_guid, *port_guid;
    int32_t *name;
    uint16_t *lid;
    uint8_t *kind, *ports, *port;
    /* [link]; `speed` is 8 characters, `gbps` a measured rate or NaN */
    uint64_t *line, *speed;
    double *gbps;
    uint8_t *lanes, *active;
    /* [2 * link], each name once */
    struct ibp_span *names;
    /* [slots], a hash table of names, zeros at first. `slots` is a power of two above the number of names. */
    uint32_t *slot;
    uint64_t slots;
    /* Numbers of read bytes and lines, and of stored links and names; 0 at first. */
    uint64_t at, lines, links, name_count;
    /* An invalid line without its line break, the first byte of its first invalid field, and the expected content. */
    uint64_t begin, end, mismatch;
    const char *expected;
};

/* Read the links of a `.lst` up to the next invalid line, and skip blank lines and lines that begin with `#`. Returns 1
 * for an invalid line; another call continues behind it. Returns 0 at the end of the text. */
int ibp_read_lst(const uint8_t *text, uint64_t size, struct ibp_lst *lst);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
