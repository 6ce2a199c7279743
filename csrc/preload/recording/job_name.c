/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/job_name.h"
#include "platform/clock.h"
#include "platform/text.h"
#include "recording/ancestors.h"
#include "recording/hydra.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_NOTED 4 /* number of ancestors that identify a launch without a name */

struct name {
    char *text;
    size_t bytes;
};

/* If the variable `first` is set, append to the job's name the values of `first` and `second`, joined by `sign`. */
static bool join(struct name job, const char *first, char sign, const char *second)
{
    const char between[] = {sign, '\0'};

    if (!*ibp_environment(first)) return false;
    ibp_text_append(job.text, job.bytes, ibp_environment(first));
    ibp_text_append(job.text, job.bytes, between);
    ibp_text_append(job.text, job.bytes, ibp_environment(second));
    return true;
}

/* -- variables that each launcher sets ----------------------------------------------------------------------------- */

/* Launchers with PMIx, such as Open MPI and PRRTE. Open MPI 4's name of a job contains a PID, which may be reused.
 * Therefore ibprof appends Open MPI's second variable, which contains a random number. */
static bool name_by_pmix(struct name job)
{
    return join(job, "PMIX_NAMESPACE", '/', "OMPI_MCA_orte_precondition_transports");
}

/* LSF's jsrun sets PMIx's variables, and numbers the launches of a batch job. Source: jsrun's variables in octotiger
 * and in Lightning's LSFEnvironment. */
static bool name_by_jsm(struct name job)
{
    return *ibp_environment("JSM_NAMESPACE_RANK") && join(job, "PMIX_NAMESPACE", '/', "LSB_JOBID");
}

/* PALS of HPE Cray: a name for each mpiexec. Flux and Slurm also set PALS_APID, for Cray MPICH. Source: the cray-pals
 * plugin of flux-coral2, the cray_shasta plugin of Slurm. */
static bool name_by_pals(struct name job)
{
    return *ibp_environment("PALS_RANKID") && join(job, "PALS_APID", '\0', "");
}

/* Each `flux run` is a job. Source: flux-environment(7). */
static bool name_by_flux(struct name job)
{
    return *ibp_environment("FLUX_TASK_RANK") && join(job, "FLUX_JOB_ID", '\0', "");
}

/* MVAPICH2's mpirun_rsh: a random number, and the launcher's host and PID, equal on all hosts of the job. Source:
 * MVAPICH2, src/pm/mpirun/mpirun_rsh.c and mpispawn.c. */
static bool name_by_mpirun_rsh(struct name job)
{
    return join(job, "MPDMAN_KVS_TEMPLATE", '\0', "");
}

/* A job step of Slurm: each srun is a step; the script of a batch job is not a step. Source: srun(1). */
static bool name_by_slurm(struct name job)
{
    return *ibp_environment("SLURM_STEP_ID") && join(job, "SLURM_JOB_ID", '.', "SLURM_STEP_ID");
}

typedef bool name_function(struct name job);

/* Functions to try in this order if no ancestor is a known launcher (for example, because a container hides them), or
 * if the function in `launchers` finds no name. */
static name_function *const all_names[] = {name_by_jsm,  name_by_pmix,       name_by_pals,
                                           name_by_flux, name_by_mpirun_rsh, name_by_slurm};

/* -- the nearest launcher ------------------------------------------------------------------------------------------ */

enum kind { BY_VARIABLES, BY_PROXY, ON_ONE_HOST, UNNAMED };

/* Programs that start ranks on a host. */
static const struct launcher {
    char program[IBP_PROCESS_NAME_BYTES];
    enum kind kind;
    name_function *name; /* reads the name from variables */
} launchers[] = {
    {"orted", BY_VARIABLES, name_by_pmix},
    {"prted", BY_VARIABLES, name_by_pmix},
    {"prte", BY_VARIABLES, name_by_pmix},
    {"prterun", BY_VARIABLES, name_by_pmix},
    {"orterun", BY_VARIABLES, name_by_pmix},
    {"mpirun", BY_VARIABLES, name_by_pmix},
    {"mpiexec", BY_VARIABLES, name_by_pmix},
    {"mpirun.openmpi", BY_VARIABLES, name_by_pmix},
    {"mpiexec.openmpi", BY_VARIABLES, name_by_pmix},
    {"slurmstepd", BY_VARIABLES, name_by_slurm},
    {"flux-shell", BY_VARIABLES, name_by_flux},
    {"palsd", BY_VARIABLES, name_by_pals},
    {"jsmd", BY_VARIABLES, name_by_jsm},
    {"mpispawn", BY_VARIABLES, name_by_mpirun_rsh},
    {"hydra_pmi_proxy", BY_PROXY, NULL},
    {"pmi_proxy", BY_PROXY, NULL},
    {"mpiexec.gforker", ON_ONE_HOST, NULL},
    {"mpiexec.remshel", UNNAMED, NULL}, /* the kernel cuts this name */
};

