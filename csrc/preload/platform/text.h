/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Strings of bounded length, variables of the environment, small files of numbers.
 */
#ifndef IBPROF_PLATFORM_TEXT_H
#define IBPROF_PLATFORM_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A variable of the environment; empty when it is not set. */
const char *ibp_environment(const char *name);

/* Copies `text` into `into`, cut to fit, always terminated. */
void ibp_text_copy(char *into, size_t bytes, const char *text);

/* Appends to a terminated string, cut to fit. */
void ibp_text_append(char *into, size_t bytes, const char *text);

/* FNV-1a over a string; chained by passing the former result as `hash`, IBP_HASH_START at first. */
#define IBP_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t ibp_text_hash(uint64_t hash, const char *text);

/* Reads a small file, cuts trailing white space. Returns its length, or a negative errno. */
long ibp_text_read_file(const char *path, char *into, size_t bytes);

/* A number at the start of `text`, in base 10, or 16 after `0x`; 0 where there is none. */
uint64_t ibp_text_number(const char *text);

#endif
