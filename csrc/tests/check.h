/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Shared by all C tests: a check that ends the program, and a folder for each test.
 */
#ifndef IBPROF_CHECK_H
#define IBPROF_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Return a new folder in $TMPDIR. ctest sets TMPDIR to a folder of the build tree. */
static inline const char *make_test_folder(void)
{
    static char folder[256];
    const char *parent = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/ibprof-test-XXXXXX", parent && *parent ? parent : "/tmp");
    CHECK(mkdtemp(folder));
    return folder;
}

#endif
