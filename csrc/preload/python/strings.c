/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/strings.h"

#include <string.h>

#define UTF8_BYTES_MAX 4
#define LENGTH_MAX (INT64_C(1) << 30)
static const char ellipsis[] = "...";

struct characters {
    const uint8_t *data;
    size_t length, width; /* number of characters, and bytes of each character */
};

static bool open_string(const struct ibp_python_layout *layout, const uint8_t *string, struct characters *into)
{
    int64_t length;
    uint32_t state;

    memcpy(&length, string + layout->string_length, sizeof length);
    memcpy(&state, string + layout->string_state, sizeof state);
    state >>= layout->string_width_bit; /* bits 0 to 2: width; bit 3: compact; bit 4: ASCII */
    into->data = string + (state & 16 ? layout->string_ascii : layout->string_other);
    into->length = length;
    into->width = state & 7;
    return length >= 0 && length <= LENGTH_MAX && state & 8 &&
           (into->width == 1 || into->width == 2 || into->width == 4);
}

static uint32_t character_at(const struct characters *from, size_t i)
{
    const uint8_t *at = from->data + i * from->width;

    return from->width == 1   ? *at
           : from->width == 2 ? *(const uint16_t *)(const void *)at
                              : *(const uint32_t *)(const void *)at;
}

/* Encode a character in UTF-8 and return the number of bytes. In a path, Python represents each byte that is no valid
 * UTF-8 as a low surrogate. */
static size_t encode(uint32_t character, char *into)
{
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    if (character >= 0xdc80 && character <= 0xdcff) {
        *into = (char)(character & 0xff);
        return 1;
    }
    if ((character >= 0xd800 && character <= 0xdfff) || character > 0x10ffff) return encode(0xfffd, into);
    for (size_t i = bytes; i-- > 0; character >>= 6)
        into[i] = (char)(bytes == 1 ? character : i ? 0x80 | (character & 63) : heads[bytes] | character);
    return bytes;
}

/* Find the longest end of the string that fits into `bytes`, and return the index of its first character. */
static size_t first_that_fits(const struct characters *from, size_t bytes)
{
    char encoded[UTF8_BYTES_MAX];
    size_t i = from->length;

    while (i) {
        size_t needed = encode(character_at(from, i - 1), encoded);

        if (needed > bytes) break;
        bytes -= needed;
        i--;
    }
    return i;
}

bool ibp_python_string(const struct ibp_python_layout *layout, const void *string, char *into, size_t bytes)
{
    struct characters from;
    char encoded[UTF8_BYTES_MAX];
    size_t first, used = 0;

    if (!bytes) return false;
    *into = 0;
    if (bytes < sizeof ellipsis || !open_string(layout, string, &from)) return false;
    first = first_that_fits(&from, bytes - 1);
    if (first) {
        first = first_that_fits(&from, bytes - sizeof ellipsis);
        memcpy(into, ellipsis, sizeof ellipsis - 1);
        used = sizeof ellipsis - 1;
    }
    for (size_t i = first; i < from.length; i++) {
        size_t length = encode(character_at(&from, i), encoded);

        memcpy(into + used, encoded, length);
        used += length;
    }
    into[used] = 0;
    return true;
}
