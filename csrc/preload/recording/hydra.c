/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "recording/hydra.h"
#include "platform/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROXY "(hydra_pmi_proxy)"
#define ANCESTORS_MAX 16 /* scripts and wrappers may stand between the proxy and its rank */

struct process {
    long parent;
    /* In ticks since the host started: PID and start time together identify a process. */
    unsigned long long started;
    bool is_proxy;
};

/* Read /proc/PID/stat: number, (name), state, parent, ..., start time in field 22. */
static bool read_process(long pid, struct process *process)
{
    char path[64], text[1024];
    const char *place;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (ibp_text_read_file(path, text, sizeof text) <= 0) return false;
    place = strrchr(text, ')'); /* a name may contain any character */
    if (!place || sscanf(place + 1, " %*c %ld", &process->parent) != 1) return false;
    process->is_proxy = strstr(text, PROXY) != NULL;
    process->started = 0;
    for (int field = 3; field < 22 && place; field++) place = strchr(place + 1, ' ');
    return place && sscanf(place, " %*s %llu", &process->started) == 1;
}

/* Return the value of an option in arguments that are separated by zeros; empty when it is not there. */
static const char *find_option(const char *arguments, size_t bytes, const char *option)
{
    for (size_t at = 0; at < bytes; at += strlen(arguments + at) + 1)
        if (!strcmp(arguments + at, option) && at + strlen(option) + 1 < bytes)
            return arguments + at + strlen(option) + 1;
    return "";
}

/* Name the job by what is the same on all hosts: Intel MPI's own variables, else where the proxy reports to. */
static void describe_job(long proxy, char *job, size_t job_bytes)
{
    char path[64], arguments[2048];
    long bytes;

    if (getenv("I_MPI_HYDRA_UUID")) {
        snprintf(job, job_bytes, "hydra %s/%s", getenv("I_MPI_HYDRA_UUID"),
                 getenv("HYDRA_BSTRAP_PGID") ? getenv("HYDRA_BSTRAP_PGID") : "");
        return;
    }
    snprintf(path, sizeof path, "/proc/%ld/cmdline", proxy);
    bytes = ibp_text_read_file(path, arguments, sizeof arguments);
    if (bytes <= 0) return;
    snprintf(job, job_bytes, "hydra %s/%s", find_option(arguments, (size_t)bytes, "--control-port"),
             find_option(arguments, (size_t)bytes, "--pgid"));
}

bool ibp_hydra_describe(char *job, size_t job_bytes, char *launch, size_t launch_bytes)
{
    long pid = (long)getppid();
    struct process process;

    if (!getenv("PMI_RANK") && !getenv("PMI_FD")) return false;
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = process.parent) {
        if (!read_process(pid, &process)) return false;
        if (!process.is_proxy) continue;
        describe_job(pid, job, job_bytes);
        if (getenv("PMI_SPAWNED")) {
            /* Spawned jobs may share the proxy of their parents: each process gets a file, and the reader sorts
             * them. */
            strncat(job, " spawned", job_bytes - strlen(job) - 1);
            (void)read_process((long)getpid(), &process);
            snprintf(launch, launch_bytes, "hydra spawned %ld %llu", (long)getpid(), process.started);
            return true;
        }
        snprintf(launch, launch_bytes, "hydra proxy %ld %llu", pid, process.started);
        return true;
    }
    return false;
}
