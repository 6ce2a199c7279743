/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Write pairs of names as CSV. Read lists of links, and dumps of forwarding tables.
 */
#ifndef IBPROF_KERNELS_TEXT_H
#define IBPROF_KERNELS_TEXT_H

#include "ibprof_kernels/routes.h"

#pragma GCC visibility push(default)

/* -- cffi begins -- */

/* Maximum number of digits of a 64-bit number. */
#define IBP_CSV_DIGITS 20

/* Write rows `source,destination,bytes,messages`. `source` and `destination` are indices of names. Name i is the text
 * from name_begin[i] to name_begin[i + 1], already quoted if CSV requires it. The longest row contains two names, two
 * numbers of IBP_CSV_DIGITS digits, and 4 separators. Return the number of written bytes. */
size_t ibp_csv_pairs(const char *names, const uint64_t *name_begin, const int64_t *source, const int64_t *destination,
                     const uint64_t *bytes, const uint64_t *messages, size_t count, char *text);

/* Forms of a line that maps a LID to a port. A line begins with `0x` and four hexadecimal digits, the LID. The form is
 * the text after these digits. */
enum ibp_entry_form {
    /* ` : 001`, then a blank or the end of the line; or ` : UNREACHABLE`. Ports are below IBP_NO_PORT */
    IBP_ENTRY_FDBS = 0,
    /* ` 001`, then a blank or the end of the line. Ports are at most IBP_NO_PORT */
    IBP_ENTRY_LFT = 1
};

/* A line that is not a valid entry. */
struct ibp_other_line {
    /* Where the line begins and ends in the text, without the line break. */
    uint64_t begin, end;
    /* Number of entries before this line. */
    uint64_t entries;
};

struct ibp_entries {
    /* [entry] */
    uint16_t *lid;
    /* [entry], the port, or IBP_NO_PORT */
    uint8_t *port;
    struct ibp_other_line *other;
    uint64_t count, others;
};

uint64_t ibp_count_line_breaks(const uint8_t *text, uint64_t size);

/* Split a text into valid entries, which begin with `0x`, and other lines. Each array has capacity for all lines. */
void ibp_read_entries(const uint8_t *text, uint64_t size, enum ibp_entry_form form, struct ibp_entries *entries);

/* Write entries into tables. Entries from begin[i] to begin[i + 1] - 1 belong to table row[i], or to no table if row[i]
 * is IBP_NONE. If entries of a LID contradict each other, the port becomes IBP_NO_PORT. Return the index of the first
 * such entry; -1 if no entries contradict each other. */
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

/* Minimum number of bytes of a line in a `.lst` file: n bytes contain at most n / IBP_LST_LINE links. */
#define IBP_LST_LINE 256

/* The links of a `.lst` file, and how much of the file was read. */
struct ibp_lst {
    /* [link][2], an element for each end of a link. `kind`: an ibp_node_kind. `lid`: 0 if the line has no LID. `name`:
     * an index into `names` */
    uint64_t *system_guid, *node_guid, *port_guid;
    int32_t *name;
    uint16_t *lid;
    uint8_t *kind, *ports, *port;
    /* [link]. `speed`: 8 characters. `gbps`: a measured rate, or NaN */
    uint64_t *line, *speed;
    double *gbps;
    uint8_t *lanes, *active;
    /* [2 * link], the names without duplicates */
    struct ibp_span *names;
    /* [slots], a hash table of names, all 0 at first. `slots` is a power of two, larger than the number of names. */
    uint32_t *slot;
    uint64_t slots;
    /* Numbers of bytes read, lines read, links stored and names stored; 0 at first. */
    uint64_t at, lines, links, name_count;
    /* The last invalid line. `begin`, `end`: the line without its line break. `mismatch`: the first byte of the line's
     * first invalid field. `expected`: the content that this field must have. */
    uint64_t begin, end, mismatch;
    const char *expected;
};

/* Read the links of a `.lst` file up to the next invalid line. Blank lines and lines that begin with `#` are skipped.
 * Return 1 for an invalid line; the next call continues after this line. Return 0 at the end of the text. */
int ibp_read_lst(const uint8_t *text, uint64_t size, struct ibp_lst *lst);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
