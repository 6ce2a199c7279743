/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Messages on stderr. IBPROF_VERBOSE sets which messages are printed.
 */
#ifndef IBPROF_PLATFORM_LOG_H
#define IBPROF_PLATFORM_LOG_H

#include "platform/system.h"

/* Remember the file of stderr when libibprof.so is loaded. Messages are printed only if stderr is still this file. */
void ibp_note_stderr(void);

/* Print "ibprof: " and the message as one line on stderr. Write errors are ignored, and errno is unchanged. */
void ibp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* IBPROF_VERBOSE, 0 to 5. */
extern int ibp_verbosity;
#define ibp_log(level, ...)                                                                                            \
    do {                                                                                                               \
        if (IBP_UNLIKELY(ibp_verbosity >= (level))) ibp_say(__VA_ARGS__);                                              \
    } while (0)

#endif
