/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/other_transports.h"
#include "platform/loaded_objects.h"
#include "platform/text.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char collectives[] = "collectives may bypass the messages that ibprof sees";
static const char accelerators[] =
    "this library sends without MPI; ibprof counts only its bytes posted through verbs, by port";
static const char reduction[] =
    "switches may reduce data (SHARP); ibprof counts bytes that hosts post through verbs, not bytes that switches send";
static const char shmem[] =
    "OpenSHMEM's puts, gets and atomics are counted only if they are posted by verbs, and by port, not by PE";

static const struct library {
    const char *name, *meaning;
} libraries[] = {
    {"libhcoll", collectives},    {"libucc", collectives}, {"libnccl", accelerators}, {"librccl", accelerators},
    {"libsharp_coll", reduction}, {"libsharp", reduction}, {"liboshmem", shmem},      {"libsma", shmem},
};
#define LIBRARIES (sizeof libraries / sizeof *libraries)
_Static_assert(LIBRARIES <= 32, "a bit for each library");

/* Return whether a path names a library: `NAME.so`, with or without a version. */
static bool is_library(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const size_t length = strlen(name);

    return !strncmp(file, name, length) && !strncmp(file + length, ".so", 3) &&
           (file[length + 3] == '\0' || file[length + 3] == '.');
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *into)
{
    uint32_t *loaded = into;

    (void)bytes;
    for (unsigned i = 0; info->dlpi_name && i < LIBRARIES; i++)
        if (is_library(info->dlpi_name, libraries[i].name)) *loaded |= UINT32_C(1) << i;
    return 0;
}

void ibp_other_transports_describe(char *notes, size_t bytes)
{
    uint32_t loaded = 0;

    ibp_visit_objects(visit, &loaded);
    for (unsigned i = 0; i < LIBRARIES; i++) {
        if (!(loaded >> i & 1)) continue;
        ibp_text_append(notes, bytes, libraries[i].name);
        ibp_text_append(notes, bytes, " is loaded: ");
        ibp_text_append(notes, bytes, libraries[i].meaning);
        ibp_text_append(notes, bytes, "\n");
    }
}
