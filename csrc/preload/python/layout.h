/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Offsets, in bytes, of the members of CPython's objects and frames that ibprof reads, for each version of CPython.
 * Since 3.13, CPython has a table of these offsets for tools: `_Py_DebugOffsets`, at the start of `_PyRuntime`.
 */
#ifndef IBPROF_PYTHON_LAYOUT_H
#define IBPROF_PYTHON_LAYOUT_H

#include "python/lines.h"

#include <stdbool.h>
#include <stdint.h>

/* How a frame stores its current instruction. */
enum ibp_python_instruction {
    IBP_INSTRUCTION_BYTES,   /* as an int, the index of its first byte */
    IBP_INSTRUCTION_UNITS,   /* as an int, the index of its unit; a unit has two bytes */
    IBP_INSTRUCTION_POINTER, /* as its address */
};

struct ibp_python_layout {
    enum ibp_line_table line_table;
    enum ibp_python_instruction instruction;
    /* object: `object_type` and `object_count` are its type and the number of its elements. type: `type_basic_size` is
     * the size of its objects */
    uint16_t object_type, object_count, type_basic_size;
    /* thread state: the innermost frame, or a pointer to it */
    uint16_t thread_frame, link_frame;
    bool has_link;
    /* frame. `frame_owner` is 0 if frames have no owner. `frame_tlbc` is 0 if all threads share the bytecode of a code
     * object */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_tlbc;
    /* code object. `code_basic_size` is used to verify the layout. `code_version` is the offset of a number that is
     * unique for each code object; 0 if code objects have no such number */
    uint16_t code_basic_size, code_file, code_name, code_qualified_name, code_lines, code_first_line;
    uint16_t code_bytecode, code_tlbc, code_version;
    /* string. `string_ascii`, `string_other`: characters of ASCII strings and of other strings. `string_width_bit`: the
     * bit of the state where the width of characters begins */
    uint16_t string_length, string_state, string_ascii, string_other, string_width_bit;
    uint16_t bytes_data;
};

/* Set the layout of a version. `version` is PY_VERSION_HEX, `runtime` the address of `_PyRuntime`. Return false for an
 * unknown version. */
bool ibp_python_layout(struct ibp_python_layout *layout, unsigned long version, const void *runtime);

#endif
