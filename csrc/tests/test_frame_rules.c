/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rules of frames. A copy of libc's tables yields the same rules as the tables. Reads of damaged tables stay within the
 * tables. test_stack_walk.c tests that the rules are correct.
 */
#include "platform/system.h"
#include "check.h"
#include "platform/frame_rules.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>

#define DAMAGED 200000

static struct ibp_frame_tables of_libc;
static uintptr_t code, code_end;

static int visit(struct dl_phdr_info *info, size_t bytes, void *into)
{
    const uintptr_t function = (uintptr_t)gnu_get_libc_version;

    (void)bytes;
    (void)into;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && function - begin < part->p_memsz) {
            code = begin;
            code_end = begin + part->p_memsz;
        }
        if (part->p_type == PT_GNU_EH_FRAME)
            of_libc = (struct ibp_frame_tables){.header = begin, .header_end = begin + part->p_memsz};
    }
    if (function - code >= code_end - code) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && of_libc.header - begin < part->p_filesz) {
            of_libc.begin = begin;
            of_libc.end = begin + part->p_filesz;
        }
    }
    return 1;
}

static bool is_equal(const struct ibp_frame_rule *a, const struct ibp_frame_rule *b)
{
    return !memcmp(&a->frame, &b->frame, sizeof a->frame) && !memcmp(a->registers, b->registers, sizeof a->registers) &&
           a->is_of_signal == b->is_of_signal;
}

static uint64_t random_state = 20261125;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* Addresses in tables are relative to the table, so a copy at another address describes code at the same distance. A
 * sanitizer detects reads outside of the copy. */
static void copies_and_damages(void)
{
    const size_t bytes = of_libc.end - of_libc.begin;
    char *const copy = malloc(bytes);
    const uintptr_t by = (uintptr_t)copy - of_libc.begin;
    const struct ibp_frame_tables copied = {of_libc.header + by, of_libc.header_end + by, (uintptr_t)copy,
                                            (uintptr_t)copy + bytes};
    const size_t table = of_libc.header - of_libc.begin, table_bytes = of_libc.header_end - of_libc.header;
    struct ibp_frame_rule rule, of_copy;
    unsigned found = 0, changed = 0;

    CHECK(copy);
    memcpy(copy, (const void *)of_libc.begin, bytes);
    for (uintptr_t at = code; at < code_end; at += 61) {
        const bool is_found = ibp_frame_rule_find(&of_libc, at, &rule);

        CHECK(ibp_frame_rule_find(&copied, at + by, &of_copy) == is_found);
        CHECK(!is_found || is_equal(&rule, &of_copy));
        found += is_found;
    }
    CHECK(found > 10000);
    for (unsigned i = 0; i < DAMAGED; i++) {
        const uintptr_t at = code + random_number() % (code_end - code);
        const bool is_found = ibp_frame_rule_find(&of_libc, at, &rule);
        /* Damage the header, the sorted table, or the entries after the table. */
        const size_t where = i % 8 == 0   ? table + random_number() % 12
                             : i % 8 == 1 ? table + random_number() % table_bytes
                                          : table + random_number() % (bytes - table);
        const char before = copy[where];

        copy[where] = (char)random_number();
        if (i % 1000 == 0) memset(copy + table + table_bytes, (int)random_number(), bytes - table - table_bytes);
        changed += ibp_frame_rule_find(&copied, at + by, &of_copy) != is_found;
        copy[where] = before;
        if (i % 1000 == 0) memcpy(copy, (const void *)of_libc.begin, bytes);
    }
    CHECK(changed > 100);
    free(copy);
}

/* Set each byte of random entries in the copied table to several values, and search the entry's rules. */
static void damages_what_is_read(void)
{
    const size_t bytes = of_libc.end - of_libc.begin, table = of_libc.header - of_libc.begin;
    char *const copy = malloc(bytes);
    const uintptr_t by = (uintptr_t)copy - of_libc.begin;
    const struct ibp_frame_tables copied = {of_libc.header + by, of_libc.header_end + by, (uintptr_t)copy,
                                            (uintptr_t)copy + bytes};
    struct ibp_frame_rule rule;
    int32_t pairs[2];

    CHECK(copy);
    memcpy(copy, (const void *)of_libc.begin, bytes);
    for (unsigned i = 0; i < 500; i++) {
        const size_t entries = (of_libc.header_end - of_libc.header - 12) / sizeof pairs;
        size_t entry;

        memcpy(pairs, copy + table + 12 + random_number() % entries * sizeof pairs, sizeof pairs);
        entry = table + (size_t)(intptr_t)pairs[1];
        CHECK(ibp_frame_rule_find(&copied, copied.header + (uintptr_t)(intptr_t)pairs[0], &rule));
        for (size_t at = entry; at < entry + 40 && at < bytes; at++) {
            static const unsigned char values[] = {0, 1, 0x0f, 0x16, 0x40, 0x7f, 0x80, 0xff};
            const char before = copy[at];

            for (size_t value = 0; value < sizeof values; value++) {
                copy[at] = (char)values[value];
                for (uintptr_t of = 0; of < 64; of += 21)
                    (void)ibp_frame_rule_find(&copied, copied.header + (uintptr_t)(intptr_t)pairs[0] + of, &rule);
            }
            copy[at] = before;
        }
    }
    free(copy);
}

int main(void)
{
    dl_iterate_phdr(visit, NULL);
    CHECK(of_libc.begin && of_libc.header > of_libc.begin && code);
#if defined(__x86_64__)
    copies_and_damages();
    damages_what_is_read();
#endif
    return 0;
}
