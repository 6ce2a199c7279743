/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/script_frames.h"
#include "python/interpreter.h"
#include "python/loads.h"
#include "python/strings.h"

#define DEPTH_MAX 128             /* maximum number of skipped frames */
#define OWNER_INTERPRETER 3       /* since 3.12: frames with an owner of 3 or more have no line */
#define TABLE_BYTES 512           /* maximum number of bytes read from a line table */
#define FILE_BYTES 256            /* maximum number of bytes read from the end of a path */

typedef struct ibp_script_frame script_frame;

/* -- one frame ----------------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product =
        (unsigned __int128)(a ^ UINT64_C(0xa0761d6478bd642f)) * (b ^ UINT64_C(0xe7037ed1a0b428db));

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_table(const char *table, int64_t bytes)
{
    uint64_t hash = 0;

    for (int64_t i = 0; i + 8 <= bytes && i < TABLE_BYTES; i += 8) hash = mix(hash, ibp_load_int64(table + i, 0));
    return hash;
}

/* Return a number that differs between successive code objects at one address. Since 3.12, code objects contain this
 * number. Before 3.12, ibprof computes the number from the addresses of the object's strings and from the line
 * table. */
static inline uint64_t generation(const struct ibp_python_layout *layout, const char *code)
{
    const char *table;
    int64_t bytes, end;
    uint64_t hash, texts;

    if (IBP_LIKELY(layout->code_version)) return (uint32_t)ibp_load_int32(code, layout->code_version);
    table = ibp_load_pointer(code, layout->code_lines);
    bytes = ibp_load_int64(table, layout->object_count);
    end = ibp_load_int64(table + bytes, layout->bytes_data - sizeof end);
    hash = ibp_load_int64(table, layout->object_count + sizeof bytes);
    if (layout->line_table == IBP_LINES_LNOTAB) hash = hash_table(table + layout->bytes_data, bytes);
    texts = mix(ibp_load_int64(code, layout->code_file), ibp_load_int64(code, layout->code_name));
    return mix(hash ^ (uint64_t)bytes << 32, texts ^ end);
}

static inline uint64_t key_of(const struct ibp_python_layout *layout, const char *code, int64_t position)
{
    uint64_t line = (uint32_t)ibp_load_int32(code, layout->code_first_line);

    return mix(mix((uintptr_t)code, line << 32 ^ (uint64_t)position), generation(layout, code));
}

static inline int64_t position_of(const struct ibp_python_layout *layout, const char *frame, const char *code)
{
    const char *bytecode = code + layout->code_bytecode;

    if (layout->instruction == IBP_INSTRUCTION_BYTES) return ibp_load_int32(frame, layout->frame_instruction);
    if (layout->instruction == IBP_INSTRUCTION_UNITS)
        return 2 * (int64_t)ibp_load_int32(frame, layout->frame_instruction);
    if (layout->frame_tlbc)
        bytecode = ibp_load_pointer(ibp_load_pointer(code, layout->code_tlbc) +
                                        sizeof bytecode * ibp_load_int32(frame, layout->frame_tlbc),
                                    sizeof(int64_t));
    return ibp_load_pointer(frame, layout->frame_instruction) - bytecode;
}

/* Read a frame. Return false for a frame of the interpreter itself, which executes no line of a script. */
static inline bool read_frame(const char *at, script_frame *into)
{
    const struct ibp_python_layout *layout = &ibp_interpreter.layout;
    const char *code = ibp_load_reference(at, layout->frame_code);

    if (layout->frame_owner && (uint8_t)at[layout->frame_owner] >= OWNER_INTERPRETER) return false;
    if (!code || ibp_load_pointer(code, layout->object_type) != ibp_interpreter.symbols.code_type) return false;
    into->frame = at;
    into->code = code;
    into->position = position_of(layout, at, code);
    into->key = key_of(layout, code, into->position);
    return true;
}

/* -- frames of the program ----------------------------------------------------------------------------------------- */

static bool is_of_mpi4py(const char *file)
{
    static const char package[] = "/mpi4py/";
    const char *rest = NULL;

    for (const char *found = file; (found = strstr(found, package)); found++) rest = found + strlen(package);
    /* True for modules of the package mpi4py; false for other files below a folder mpi4py, such as demos. */
    return rest && (!strchr(rest, '/') || !strncmp(rest, "futures/", 8) || !strncmp(rest, "util/", 5));
}

