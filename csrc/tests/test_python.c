/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Hand-written line tables and strings, and mock interpreters with wrong contents. tests/pythons tests real
 * interpreters.
 */
#include "check.h"
#include "mock_python.h"
#include "python/interpreter.h"
#include "python/lines.h"
#include "python/script_frames.h"
#include "python/strings.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* -- line tables --------------------------------------------------------------------------------------------------- */

static void lines_of_3_9(void)
{
    /* the example of Objects/lnotab_notes.txt, lines 1, 2, 7, 207, 208 at bytes 0, 6, 50, 350, 361; then line 3 */
    static const uint8_t table[] = {0,   1, 6,  1,  44, 5, 255,           0, 45,
                                    127, 0, 73, 11, 1,  2, (uint8_t)-128, 0, (uint8_t)-77};
    static const int64_t positions[] = {0, 5, 6, 49, 50, 349, 350, 360, 361, 362, 363, 9999};
    static const uint32_t lines[] = {1, 1, 2, 2, 7, 7, 207, 207, 208, 208, 3, 3};

    for (size_t i = 0; i < COUNT(positions); i++)
        CHECK(ibp_python_line(IBP_LINES_LNOTAB, table, sizeof table, 0, positions[i]) == lines[i]);
    CHECK(ibp_python_line(IBP_LINES_LNOTAB, table, 0, 12, 4) == 12);
    CHECK(ibp_python_line(IBP_LINES_LNOTAB, table, sizeof table, 12, -2) == 12);
}

static void lines_of_3_10(void)
{
    /* bytes 0 to 5: line 11; 6 to 9: none; 10 to 263: line 138; then 2 more bytes of line 138; 2 bytes of line 136 */
    static const uint8_t table[] = {6, 1, 4, 0x80, 0, 126, 254, 1, 2, 0, 2, (uint8_t)-2};
    static const int64_t positions[] = {0, 4, 6, 8, 10, 262, 264, 266, 268, -2};
    static const uint32_t lines[] = {11, 11, 10, 10, 138, 138, 138, 136, 10, 10};

    for (size_t i = 0; i < COUNT(positions); i++)
        CHECK(ibp_python_line(IBP_LINES_RANGES, table, sizeof table, 10, positions[i]) == lines[i]);
}

static void lines_of_3_11(void)
{
    /* Each entry begins with 128 + 8 * form + units - 1. Forms 0 to 9: the line stays the same; one byte follows. Forms
     * 10 to 12: the line grows by 0 to 2; two bytes follow. Form 13: a signed difference of lines follows. Form 14: a
     * signed difference of lines and three more numbers follow. Form 15: no line. */
    static const uint8_t table[] = {
        0x80 | 14 << 3 | 0, 0x02, 0x00, 0x41, 0x02, 0x05, /* 1 unit, line 11; the second number has two bytes */
        0x80 | 3 << 3 | 7,  0x12,                         /* 8 units, line 11 */
        0x80 | 12 << 3 | 1, 0x10, 0x20,                   /* 2 units, line 13 */
        0x80 | 15 << 3 | 0,                               /* 1 unit, none */
        0x80 | 10 << 3 | 0, 0x10, 0x20,                   /* 1 unit, line 13 */
        0x80 | 13 << 3 | 0, 0x50, 0x09,                   /* 1 unit, 0x250 = 592: line 13 + 296 */
        0x80 | 13 << 3 | 0, 0x51, 0x09,                   /* 1 unit, back to line 13 */
    };
    static const int64_t units[] = {0, 1, 8, 9, 10, 11, 12, 13, 14, 15, -1};
    static const uint32_t lines[] = {11, 11, 11, 13, 13, 10, 13, 309, 13, 10, 10};

    for (size_t i = 0; i < COUNT(units); i++)
        CHECK(ibp_python_line(IBP_LINES_LOCATIONS, table, sizeof table, 10, 2 * units[i]) == lines[i]);
}

static void tables_of_noise(void)
{
    srand(1);
    for (int round = 0; round < 100000; round++) {
        size_t bytes = rand() % 40;
        uint8_t *table = malloc(bytes ? bytes : 1); /* exact size, so that the sanitizer detects reads beyond the end */

        for (size_t i = 0; i < bytes; i++) table[i] = rand();
        for (int format = IBP_LINES_LNOTAB; format <= IBP_LINES_LOCATIONS; format++)
            CHECK(ibp_python_line(format, table, bytes, 7, rand() % 100) > 0);
        free(table);
    }
}

