/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * ibprof's plug-in for Slurm. The plug-in records jobs started with `srun --ibprof` or `sbatch
 * --ibprof=ALLTOALL,BCAST`, or a percentage of all jobs.
 *
 * The plug-in must be built where Slurm is installed, because the code includes a header of Slurm
 * (docs/how-to/slurm-for-a-site.md). The plug-in only sets environment variables of tasks, as the user of the job.
 * Every function returns success, so that no job fails because of the plug-in.
 *
 * A line of plugstack.conf:
 *
 *     optional /usr/lib64/slurm/ibprof.so library=/opt/ibprof/lib/libibprof.so share=5 output=/spool/ibprof/%u
 */
#define _GNU_SOURCE
#include <slurm/spank.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(ibprof, 1)

#define LIBRARY "libibprof.so"
#define PRELOAD_MAX (64 * 1024)
#define EXTERN_STEP 0xfffffffcu /* the step `extern`, which has no tasks of the user */
#define SHARE_SCALE 4294967296.0

static struct {
    const char *library;
    const char *output; /* NULL: the library's default */
    double share;       /* share of jobs that are recorded, in percent */
} site;

static struct {
    bool asked, refused;
    char operations[1024];
} job;

static int take_option(int value, const char *argument, int remote)
{
    (void)value;
    (void)remote;
    /* If the option has no argument, sbatch and salloc pass the text "(null)" to their steps. */
    if (argument && !strcmp(argument, "(null)")) argument = NULL;
    job.refused = argument && !strcmp(argument, "off");
    job.asked = !job.refused;
    snprintf(job.operations, sizeof job.operations, "%s", job.asked && argument ? argument : "");
    return ESPANK_SUCCESS;
}

static struct spank_option option = {
    .name = "ibprof",
    .arginfo = "OPERATIONS",
    .usage = "record the MPI traffic with ibprof, of all or some operations; off: do not",
    .has_arg = 2, /* optional */
    .cb = take_option,
};

static void read_arguments(int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (!strncmp(arguments[i], "library=", 8)) site.library = arguments[i] + 8;
        if (!strncmp(arguments[i], "output=", 7)) site.output = arguments[i] + 7;
        if (!strncmp(arguments[i], "share=", 6)) site.share = strtod(arguments[i] + 6, NULL);
    }
}

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    read_arguments(count, arguments);
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_REMOTE:
    case S_CTX_ALLOCATOR:
        (void)spank_option_register(spank, &option);
        break;
    default:
        break;
    }
    return ESPANK_SUCCESS;
}

/* Return whether a job is chosen for recording. The choice depends only on SLURM_JOB_ID, so it is equal for all steps
 * on all nodes. (S_JOB_ID differs between components of a heterogeneous job.) */
static bool is_sampled(spank_t spank)
{
    char number[16];

    if (site.share <= 0 || spank_getenv(spank, "SLURM_JOB_ID", number, sizeof number) != ESPANK_SUCCESS) return false;
    return (double)(uint32_t)(strtoul(number, NULL, 10) * UINT32_C(2654435761)) < site.share / 100 * SHARE_SCALE;
}

/* Return the reason why the library cannot be preloaded; NULL if it can be preloaded. */
static const char *find_fault(void)
{
    if (!site.library || !*site.library) return "plugstack.conf names no library=";
    if (strpbrk(site.library, ": ")) return "the library's path has a blank or a colon";
    return access(site.library, R_OK) ? "the library does not exist on this node" : NULL;
}

/* Read LD_PRELOAD. Return false if the value is too long. */
static bool read_preload(spank_t spank, char *value, size_t bytes)
{
    const spank_err_t found = spank_getenv(spank, "LD_PRELOAD", value, (int)bytes);

    if (found == ESPANK_ENV_NOEXIST) *value = '\0';
    return found == ESPANK_SUCCESS || found == ESPANK_ENV_NOEXIST;
}

/* Put the library before other libraries in LD_PRELOAD, unless LD_PRELOAD contains it already, for example from `ibprof
 * run`. */
static void preload(spank_t spank)
{
    static char present[PRELOAD_MAX], value[PRELOAD_MAX + PATH_MAX];

    if (!read_preload(spank, present, sizeof present) || strstr(present, LIBRARY)) return;
    snprintf(value, sizeof value, "%s%s%s", site.library, *present ? ":" : "", present);
    (void)spank_setenv(spank, "LD_PRELOAD", value, 1);
}

/* Remove the library from LD_PRELOAD, because a step inherits the environment of its job. */
static void remove_preload(spank_t spank)
{
    static char present[PRELOAD_MAX], value[PRELOAD_MAX];
    char *rest = present;

    if (!read_preload(spank, present, sizeof present) || !strstr(present, LIBRARY)) return;
    for (char *word; (word = strsep(&rest, ": "));) {
        if (!*word || strstr(word, LIBRARY)) continue;
        if (*value) strcat(value, ":");
        strcat(value, word);
    }
    (void)spank_setenv(spank, "LD_PRELOAD", value, 1);
}

/* Called once for each step on each node, as the user, before the tasks start. */
int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
    const char *fault;
    uint32_t step;

    (void)count;
    (void)arguments;
    if (!spank_remote(spank)) return ESPANK_SUCCESS;
    if (job.refused) remove_preload(spank);
    if (job.refused || (!job.asked && !is_sampled(spank))) return ESPANK_SUCCESS;
    if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == EXTERN_STEP) return ESPANK_SUCCESS;
    fault = find_fault();
    if (fault && job.asked) slurm_spank_log("ibprof: nothing is recorded: %s", fault);
    if (fault) return ESPANK_SUCCESS;
    preload(spank);
    if (*job.operations) (void)spank_setenv(spank, "IBPROF", job.operations, 1);
    if (!site.output) return ESPANK_SUCCESS;
    (void)spank_setenv(spank, "IBPROF_OUTPUT", site.output, 0); /* the user's value has priority */
    /* `ibprof run` replaces IBPROF_OUTPUT if both variables are equal, because then IBPROF_OUTPUT is not the user's
     * choice. */
    (void)spank_setenv(spank, "IBPROF_SITE_OUTPUT", site.output, 1);
    return ESPANK_SUCCESS;
}
