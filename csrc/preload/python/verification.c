/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/verification.h"
#include "platform/guarded_read.h"
#include "python/loads.h"

#define FRAMES_MAX 16                /* maximum number of checked frames */
#define STATE_BYTES 344 /* size of a PyThreadState of 3.11, up to the frame link that it contains */
#define ELEMENTS_MAX (INT64_C(1) << 30) /* maximum length of a code object's bytecode, names and tables */

typedef const struct ibp_python_symbols symbols_t;
typedef const struct ibp_python_layout layout_t;

/* -- objects ------------------------------------------------------------------------------------------------------- */

/* Read a member, by a guarded read. `object` need not be the address of an object. */
static bool read_member(const char *object, uint64_t offset, void *into, size_t bytes)
{
    return object && ibp_read_guarded(into, (const void *)((uintptr_t)object + offset), bytes);
}

static bool read_pointer(const char *object, uint64_t offset, const char **into)
{
    return read_member(object, offset, into, sizeof *into);
}

static bool has_type(layout_t *layout, const char *object, const void *type)
{
    const char *found;

    return read_pointer(object, layout->object_type, &found) && found == type;
}

/* Return whether the member at `offset` points to an object of type `type` with a plausible number of elements. */
static bool has_member(layout_t *layout, const char *object, uint16_t offset, const void *type, uint16_t count_offset)
{
    const char *member;
    int64_t count;
    char last;

    return read_pointer(object, offset, &member) && has_type(layout, member, type) &&
           read_member(member, count_offset, &count, sizeof count) && count >= 0 && count <= ELEMENTS_MAX &&
           read_member(member, layout->bytes_data + count - 1, &last, sizeof last);
}

bool ibp_verify_symbols(symbols_t *symbols, layout_t *layout)
{
    int64_t size;

    return symbols->thread_state && symbols->code_type && symbols->string_type && symbols->bytes_type &&
           symbols->frame_type && has_type(layout, symbols->code_type, symbols->type_type) &&
           read_member((const char *)symbols->code_type, layout->type_basic_size, &size, sizeof size) &&
           size == layout->code_basic_size;
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

static bool is_code_sound(symbols_t *symbols, layout_t *layout, const char *code)
{
    const uint16_t strings[] = {layout->code_file, layout->code_name, layout->code_qualified_name};
    int32_t first_line;

    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (!has_member(layout, code, strings[i], symbols->string_type, layout->string_length)) return false;
    return has_member(layout, code, layout->code_lines, symbols->bytes_type, layout->object_count) &&
           read_member(code, layout->code_first_line, &first_line, sizeof first_line) && first_line >= 0;
}

static bool find_bytecode(layout_t *layout, const char *frame, const char *code, const char **into)
{
    const char *copies;
    int64_t count;
    int32_t number;

    *into = code + layout->code_bytecode;
    if (!layout->frame_tlbc) return true;
    return read_pointer(code, layout->code_tlbc, &copies) && read_member(copies, 0, &count, sizeof count) &&
           read_member(frame, layout->frame_tlbc, &number, sizeof number) && number >= 0 && number < count &&
           read_pointer(copies, sizeof count + number * sizeof *into, into);
}

/* Return whether the current instruction of a frame is within the bytecode. */
static bool is_instruction_sound(layout_t *layout, const char *frame, const char *code)
{
    const char *instruction, *begin;
    int64_t units;
    int32_t number;

    if (layout->instruction != IBP_INSTRUCTION_POINTER)
        return read_member(frame, layout->frame_instruction, &number, sizeof number) && number >= -1;
    return read_pointer(frame, layout->frame_instruction, &instruction) && find_bytecode(layout, frame, code, &begin) &&
           read_member(code, layout->object_count, &units, sizeof units) && units > 0 && units <= ELEMENTS_MAX &&
           (uintptr_t)instruction >= (uintptr_t)begin - 2 && (uintptr_t)instruction < (uintptr_t)begin + 2 * units;
}

static bool is_frame_sound(symbols_t *symbols, layout_t *layout, const char *frame, bool *has_code)
{
    const char *code, *type;
    char owner;

    if (!read_pointer(frame, layout->frame_code, &code)) return false;
    if (layout->frame_owner && !read_member(frame, layout->frame_owner, &owner, sizeof owner)) return false;
    if (!layout->frame_owner && !has_type(layout, frame, symbols->frame_type)) return false;
    code = ibp_load_reference((const char *)&code, 0);
    if (!read_pointer(code, layout->object_type, &type)) return false;
    *has_code = type == symbols->code_type;
    return !*has_code || (is_code_sound(symbols, layout, code) && is_instruction_sound(layout, frame, code));
}

/* Set `frame` to a thread's innermost frame; NULL if the thread executes no Python code. While no Python code runs, the
 * link to the frame is inside the thread state, which is always readable. So MPI calls of such a thread need no guarded
 * read (a system call). */
static bool find_innermost(layout_t *layout, const char *thread, const char **frame)
{
    *frame = ibp_load_pointer(thread, layout->thread_frame);
    if (!layout->has_link || !*frame) return true;
    if ((uintptr_t)*frame - (uintptr_t)thread > STATE_BYTES) return read_pointer(*frame, layout->link_frame, frame);
    *frame = ibp_load_pointer(*frame, layout->link_frame);
    return true;
}

enum ibp_frames ibp_verify_frames(symbols_t *symbols, layout_t *layout)
{
    const char *thread = symbols->thread_state(), *frame;
    bool has_code = false, has_any = false;

    if (!thread) return IBP_FRAMES_NONE;
    if (!find_innermost(layout, thread, &frame)) return IBP_FRAMES_UNSOUND;
    for (unsigned depth = 0; frame && depth < FRAMES_MAX; depth++) {
        if (!is_frame_sound(symbols, layout, frame, &has_code)) return IBP_FRAMES_UNSOUND;
        has_any |= has_code;
        if (!read_pointer(frame, layout->frame_previous, &frame)) return IBP_FRAMES_UNSOUND;
    }
    return has_any ? IBP_FRAMES_SOUND : IBP_FRAMES_NONE;
}