/* -- strings ------------------------------------------------------------------------------------------------------- */

/* Offsets of Python 3.12 */
static const struct ibp_python_layout of_strings = {
    .string_length = 16, .string_state = 32, .string_ascii = 40, .string_other = 56, .string_width_bit = 2};

static uint64_t *make_string(uint64_t *into, const void *characters, size_t length, unsigned width, bool is_ascii)
{
    into[2] = length;
    into[3] = 0xaaaaaaaaaaaaaaaa; /* its hash */
    into[4] = 0xcafecafe00000000 | 1 | width << 2 | 1 << 5 | is_ascii << 6;
    memcpy((char *)into + (is_ascii ? 40 : 56), characters, length * width);
    return into;
}

static void strings_of_each_width(void)
{
    static const uint16_t halves[] = {'x', 0x444, 0xffff, 0xdcff, 0xd800}; /* two surrogate halves at the end */
    uint64_t string[64];
    char text[64];

    CHECK(ibp_python_string(&of_strings, make_string(string, "a.py", 4, 1, true), text, sizeof text));
    CHECK(!strcmp(text, "a.py"));
    CHECK(ibp_python_string(&of_strings, make_string(string, "\xe9t\xe9", 3, 1, false), text, sizeof text));
    CHECK(!strcmp(text, "été"));
    CHECK(ibp_python_string(&of_strings, make_string(string, halves, COUNT(halves), 2, false), text, 64));
    CHECK(!strcmp(text, "x\xd1\x84\xef\xbf\xbf\xff\xef\xbf\xbd"));
    CHECK(ibp_python_string(&of_strings, make_string(string, U"\U0001f40d/", 2, 4, false), text, sizeof text));
    CHECK(!strcmp(text, "\xf0\x9f\x90\x8d/"));
    CHECK(ibp_python_string(&of_strings, make_string(string, "", 0, 1, true), text, sizeof text) && !*text);
}

static void strings_that_do_not_fit(void)
{
    uint64_t string[64];
    char text[64];

    make_string(string, u"abcdef\u00e9\u0444/", 9, 2, false);
    CHECK(ibp_python_string(&of_strings, string, text, 12) && !strcmp(text, "abcdef\xc3\xa9\xd1\x84/"));
    CHECK(ibp_python_string(&of_strings, string, text, 11) && !strcmp(text, "...ef\xc3\xa9\xd1\x84/"));
    CHECK(ibp_python_string(&of_strings, string, text, 9) && !strcmp(text, "...\xc3\xa9\xd1\x84/"));
    CHECK(ibp_python_string(&of_strings, string, text, 8) && !strcmp(text, "...\xd1\x84/"));
    CHECK(ibp_python_string(&of_strings, string, text, 4) && !strcmp(text, "..."));
    CHECK(!ibp_python_string(&of_strings, string, text, 3) && !*text);
    CHECK(!ibp_python_string(&of_strings, string, text, 0));
}

static void objects_that_are_no_strings(void)
{
    uint64_t string[64];
    char text[64] = "before";

    make_string(string, "abcdefghi", 3, 3, false); /* no width */
    CHECK(!ibp_python_string(&of_strings, string, text, sizeof text) && !*text);
    make_string(string, "abc", 3, 1, true)[4] &= ~UINT64_C(32); /* not compact */
    CHECK(!ibp_python_string(&of_strings, string, text, sizeof text));
    make_string(string, "abc", 3, 1, true)[2] = (uint64_t)-1;
    CHECK(!ibp_python_string(&of_strings, string, text, sizeof text));
}

/* -- interpreters -------------------------------------------------------------------------------------------------- */

static struct mock_python *python;
static char *unmapped;
static struct ibp_script_frame frame;

static bool finds(void)
{
    return ibp_script_find(&frame);
}

/* Forget the interpreter that ibprof found, and pretend that the interpreter has the given version. */
static void pretend(unsigned long version)
{
    ibp_interpreter = (struct ibp_interpreter){0};
    memset(python->runtime, 0, 1024);
    memset(python->code_type, 0, 512);
    *python->version = version;
    python->code_type[1] = (uintptr_t)python->type_type;
    python->code_type[4] = version >> 16 == 0x30b ? 184 : 192; /* PyCode_Type.tp_basicsize */
}

static void no_interpreter_at_first(void)
{
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_ABSENT);
    CHECK(!finds());
}

