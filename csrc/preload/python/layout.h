/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * For each version of CPython: the offset in bytes of each member that ibprof reads from objects and frames. Since
 * 3.13, CPython has a table of these offsets for tools: `_Py_DebugOffsets`, at the start of `_PyRuntime`.
 */
#ifndef IBPROF_PYTHON_LAYOUT_H
#define IBPROF_PYTHON_LAYOUT_H

#include "python/lines.h"

#include <stdbool.h>
#include <stdint.h>

/* How a frame stores its current instruction. */
enum ibp_python_instruction {
    IBP_INSTRUCTION_BYTES,   /* an int: index of the instruction's first byte */
    IBP_INSTRUCTION_UNITS,   /* an int: index of the instruction in units of two bytes */
    IBP_INSTRUCTION_POINTER, /* address of the instruction */
};

struct ibp_python_layout {
    enum ibp_line_table line_table;
    enum ibp_python_instruction instruction;
    /* In any object: its type, and the number of its elements. In a type: the size of the type's objects. */
    uint16_t object_type, object_count, type_basic_size;
    /* Thread state: the innermost frame, or, if `has_link`, a link to this frame. */
    uint16_t thread_frame, link_frame;
    bool has_link;
    /* Frame. `frame_owner` is 0 if frames have no owner. `frame_tlbc` is 0 if all threads share the bytecode of a code
     * object. */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_tlbc;
    /* Code object. `code_basic_size` serves to verify the layout. `code_version` is the offset of a unique number of
     * the code object; 0 if code objects have no unique number. */
    uint16_t code_basic_size, code_file, code_name, code_qualified_name, code_lines, code_first_line;
    uint16_t code_bytecode, code_tlbc, code_version;
    /* String. `string_ascii`, `string_other`: characters of ASCII strings and of non-ASCII strings. `string_width_bit`:
     * in a string's state, the index of the lowest bit of the character width. */
    uint16_t string_length, string_state, string_ascii, string_other, string_width_bit;
    uint16_t bytes_data;
};

/* Set the layout of a version. `version` is PY_VERSION_HEX, and `runtime` is the address of `_PyRuntime`. Return false
 * for an unknown version. */
bool ibp_python_layout(struct ibp_python_layout *layout, unsigned long version, const void *runtime);

#endif
