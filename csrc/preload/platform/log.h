/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Lines on stderr, and how many of them the user wants (IBPROF_VERBOSE).
 */
#ifndef IBPROF_PLATFORM_LOG_H
#define IBPROF_PLATFORM_LOG_H

#include "platform/system.h"

/* Remember the file behind stderr; lines are printed to no other file. Called when the library is loaded. */
void ibp_note_stderr(void);

/* Print "ibprof: " and the message as one line on stderr. Errors are ignored; errno is kept. */
void ibp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* IBPROF_VERBOSE, 0 to 5. */
extern int ibp_verbosity;
#define ibp_log(level, ...)                                                                                            \
    do {                                                                                                               \
        if (IBP_UNLIKELY(ibp_verbosity >= (level))) ibp_say(__VA_ARGS__);                                              \
    } while (0)

#endif