/* Open the mock library with RTLD_LOCAL, as programs open plug-ins. */
static void an_interpreter_that_is_loaded_later(void)
{
    void *library = dlopen(MOCK_PYTHON, RTLD_NOW | RTLD_LOCAL);

    CHECK(library);
    python = dlsym(library, "mock_python");
    CHECK(python && !dlsym(RTLD_DEFAULT, "_PyRuntime"));
    pretend(0x030c01f0);
    ibp_interpreter.state = IBP_INTERPRETER_ABSENT;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_ABSENT);
    ibp_script_seek_again();
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_FOUND);
    ibp_script_seek_again();
    CHECK(ibp_interpreter.state == IBP_INTERPRETER_FOUND);
    CHECK(!dlclose(library) && *python->version == 0x030c01f0); /* the library stays loaded */
}

static void unknown_versions(void)
{
    static const unsigned long versions[] = {0, 0x030800f0, 0x031000f0, 0x040000f0, 0x030d00a1, 0x030c00b1};

    for (size_t i = 0; i < COUNT(versions); i++) {
        pretend(versions[i]);
        CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
        ibp_script_seek_again();
        CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
    }
}

static void types_of_another_build(void)
{
    pretend(0x030c01f0);
    python->code_type[4] = 200;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
    pretend(0x030c01f0);
    python->code_type[1] = (uintptr_t)unmapped;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
}

static void debug_offsets_of_another_build(void)
{
    pretend(0x030d00f0);
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN); /* the cookie is missing */
    pretend(0x030d00f0);
    memcpy(python->runtime, "xdebugpy", 8);
    python->runtime[1] = 0x030d01f0;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN); /* another version */
    for (unsigned word = 2; word < 71; word++) {
        pretend(0x030d00f0);
        memcpy(python->runtime, "xdebugpy", 8);
        python->runtime[1] = 0x030d00f0;
        python->runtime[word] = UINT64_MAX;
        CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
    }
}

/* A thread of CPython 3.12 that executes one line of a.py, called from a frame of the interpreter itself. */
static struct {
    uint64_t thread[64], link[2], frames[3][10], code[40], file[20], name[20], lines[8];
} heap;

#define SECOND_UNIT (heap.code + 24) /* co_code_adaptive at 192, with units of two bytes */

static void make_frame(uint64_t *into, uint64_t *previous, unsigned owner)
{
    into[0] = (uintptr_t)heap.code;
    into[1] = (uintptr_t)previous;
    into[7] = (uintptr_t)SECOND_UNIT + 2;
    into[8] = (uint64_t)owner << 48;
}

static void make_thread(const char *file)
{
    static const uint8_t table[] = {0x80 | 13 << 3 | 0, 0x00, 0x80 | 13 << 3 | 3, 0x0e}; /* line 40, then line 47 */
    static uint64_t version;

    memset(&heap, 0, sizeof heap);
    python->thread = heap.thread;
    heap.thread[7] = (uintptr_t)heap.link;
    heap.link[0] = (uintptr_t)heap.frames[0];
    make_frame(heap.frames[0], heap.frames[1], 3);
    make_frame(heap.frames[1], heap.frames[2], 0);
    make_frame(heap.frames[2], NULL, 1);
    heap.code[1] = (uintptr_t)python->code_type;
    heap.code[2] = 5; /* units */
    heap.code[8] = UINT64_C(40) << 32; /* co_firstlineno at 68 */
    heap.code[11] = ++version << 32; /* co_version at 92 */
    heap.code[14] = (uintptr_t)make_string(heap.file, file, strlen(file), 1, true);
    heap.code[15] = heap.code[16] = (uintptr_t)make_string(heap.name, "solve", 5, 1, true);
    heap.code[17] = (uintptr_t)heap.lines;
    heap.file[1] = heap.name[1] = (uintptr_t)python->string_type;
    heap.lines[1] = (uintptr_t)python->bytes_type;
    heap.lines[2] = sizeof table;
    memcpy(&heap.lines[4], table, sizeof table);
}

