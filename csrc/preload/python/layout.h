/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Where CPython's objects and frames keep what ibprof reads: offsets in bytes, for each version. From 3.13 on the
 * interpreter has a table of its offsets for tools (`_Py_DebugOffsets`, the start of `_PyRuntime`).
 */
#ifndef IBPROF_PYTHON_LAYOUT_H
#define IBPROF_PYTHON_LAYOUT_H

#include "python/lines.h"

#include <stdbool.h>
#include <stdint.h>

/* How a frame says which instruction it executes. */
enum ibp_python_instruction {
    IBP_INSTRUCTION_BYTES,   /* the number of its first byte, an int */
    IBP_INSTRUCTION_UNITS,   /* its number, an int; each has two bytes */
    IBP_INSTRUCTION_POINTER, /* its address */
};

struct ibp_python_layout {
    enum ibp_line_table line_table;
    enum ibp_python_instruction instruction;
    /* object: its type; the number of its elements; a type's size of its objects */
    uint16_t object_type, object_count, type_basic_size;
    /* state of a thread: its innermost frame, or what points to that */
    uint16_t thread_frame, link_frame;
    bool has_link;
    /* frame. The owner is 0 where frames have none, `tlbc` where a code object has one bytecode for all threads */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_tlbc;
    /* code object. `basic_size` verifies the build. `version` is a number given to one code object only, or 0 */
    uint16_t code_basic_size, code_file, code_name, code_qualified_name, code_lines, code_first_line;
    uint16_t code_bytecode, code_tlbc, code_version;
    /* string: characters of ASCII strings, of others, and the bit of the state where their width begins */
    uint16_t string_length, string_state, string_ascii, string_other, string_width_bit;
    uint16_t bytes_data;
};

/* Fill in the layout of a version, as in PY_VERSION_HEX. `runtime` is `_PyRuntime`. Return false for an unknown one. */
bool ibp_python_layout(struct ibp_python_layout *layout, unsigned long version, const void *runtime);

#endif
