/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "recording/hydra.h"
#include "platform/text.h"
#include "recording/ancestors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return the value of an option in arguments that are separated by NUL; an empty text if the option is missing. */
static const char *find_option(const char *arguments, size_t bytes, const char *option)
{
    for (size_t at = 0; at < bytes; at += strlen(arguments + at) + 1)
        if (!strcmp(arguments + at, option) && at + strlen(option) + 1 < bytes)
            return arguments + at + strlen(option) + 1;
    return "";
}

/* Write a name of the job that is equal on all hosts: Intel MPI's variables, or the address to which the proxy
 * connects. */
static void describe_job(const struct ibp_ancestor *proxy, char *job, size_t job_bytes)
{
    char arguments[2048];
    long bytes;

    if (getenv("I_MPI_HYDRA_UUID")) {
        snprintf(job, job_bytes, "hydra %s/%s", getenv("I_MPI_HYDRA_UUID"),
                 getenv("HYDRA_BSTRAP_PGID") ? getenv("HYDRA_BSTRAP_PGID") : "");
        return;
    }
    bytes = ibp_ancestor_arguments(proxy, arguments, sizeof arguments);
    if (bytes <= 0) return;
    snprintf(job, job_bytes, "hydra %s/%s", find_option(arguments, (size_t)bytes, "--control-port"),
             find_option(arguments, (size_t)bytes, "--pgid"));
}

bool ibp_hydra_describe(const struct ibp_ancestor *proxy, char *job, size_t job_bytes, char *launch,
                        size_t launch_bytes)
{
    struct ibp_ancestor self;

    if (!getenv("PMI_RANK") && !getenv("PMI_FD")) return false;
    describe_job(proxy, job, job_bytes);
    snprintf(launch, launch_bytes, "hydra proxy %ld %llu", proxy->pid, proxy->started);
    if (getenv("PMI_SPAWNED") && ibp_ancestor_read((long)getpid(), &self)) {
        /* A spawned job may have the same proxy as its parent job. Therefore each spawned process writes a separate
         * file, and readers assign the files to jobs. */
        strncat(job, " spawned", job_bytes - strlen(job) - 1);
        snprintf(launch, launch_bytes, "hydra spawned %ld %llu", self.pid, self.started);
    }
    return true;
}