static void a_thread_that_executes_python(void)
{
    char file[32], function[32];
    uint32_t line;

    pretend(0x030c01f0);
    python->thread = NULL;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_FOUND);
    make_thread("a.py");
    heap.link[0] = 0;
    CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_FOUND); /* no frame yet */
    make_thread("a.py");
    CHECK(finds() && ibp_interpreter.state == IBP_INTERPRETER_VERIFIED && frame.frame == (char *)heap.frames[1]);
    CHECK(ibp_script_describe(&frame, file, sizeof file, function, sizeof function, &line));
    CHECK(!strcmp(file, "a.py") && !strcmp(function, "solve") && line == 47);
    CHECK(ibp_script_next(&frame) && frame.frame == (char *)heap.frames[2] && !ibp_script_next(&frame));
    python->thread = NULL;
    CHECK(!finds());
    make_thread("a.py");
    heap.link[0] = 0;
    CHECK(!finds());
}

/* Return the frame's key while one word of the heap has another value. */
static uint64_t key_with(uint64_t *word, uint64_t value)
{
    uint64_t before = *word;

    *word = value;
    CHECK(finds());
    *word = before;
    return frame.key;
}

static void keys_of_other_code_in_the_same_memory(void)
{
    uint64_t key, keys[3];

    pretend(0x030c01f0);
    make_thread("a.py");
    CHECK(finds());
    key = frame.key;
    CHECK(finds() && frame.key == key);
    keys[0] = key_with(&heap.code[11], heap.code[11] + (UINT64_C(1000) << 32));
    keys[1] = key_with(&heap.code[8], UINT64_C(41) << 32);
    keys[2] = key_with(&heap.frames[1][7], (uintptr_t)SECOND_UNIT + 4);
    for (size_t i = 0; i < COUNT(keys); i++) {
        CHECK(keys[i] != key);
        for (size_t j = 0; j < i; j++) CHECK(keys[i] != keys[j]);
    }
}

static void frames_of_mpi4py_without_end(void)
{
    pretend(0x030c01f0);
    make_thread("/x/mpi4py/run.py");
    make_frame(heap.frames[2], heap.frames[1], 0);
    CHECK(finds() && frame.frame == (char *)heap.frames[1] && !ibp_script_next(&frame));
}

static void frames_of_another_build(void)
{
    uint64_t *const words[] = {&heap.thread[7],    &heap.link[0],      &heap.frames[0][1], &heap.frames[1][0],
                               &heap.frames[1][7], &heap.frames[1][1], &heap.code[2],      &heap.code[14],
                               &heap.code[15],     &heap.code[16],     &heap.code[17],     &heap.file[1],
                               &heap.file[2],      &heap.lines[1],     &heap.lines[2]};
    const uint64_t values[] = {(uintptr_t)unmapped, UINT64_MAX & ~UINT64_C(7), 1, 8};

    for (size_t i = 0; i < COUNT(words); i++) {
        pretend(0x030c01f0);
        make_thread("a.py");
        *words[i] = (uintptr_t)unmapped;
        CHECK(!finds() && ibp_interpreter.state == IBP_INTERPRETER_UNKNOWN);
    }
    for (unsigned i = 0; i < COUNT(words) * COUNT(values); i++) {
        pretend(0x030c01f0);
        make_thread("a.py");
        *words[i / COUNT(values)] = values[i % COUNT(values)];
        finds();
    }
}

/* Search frames in random memory, in which half of the words are addresses. */
static void threads_of_noise(void)
{
    static const unsigned long versions[] = {0x030b01f0, 0x030c01f0};
    uint64_t *words = (uint64_t *)&heap;

    srand(2);
    for (int round = 0; round < 20000; round++) {
        pretend(versions[round % COUNT(versions)]);
        make_thread("a.py");
        for (int i = 0; i < 1 + round % 50; i++) {
            uint64_t noise = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ rand();

            words[rand() % (sizeof heap / 8)] = rand() % 2 ? (uintptr_t)&words[rand() % (sizeof heap / 8)] : noise;
        }
        CHECK(!finds() || ibp_interpreter.state == IBP_INTERPRETER_VERIFIED);
    }
}

int main(void)
{
    unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(unmapped != MAP_FAILED);
    lines_of_3_9();
    lines_of_3_10();
    lines_of_3_11();
    tables_of_noise();
    strings_of_each_width();
    strings_that_do_not_fit();
    objects_that_are_no_strings();
    no_interpreter_at_first();
    an_interpreter_that_is_loaded_later();
    unknown_versions();
    types_of_another_build();
    debug_offsets_of_another_build();
    a_thread_that_executes_python();
    keys_of_other_code_in_the_same_memory();
    frames_of_mpi4py_without_end();
    frames_of_another_build();
    threads_of_noise();
    return 0;
}
