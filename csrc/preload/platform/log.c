/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/log.h"
#include "platform/cancellation.h"

#include <errno.h>
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

static struct stat stderr_at_start; /* all zeros if stderr was closed */

/* Get the status of stderr by a system call, because glibc exports fstat only since 2.33. */
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

/* Return whether stderr is still the file that it was at the start. The program may have closed stderr, and may have
 * opened another file with the same descriptor. */
static bool is_stderr_still_open(void)
{
    struct stat now;

    return stderr_at_start.st_ino && ask_stderr(&now) && now.st_dev == stderr_at_start.st_dev &&
           now.st_ino == stderr_at_start.st_ino;
}

/* Write to stderr. Block SIGPIPE (pipe without a reader) and SIGXFSZ (file at its size limit), which would end the
 * program. */
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
