/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Lines on stderr, and how many of them the user wants.
 */
#ifndef IBPROF_PLATFORM_LOG_H
#define IBPROF_PLATFORM_LOG_H

#include "platform/system.h"

/* What is stderr now is what lines go to; called when the library is loaded. */
void ibp_note_stderr(void);

/* Writes "ibprof: " and the message as one line to stderr, whatever becomes of it. Keeps errno. */
void ibp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* IBPROF_VERBOSE, 0 to 5. */
extern int ibp_verbosity;
#define ibp_log(level, ...)                                                                                            \
    do {                                                                                                               \
        if (IBP_UNLIKELY(ibp_verbosity >= (level))) ibp_say(__VA_ARGS__);                                              \
    } while (0)

#endif
