/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/ancestors.h"
#include "platform/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Read /proc/PID/stat: PID, (name), state, parent, ..., start time in field 22. */
bool ibp_ancestor_read(long pid, struct ibp_ancestor *process)
{
    char path[64], text[1024];
    char *name, *end;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (ibp_text_read_file(path, text, sizeof text) <= 0) return false;
    name = strchr(text, '(');
    end = strrchr(text, ')'); /* the last parenthesis, because a name may contain any character */
    if (!name || !end || sscanf(end + 1, " %*c %ld", &process->parent) != 1) return false;
    *end = '\0';
    process->pid = pid;
    process->started = 0;
    ibp_text_copy(process->name, sizeof process->name, name + 1);
    for (int field = 2; field < 22 && end; field++) end = strchr(end + 1, ' ');
    return end && sscanf(end, " %llu", &process->started) == 1;
}

bool ibp_ancestor_first(struct ibp_ancestor *process)
{
    const long pid = (long)getppid();

    return pid > 1 && ibp_ancestor_read(pid, process);
}

bool ibp_ancestor_next(struct ibp_ancestor *process)
{
    return process->parent > 1 && ibp_ancestor_read(process->parent, process);
}

long ibp_ancestor_arguments(const struct ibp_ancestor *process, char *arguments, size_t bytes)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/cmdline", process->pid);
    return ibp_text_read_file(path, arguments, bytes);
}
