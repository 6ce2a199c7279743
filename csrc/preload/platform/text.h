/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Strings of limited length, environment variables, and small files.
 */
#ifndef IBPROF_PLATFORM_TEXT_H
#define IBPROF_PLATFORM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return the value of an environment variable; an empty string if it is not set. */
const char *ibp_environment(const char *name);

/* Copy `text` to `into`. The copy is cut to `bytes`, and always ends with NUL. */
void ibp_text_copy(char *into, size_t bytes, const char *text);

/* Append `text` to a string that ends with NUL. The result is cut to `bytes`. */
void ibp_text_append(char *into, size_t bytes, const char *text);

/* Return the FNV-1a hash of a string. `hash` is IBP_HASH_START, or the hash of preceding strings. */
#define IBP_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t ibp_text_hash(uint64_t hash, const char *text);

/* Read a small file and cut trailing white space. Return the length of the text, or a negative errno. */
long ibp_text_read_file(const char *path, char *into, size_t bytes);

/* Return the number at the start of `text`: decimal, or hexadecimal after `0x`; 0 if `text` does not start with a
 * number. */
uint64_t ibp_text_number(const char *text);

/* Return whether `text`, the value of an environment variable, is a decimal number or empty. */
bool ibp_text_is_number(const char *text);

#endif
