/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/layout.h"
#include "platform/guarded_read.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MINOR(version) ((version) >> 16)
#define IS_STABLE(version) (((version) >> 4 & 0xf) >= 0xc) /* a release, or a release candidate */

/* -- offsets up to 3.12, from the headers of each version ---------------------------------------------------------- */

#define OBJECTS .object_type = 8, .object_count = 16, .type_basic_size = 32, .bytes_data = 32
#define STRINGS .string_length = 16, .string_state = 32, .string_width_bit = 2
#define STRINGS_BEFORE_3_12 STRINGS, .string_ascii = 48, .string_other = 72

/* PyFrameObject and PyCodeObject of Include/cpython/frameobject.h and code.h */
#define FRAME_OBJECTS                                                                                                  \
    OBJECTS, STRINGS_BEFORE_3_12, .thread_frame = 24, .frame_code = 32, .frame_previous = 24, .code_basic_size = 176,  \
        .code_file = 104, .code_name = 112, .code_qualified_name = 112, .code_lines = 120, .code_first_line = 40

/* _PyInterpreterFrame of Include/internal/pycore_frame.h */
#define INTERPRETER_FRAMES                                                                                             \
    OBJECTS, .instruction = IBP_INSTRUCTION_POINTER, .line_table = IBP_LINES_LOCATIONS, .has_link = true,              \
        .thread_frame = 56, .frame_instruction = 56, .code_file = 112, .code_name = 120, .code_qualified_name = 128,   \
        .code_lines = 136

static const struct {
    unsigned long minor;
    struct ibp_python_layout layout;
} known[] = {
    {0x309, {FRAME_OBJECTS, .line_table = IBP_LINES_LNOTAB, .frame_instruction = 104}},
    {0x30a,
     {FRAME_OBJECTS, .line_table = IBP_LINES_RANGES, .instruction = IBP_INSTRUCTION_UNITS, .frame_instruction = 96}},
    {0x30b,
     {INTERPRETER_FRAMES, STRINGS_BEFORE_3_12, .link_frame = 8, .frame_code = 32, .frame_previous = 48,
      .frame_owner = 69, .code_basic_size = 184, .code_bytecode = 184, .code_first_line = 72}},
    {0x30c,
     {INTERPRETER_FRAMES, STRINGS, .string_ascii = 40, .string_other = 56, .link_frame = 0, .frame_code = 0,
      .frame_previous = 8, .frame_owner = 70, .code_basic_size = 192, .code_bytecode = 192, .code_first_line = 68,
      .code_version = 92}},
};

/* -- offsets from 3.13 on, from the interpreter's own table -------------------------------------------------------- */

/* Each group of members begins at this index in `_Py_DebugOffsets`, an array of 64-bit words. Within a group, all
 * versions have the same order of members. */
static const struct groups {
    unsigned long minor;
    uint16_t thread_frame, frame, code, object_type, type_name, bytes, string;
    bool has_tlbc;
} tables[] = {
    {0x30d, 23, 29, 35, 45, 47, 65, 68, false},
    {0x30e, 26, 32, 40, 51, 53, 75, 78, true},
    {0x30f, 26, 40, 48, 59, 61, 87, 90, true},
};
#define TABLE_WORDS 96
#define OFFSET_MAX 1024

static void read_table(struct ibp_python_layout *layout, const struct groups *at, const uint64_t *table)
{
    const uint64_t *frame = table + at->frame, *code = table + at->code;
    bool has_copies = at->has_tlbc && table[2]; /* in a free-threaded build, each thread has a copy of the bytecode */

    *layout = (struct ibp_python_layout){
        .line_table = IBP_LINES_LOCATIONS,
        .instruction = IBP_INSTRUCTION_POINTER,
        .object_type = table[at->object_type],
        .object_count = table[at->bytes],
        .type_basic_size = table[at->type_name] + sizeof(char *),
        .thread_frame = table[at->thread_frame],
        .frame_previous = frame[0],
        .frame_code = frame[1],
        .frame_instruction = frame[2],
        .frame_owner = frame[4],
        .frame_tlbc = has_copies ? frame[6] : 0,
        .code_file = code[0],
        .code_name = code[1],
        .code_qualified_name = code[2],
        .code_lines = code[3],
        .code_first_line = code[4],
        .code_version = code[6] - sizeof(uint32_t), /* the member before co_localsplusnames */
        .code_basic_size = code[8],
        .code_bytecode = code[8],
        .code_tlbc = has_copies ? code[9] : 0,
        .string_state = table[at->string],
        .string_length = table[at->string + 1],
        .string_ascii = table[at->string + 2],
        .string_other = table[at->string + 2] + 2 * sizeof(char *),
        .string_width_bit = has_copies ? 8 : 2,
        .bytes_data = table[at->bytes + 1],
    };
}

static bool are_offsets(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] > OFFSET_MAX) return false;
    return true;
}

static bool is_plausible(const struct groups *at, const uint64_t *table, unsigned long version)
{
    return !memcmp(table, "xdebugpy", 8) && table[1] == version && table[2] <= 1 &&
           are_offsets(table + at->thread_frame, 1) && are_offsets(table + at->frame, 5 + 2 * at->has_tlbc) &&
           are_offsets(table + at->code, 9 + at->has_tlbc) && are_offsets(table + at->object_type, 1) &&
           are_offsets(table + at->type_name, 1) && are_offsets(table + at->bytes, 2) &&
           are_offsets(table + at->string, 3);
}

bool ibp_python_layout(struct ibp_python_layout *layout, unsigned long version, const void *runtime)
{
    uint64_t table[TABLE_WORDS];

    if (sizeof(void *) != 8 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !IS_STABLE(version)) return false;
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].minor == MINOR(version)) {
            *layout = known[i].layout;
            return true;
        }
    for (size_t i = 0; i < COUNT(tables); i++)
        if (tables[i].minor == MINOR(version)) {
            if (!ibp_read_guarded(table, runtime, sizeof table) || !is_plausible(&tables[i], table, version))
                return false;
            read_table(layout, &tables[i], table);
            return true;
        }
    return false;
}