static const struct launcher *find_launcher(struct ibp_ancestor *process)
{
    bool found = ibp_ancestor_first(process);

    for (int i = 0; found && i < IBP_ANCESTORS_MAX; i++, found = ibp_ancestor_next(process))
        for (size_t n = 0; n < sizeof launchers / sizeof *launchers; n++)
            if (!strcmp(process->name, launchers[n].program)) return &launchers[n];
    return NULL;
}

static bool is_spawned(void)
{
    return *ibp_environment("PMI_SPAWNED") && strcmp(ibp_environment("PMI_SPAWNED"), "0") != 0;
}

/* Return whether a launcher started this process as a rank; false for a process that a rank spawned. */
static bool is_rank(void)
{
    static const char *const variables[] = {
        "PMI_RANK", "PMI_ID", "PMIX_RANK", "MPIRUN_RANK", "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (*ibp_environment(variables[i])) return !is_spawned();
    return false;
}

static void name_by_process(struct name job, const struct ibp_ancestor *process)
{
    char host[64] = "";

    (void)gethostname(host, sizeof host - 1);
    snprintf(job.text, job.bytes, "%s %s %ld %llu%s", process->name, host, process->pid, process->started,
             is_spawned() ? " spawned" : "");
}

static void name_job(struct name job, const struct launcher *nearest, const struct ibp_ancestor *process)
{
    if (nearest && nearest->kind == ON_ONE_HOST && (is_rank() || is_spawned())) name_by_process(job, process);
    if (nearest && (nearest->kind != BY_VARIABLES || nearest->name(job))) return;
    for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++)
        if (all_names[i](job)) return;
}

/* -- this launch on this host -------------------------------------------------------------------------------------- */

/* Identify a launch without a name by a chain of this process's ancestors. The chain begins with `process`: the
 * launcher's process on this host, or the parent if the launcher is unknown. A process that no launcher started as a
 * rank is a separate launch. */
static void describe_unnamed(struct name launch, struct ibp_ancestor *process, bool found)
{
    if (!is_rank() || !found) {
        snprintf(launch.text, launch.bytes, "process %ld %llu", (long)getpid(), (unsigned long long)ibp_clock_ns());
        return;
    }
    ibp_text_copy(launch.text, launch.bytes, "parent");
    for (int i = 0; found && i < ANCESTORS_NOTED; i++, found = ibp_ancestor_next(process)) {
        char one[48];

        snprintf(one, sizeof one, " %ld %llu", process->pid, process->started);
        ibp_text_append(launch.text, launch.bytes, one);
    }
    /* torchrun restarts all of its ranks if one fails. Each restart is a separate launch. */
    if (!*ibp_environment("TORCHELASTIC_RESTART_COUNT")) return;
    ibp_text_append(launch.text, launch.bytes, " restart ");
    ibp_text_append(launch.text, launch.bytes, ibp_environment("TORCHELASTIC_RESTART_COUNT"));
}

/* Identify a launch with a name by the address of its PMIx server on this host; without a server, by the name. */
static void describe_named(struct name launch, const char *job)
{
    static const char *const server_addresses[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3",
                                                   "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"};

    for (size_t i = 0; i < sizeof server_addresses / sizeof *server_addresses; i++)
        if (*ibp_environment(server_addresses[i])) {
            ibp_text_copy(launch.text, launch.bytes, ibp_environment(server_addresses[i]));
            return;
        }
    ibp_text_copy(launch.text, launch.bytes, job);
}

void ibp_job_identify(char *job, size_t job_bytes, char *launch, size_t launch_bytes)
{
    const struct name job_name = {job, job_bytes}, launch_name = {launch, launch_bytes};
    struct ibp_ancestor process;
    const struct launcher *nearest;

    job[0] = launch[0] = '\0';
    nearest = find_launcher(&process);
    if (nearest && nearest->kind == BY_PROXY && ibp_hydra_describe(&process, job, job_bytes, launch, launch_bytes))
        return;
    name_job(job_name, nearest, &process);
    if (*job && !is_spawned())
        describe_named(launch_name, job);
    else
        describe_unnamed(launch_name, &process, nearest || ibp_ancestor_first(&process));
}

/* In order of precedence. */
static const struct {
    const char *rank, *ranks;
} rank_variables[] = {
    {"RANK", "WORLD_SIZE"},
    {"PMIX_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PALS_RANKID", "PALS_NRANKS"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"MPI_RANKID", "MPI_NRANKS"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

const char *ibp_launcher_rank(void)
{
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++)
        if (*ibp_environment(rank_variables[i].rank)) return ibp_environment(rank_variables[i].rank);
    return "";
}

bool ibp_job_rank(uint32_t *rank, uint32_t *ranks)
{
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        const char *const text = ibp_environment(rank_variables[i].rank);
        const char *const size = ibp_environment(rank_variables[i].ranks);

        if (!*text || !ibp_text_is_number(text) || !ibp_text_is_number(size)) continue;
        *rank = (uint32_t)ibp_text_number(text);
        *ranks = (uint32_t)ibp_text_number(size);
        if (!*ranks || *rank < *ranks) return true;
    }
    return false;
}
