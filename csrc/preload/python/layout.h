/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Offsets in bytes of the members of CPython's objects and frames that ibprof reads, for each version. From 3.13 on the
 * interpreter has a table of its offsets for tools (`_Py_DebugOffsets`, the start of `_PyRuntime`).
 */
#ifndef IBPROF_PYTHON_LAYOUT_H
#define IBPROF_PYTHON_LAYOUT_H

#include "python/lines.h"

#include <stdbool.h>
#include <stdint.h>

/* A frame's form of the current instruction. */
enum ibp_python_instruction {
    IBP_INSTRUCTION_BYTES,   /* the number of its first byte, an int */
    IBP_INSTRUCTION_UNITS,   /* the number of its unit, an int; each unit has two bytes */
    IBP_INSTRUCTION_POINTER, /* the address of the instruction */
};

struct ibp_python_layout {
    enum ibp_line_table line_table;
    enum ibp_python_instruction instruction;
    /* object: its type; the number of its elements; for a type, the size of its objects */
    uint16_t object_type, object_count, type_basic_size;
    /* state of a thread: its innermost frame, or a pointer to that frame */
    uint16_t thread_frame, link_frame;
    bool has_link;
    /* frame. The owner's offset is 0 where frames have no owner. `tlbc` is 0 where all threads share a code object's
     * bytecode */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_tlbc;
    /* code object. `basic_size` verifies the build. `version` is a number that only one code object has, or 0 */
    uint16_t code_basic_size, code_file, code_name, code_qualified_name, code_lines, code_first_line;
    uint16_t code_bytecode, code_tlbc, code_version;
    /* string: characters of ASCII strings, of other strings, and the bit of the state at which their width begins */
    uint16_t string_length, string_state, string_ascii, string_other, string_width_bit;
    uint16_t bytes_data;
};

/* Set the layout of a version in the format of PY_VERSION_HEX. `runtime` is `_PyRuntime`. Return false for an unknown
 * version. */
bool ibp_python_layout(struct ibp_python_layout *layout, unsigned long version, const void *runtime);

#endif
