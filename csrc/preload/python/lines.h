/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The source line of an instruction, from the line table of its code object.
 */
#ifndef IBPROF_PYTHON_LINES_H
#define IBPROF_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Formats of line tables. Sources: Objects/lnotab_notes.txt of CPython 3.9 and 3.10, Objects/locations.md of 3.11. */
enum ibp_line_table {
    IBP_LINES_LNOTAB,    /* 3.9: differences of line numbers */
    IBP_LINES_RANGES,    /* 3.10: a line for each range */
    IBP_LINES_LOCATIONS, /* 3.11 and newer: lines and columns for each range */
};

/* Return the line of the instruction at byte `position` of the bytecode; `first_line` if the table lacks the line. */
uint32_t ibp_python_line(enum ibp_line_table format, const uint8_t *table, size_t bytes, uint32_t first_line,
                         int64_t position);

#endif
