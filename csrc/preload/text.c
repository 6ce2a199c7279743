/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "system.h"
#include "text.h"
#include "cancellation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int ibp_verbosity;

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

static struct stat stderr_at_start; /* all zeros where there was none */

/* The C library's fstat is a symbol of glibc 2.33 and newer. */
static bool ask_stderr(struct stat *status)
{
    return !syscall(SYS_fstat, STDERR_FILENO, status);
}

__attribute__((constructor)) void ibp_note_stderr(void)
{
    const int kept = errno;

    if (!ask_stderr(&stderr_at_start)) memset(&stderr_at_start, 0, sizeof stderr_at_start);
    errno = kept;
}

/* A program that closes its descriptors may have been given stderr's number for a file of its own. */
static bool is_stderr_still_open(void)
{
    struct stat now;

    return stderr_at_start.st_ino && ask_stderr(&now) && now.st_dev == stderr_at_start.st_dev &&
           now.st_ino == stderr_at_start.st_ino;
}

/* Writes to stderr, which may be a pipe that nobody reads or a file that must not grow: neither may end the program. */
static void write_quietly(const char *line, size_t bytes)
{
    static const int deadly[] = {SIGPIPE, SIGXFSZ};
    const struct timespec at_once = {0, 0};
    sigset_t block, before, pending, raised;

    if (!is_stderr_still_open()) return;
    sigemptyset(&block);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) sigaddset(&block, deadly[i]);
    if (sigpending(&pending) || sigprocmask(SIG_BLOCK, &block, &before)) return;
    if (write(STDERR_FILENO, line, bytes) < 0)
        for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
            sigemptyset(&raised);
            sigaddset(&raised, deadly[i]);
            if (!sigismember(&pending, deadly[i])) sigtimedwait(&raised, NULL, &at_once);
        }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void ibp_say(const char *format, ...)
{
    const int kept = errno, cancellation = ibp_cancellation_hold();
    char line[4096] = "ibprof: ";
    const size_t prefix = strlen(line);
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    va_end(arguments);
    if (length > 0) {
        size_t bytes = strlen(line);

        for (size_t i = 0; i < bytes; i++)
            if ((unsigned char)line[i] < ' ') line[i] = ' ';
        line[bytes++] = '\n';
        write_quietly(line, bytes);
    }
    ibp_cancellation_allow(cancellation);
    errno = kept;
}
