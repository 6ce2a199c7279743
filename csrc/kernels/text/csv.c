/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "ibprof_kernels/text.h"

#include <string.h>

static char *put_text(char *at, const char *text, size_t bytes)
{
    memcpy(at, text, bytes);
    return at + bytes;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[IBP_CSV_DIGITS];
    size_t first = sizeof digits;

    do digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    return put_text(at, digits + first, sizeof digits - first);
}

size_t ibp_csv_pairs(const char *names, const uint64_t *name_begin, const int64_t *source, const int64_t *destination,
                     const uint64_t *bytes, const uint64_t *messages, size_t count, char *text)
{
    char *at = text;

    for (size_t i = 0; i < count; i++) {
        const uint64_t *from = &name_begin[source[i]], *to = &name_begin[destination[i]];

        at = put_text(at, names + from[0], from[1] - from[0]);
        *at++ = ',';
        at = put_text(at, names + to[0], to[1] - to[0]);
        *at++ = ',';
        at = put_number(at, bytes[i]);
        *at++ = ',';
        at = put_number(at, messages[i]);
        *at++ = '\n';
    }
    return (size_t)(at - text);
}