/* Return whether a file belongs to importlib or runpy, the modules that import and run programs. The names of the files
 * of importlib and, since 3.11, of runpy begin with `<frozen `. */
static bool runs_programs(const char *file)
{
    static const char runpy[] = "/runpy.py";
    size_t length = strlen(file);

    return !strncmp(file, "<frozen ", 8) || (length >= strlen(runpy) && !strcmp(file + length - strlen(runpy), runpy));
}

/* Cache of the results of judge(). The lowest bit of an element is the result; the remaining bits equal the frame's
 * key. */
static uint64_t verdicts[256];

static __attribute__((noinline)) bool judge(const script_frame *frame)
{
    const struct ibp_python_layout *layout = &ibp_interpreter.layout;
    char file[FILE_BYTES];

    return !ibp_python_string(layout, ibp_load_pointer(frame->code, layout->code_file), file, sizeof file) ||
           (!is_of_mpi4py(file) && !runs_programs(file));
}

static inline bool is_of_program(const script_frame *frame)
{
    uint64_t *known = &verdicts[frame->key >> 56];
    uint64_t verdict = __atomic_load_n(known, __ATOMIC_RELAXED);

    if (IBP_UNLIKELY((verdict ^ frame->key) >> 1)) {
        verdict = (frame->key & ~UINT64_C(1)) | judge(frame);
        __atomic_store_n(known, verdict, __ATOMIC_RELAXED);
    }
    return verdict & 1;
}

static inline bool is_found(const char *at, script_frame *into)
{
    return IBP_LIKELY(read_frame(at, into)) && IBP_LIKELY(is_of_program(into));
}

/* Find the program's innermost frame among frame `at` and its callers. */
static bool find_from(const char *at, script_frame *into)
{
    for (unsigned depth = 0; at && depth < DEPTH_MAX; depth++) {
        if (is_found(at, into)) return true;
        at = ibp_load_pointer(at, ibp_interpreter.layout.frame_previous);
    }
    return false;
}

/* Find the innermost frame, even if its file belongs to mpi4py. */
static bool find_any(const char *at, script_frame *into)
{
    for (unsigned depth = 0; at && depth < DEPTH_MAX; depth++) {
        if (read_frame(at, into)) return true;
        at = ibp_load_pointer(at, ibp_interpreter.layout.frame_previous);
    }
    return false;
}

static __attribute__((noinline)) bool find_or_any(const char *at, script_frame *into)
{
    return find_from(at, into) || find_any(at, into);
}

bool ibp_script_find(struct ibp_script_frame *frame)
{
    const struct ibp_python_layout *layout = &ibp_interpreter.layout;
    const char *thread, *innermost;

    if (IBP_UNLIKELY(!ibp_interpreter_ready())) return false;
    thread = ibp_interpreter.symbols.thread_state();
    if (!thread) return false;
    innermost = ibp_load_pointer(thread, layout->thread_frame);
    if (layout->has_link && innermost) innermost = ibp_load_pointer(innermost, layout->link_frame);
    return innermost && (is_found(innermost, frame) || find_or_any(innermost, frame));
}

bool ibp_script_next(struct ibp_script_frame *frame)
{
    return find_from(ibp_load_pointer(frame->frame, ibp_interpreter.layout.frame_previous), frame);
}

/* -- file, function and line of a frame ---------------------------------------------------------------------------- */

bool ibp_script_describe(const struct ibp_script_frame *frame, char *file, size_t file_bytes, char *function,
                         size_t function_bytes, uint32_t *line)
{
    const struct ibp_python_layout *layout = &ibp_interpreter.layout;
    const char *code = frame->code, *lines = ibp_load_pointer(code, layout->code_lines);

    *line = ibp_python_line(layout->line_table, (const uint8_t *)lines + layout->bytes_data,
                            ibp_load_int64(lines, layout->object_count),
                            (uint32_t)ibp_load_int32(code, layout->code_first_line), frame->position);
    return ibp_python_string(layout, ibp_load_pointer(code, layout->code_file), file, file_bytes) &&
           ibp_python_string(layout, ibp_load_pointer(code, layout->code_qualified_name), function, function_bytes);
}

void ibp_script_seek_again(void)
{
    ibp_interpreter_seek_again();
}
