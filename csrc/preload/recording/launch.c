/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/launch.h"
#include "platform/text.h"
#include "recording/ancestors.h"
#include "recording/recording.h"
#include "recording/scheduler.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (256 * 1024) /* bytes of one list: enough for 20,000 hosts */

/* Variables that list hosts. `ibprof run` sets IBPROF_HOSTS to the launcher's list; batch systems set the other
 * variables. */
static const char *const list_variables[] = {"IBPROF_HOSTS", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
                                             "LSB_MCPU_HOSTS", "LSB_HOSTS"};
static const char *const file_variables[] = {"PBS_NODEFILE", "PE_HOSTFILE", "OAR_NODEFILE", "LSB_DJOB_HOSTFILE"};

/* Record a text. A long text is split into several records with the same name. */
static bool record(const char *name, const char *text, size_t length)
{
    do {
        struct ibp_launch *launch = ibp_recording_reserve(IBP_SEGMENT_LAUNCH);
        const size_t part = length < sizeof launch->text ? length : sizeof launch->text;

        if (!launch) return false;
        memset(launch, 0, sizeof *launch);
        ibp_text_copy(launch->name, sizeof launch->name, name);
        memcpy(launch->text, text, part);
        ibp_recording_publish(IBP_SEGMENT_LAUNCH);
        text += part;
        length -= part;
    } while (length);
    return true;
}

static void record_variable(const char *name)
{
    const char *value = ibp_environment(name);

    if (*value && strlen(value) < TEXT_MAX) (void)record(name, value, strlen(value));
}

static void record_file(const char *name, const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[4096];
    size_t all = 0;
    ssize_t length;

    if (file < 0) return;
    while (all < TEXT_MAX && (length = read(file, text, sizeof text)) > 0) {
        /* In a command line, each argument ends with NUL. */
        for (ssize_t i = 0; i < length; i++)
            if (!text[i]) text[i] = '\x1f';
        if (!record(name, text, (size_t)length)) break;
        all += (size_t)length;
    }
    close(file);
}

static bool is_launcher(const char *command)
{
    static const char *const beginnings[] = {"mpirun", "mpiexec", "orterun", "prterun", "srun"};
    const char *slash = strrchr(command, '/');

    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(slash ? slash + 1 : command, beginnings[i], strlen(beginnings[i]))) return true;
    return false;
}

static void record_launcher(void)
{
    struct ibp_ancestor process;
    bool found = ibp_ancestor_first(&process);

    for (int i = 0; found && i < IBP_ANCESTORS_MAX; i++, found = ibp_ancestor_next(&process)) {
        char path[64], command[4096];

        if (ibp_ancestor_arguments(&process, command, sizeof command) > 0 && is_launcher(command)) {
            snprintf(path, sizeof path, "/proc/%ld/cmdline", process.pid);
            record_file("command line", path);
            return;
        }
    }
}

void ibp_launch_record(void)
{
    for (size_t i = 0; i < sizeof list_variables / sizeof *list_variables; i++) record_variable(list_variables[i]);
    for (size_t i = 0; ibp_scheduler_variables[i]; i++) record_variable(ibp_scheduler_variables[i]);
    for (size_t i = 0; i < sizeof file_variables / sizeof *file_variables; i++) {
        const char *path = getenv(file_variables[i]);

        if (path && *path) record_file(file_variables[i], path);
    }
    record_launcher();
}
