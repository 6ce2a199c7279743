/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "recording/scheduler.h"
#include "platform/text.h"
#include "recording/job_name.h"

#include <stdint.h>
#include <string.h>

/* Sources: sbatch(1), qsub(1B) of OpenPBS, Torque's qsub, LSF's bsub reference, Cobalt's qsub, oarsub(1),
 * flux-environment(7). */
const char *const ibp_scheduler_variables[] = {"SLURM_JOB_ID",
                                               "SLURM_ARRAY_JOB_ID",
                                               "SLURM_ARRAY_TASK_ID",
                                               "SLURM_STEP_ID",
                                               "SLURM_JOB_USER",
                                               "SLURM_JOB_PARTITION",
                                               "SLURM_CLUSTER_NAME",
                                               "SLURM_JOB_NAME",
                                               "SLURM_JOB_ACCOUNT",
                                               "SLURM_RESTART_COUNT",
                                               "PBS_JOBID",
                                               "PBS_ARRAY_INDEX",
                                               "PBS_ARRAYID",
                                               "PBS_QUEUE",
                                               "PBS_O_LOGNAME",
                                               "PBS_SERVER",
                                               "PBS_JOBNAME",
                                               "PBS_ACCOUNT",
                                               "LSB_JOBID",
                                               "LSB_JOBINDEX",
                                               "LSB_QUEUE",
                                               "LSFUSER",
                                               "LSB_JOBNAME",
                                               "LSB_PROJECT_NAME",
                                               "COBALT_JOBID",
                                               "COBALT_PARTNAME",
                                               "COBALT_QUEUE",
                                               "OAR_JOB_ID",
                                               "OAR_USER",
                                               "OAR_JOB_NAME",
                                               "FLUX_JOB_ID",
                                               "USER",
                                               NULL};

/* The text for each letter in IBPROF_OUTPUT: the value of the first set variable. If no variable is set: for `j` and
 * `A` the launcher's name of the job, if known; else `unset`. */
static const struct pattern {
    char letter;
    const char *unset;
    const char *variables[8];
} patterns[] = {
    {'j', "nojob", {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "OAR_JOB_ID", "FLUX_JOB_ID"}},
    {'A',
     "nojob",
     {"SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "OAR_JOB_ID", "FLUX_JOB_ID"}},
    {'a', "notask", {"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX"}},
    {'s', "nostep", {"SLURM_STEP_ID"}},
    {'u', "nouser", {"SLURM_JOB_USER", "PBS_O_LOGNAME", "LSFUSER", "OAR_USER", "USER"}},
    {'x', "noname", {"SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME", "OAR_JOB_NAME"}},
};

/* Return the value of a variable; empty for LSB_JOBINDEX 0, which LSF sets if the job is no array job. */
static const char *value_of(const char *variable)
{
    const char *value = ibp_environment(variable);

    return !strcmp(variable, "LSB_JOBINDEX") && !strcmp(value, "0") ? "" : value;
}

const char *ibp_scheduler_value(char letter, const char *job)
{
    if (letter == 't') return *ibp_launcher_rank() ? ibp_launcher_rank() : "0";
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (patterns[i].letter != letter) continue;
        for (size_t n = 0; patterns[i].variables[n]; n++)
            if (*value_of(patterns[i].variables[n])) return value_of(patterns[i].variables[n]);
        return *job && !strcmp(patterns[i].unset, "nojob") ? job : patterns[i].unset;
    }
    return NULL;
}
