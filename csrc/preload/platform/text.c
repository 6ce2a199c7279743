/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *ibp_environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

void ibp_text_copy(char *into, size_t bytes, const char *text)
{
    const size_t length = strnlen(text, bytes - 1);

    memcpy(into, text, length);
    into[length] = '\0';
}

void ibp_text_append(char *into, size_t bytes, const char *text)
{
    const size_t used = strnlen(into, bytes - 1);

    ibp_text_copy(into + used, bytes - used, text);
}

uint64_t ibp_text_hash(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

long ibp_text_read_file(const char *path, char *into, size_t bytes)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    into[0] = '\0';
    if (file < 0) return -errno;
    length = read(file, into, bytes - 1);
    if (length < 0) length = -errno;
    close(file);
    if (length < 0) return length;
    while (length > 0 && (unsigned char)into[length - 1] <= ' ') length--;
    into[length] = '\0';
    return length;
}

bool ibp_text_is_number(const char *text)
{
    return !text[strspn(text, "0123456789")];
}

uint64_t ibp_text_number(const char *text)
{
    unsigned base = 10;
    uint64_t number = 0;

    if (text[0] == '0' && (text[1] | 0x20) == 'x') {
        base = 16;
        text += 2;
    }
    for (;; text++) {
        const unsigned character = (unsigned char)*text | 0x20;
        unsigned digit = base;

        if (*text >= '0' && *text <= '9')
            digit = (unsigned)*text - '0';
        else if (character >= 'a' && character <= 'f')
            digit = character - 'a' + 10;
        if (digit >= base) return number;
        number = number * base + digit;
    }
}
