/* SPDX-License-Identifier: Apache-2.0
 * Find the source lines of addresses in a file. Code of libbacktrace reads the debug information. The search is
 * ibprof's, because libbacktrace's search misses inlined functions if ranges of one level overlap, and omits the folder
 * of a relative path. */
#include "dwarf.c"

/* Open the common debug file (dwz -m). Remove the folder that elf.c prepends even to an absolute path. */
static int open_common_file(const char *path, backtrace_error_callback failed, void *data, int *is_missing)
{
    const char *absolute = strstr(path, "//");
    return backtrace_open(absolute ? absolute + 1 : path, failed, data, is_missing);
}
#define backtrace_open open_common_file
#include "elf.c"
#undef backtrace_open

#include <stdio.h>

/* Maximum depth of inlined functions. If functions are nested deeper, the innermost functions are left out. */
#define DEEPEST 256

/* List of all memory that libbacktrace allocates. Most of it is never freed by libbacktrace, so ibprof frees the whole
 * list. */
struct block {
    struct block *next, *previous;
    max_align_t contents[];
};
static struct block blocks = {&blocks, &blocks};

void *ibp_lines_realloc(void *old, size_t size)
{
    struct block *block = old ? (struct block *)((char *)old - sizeof *block) : NULL;
    struct block *moved = realloc(block, sizeof *block + size);
    if (!moved) return NULL;
    if (!block) {
        moved->next = blocks.next;
        moved->previous = &blocks;
    }
    moved->next->previous = moved->previous->next = moved;
    return moved->contents;
}

void *ibp_lines_malloc(size_t size)
{
    return ibp_lines_realloc(NULL, size);
}

void ibp_lines_free(void *old)
{
    if (!old) return;
    struct block *block = (struct block *)((char *)old - sizeof *block);
    block->next->previous = block->previous;
    block->previous->next = block->next;
    free(block);
}

/* Store an error message in `text` (256 bytes), unless `text` already contains a message. */
static void keep_message(void *text, const char *message, int number)
{
    if (!*(char *)text)
        snprintf(text, 256, "%s%s%s", message, number > 0 ? ": " : "", number > 0 ? strerror(number) : "");
}

static int ignore_frame(void *data, uintptr_t address, const char *file, int line, const char *function)
{
    (void)data, (void)address, (void)file, (void)line, (void)function;
    return 0;
}

/* Return the function with the narrowest range that contains an address. */
static const struct function *find_function(const struct function_addrs *ranges, size_t count, uintptr_t address)
{
    const struct function_addrs *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (ranges[i].low <= address && address < ranges[i].high &&
            (!best || ranges[i].high - ranges[i].low <= best->high - best->low))
            best = &ranges[i];
    return best ? best->function : NULL;
}

/* Return the compilation unit with the narrowest range that contains an address, among the units whose lines were
 * read. */
static const struct unit *find_read_unit(const struct dwarf_data *data, uintptr_t address)
{
    const struct unit_addrs *best = NULL;
    for (size_t i = 0; i < data->addrs_count && data->addrs[i].low <= address; i++)
        if (address < data->addrs[i].high && data->addrs[i].u->lines && data->addrs[i].u->lines_count &&
            data->addrs[i].u->lines != (struct line *)(uintptr_t)-1 &&
            (!best || data->addrs[i].high - data->addrs[i].low <= best->high - best->low))
            best = &data->addrs[i];
    return best ? best->u : NULL;
}

typedef void found_frame(size_t index, const char *function, const char *folder, const char *file, int line);

static int find_frames(struct backtrace_state *state, struct dwarf_data *data, uintptr_t address, size_t index,
                       found_frame *found, char *message)
{
    int is_known = 0;
    /* The list also contains the common debug file, which has no code. */
    for (; data && !is_known; data = is_known ? data : data->next)
        dwarf_lookup_pc(state, data, address, ignore_frame, keep_message, message, &is_known);
    const struct unit *unit = data ? find_read_unit(data, address) : NULL;
    const struct line *at = unit ? bsearch(&address, unit->lines, unit->lines_count, sizeof *at, line_search) : NULL;
    if (!at || !at->filename) return 0;
    const struct function *chain[DEEPEST], *each;
    int depth = 0, line = at->lineno;
    each = find_function(unit->function_addrs, unit->function_addrs_count, address);
    for (; each && depth < DEEPEST; each = find_function(each->function_addrs, each->function_addrs_count, address))
        chain[depth++] = each;
    const char *file = at->filename;
    if (!depth) found(index, NULL, unit->comp_dir, file, line);
    while (depth--) {
        found(index, chain[depth]->name, unit->comp_dir, file, line);
        file = chain[depth]->caller_filename;
        line = chain[depth]->caller_lineno;
    }
    return 1;
}

/* Call `found` for each function that contains an address, innermost first. The path of the function's source file may
 * be relative to `folder`. Names may be NULL. `path` must not contain an empty part (//). Return 0, or -1 with an error
 * message in `message` (256 bytes). */
__attribute__((visibility("default"))) int ibp_find_lines(const char *path, const uint64_t *addresses, size_t count,
                                                          found_frame *found, char *message)
{
    *message = 0;
    struct backtrace_state *state = backtrace_create_state(path, 0, keep_message, message);
    int is_missing, has_symbols, has_lines = 0, known = 0;
    fileline look = NULL;
    int file = state ? backtrace_open(path, keep_message, message, &is_missing) : -1;
    if (file >= 0 &&
        elf_add(state, path, file, NULL, 0, 0, keep_message, message, &look, &has_symbols, &has_lines, NULL, 0, 0, NULL,
                0) == 1 &&
        has_lines)
        for (size_t i = 0; i < count; i++)
            known += find_frames(state, state->fileline_data, addresses[i], i, found, message);
    else if (!*message)
        keep_message(message, "no line could be read", 0);
    while (blocks.next != &blocks) ibp_lines_free(blocks.next->contents);
    return *message && !known ? -1 : 0;
}
