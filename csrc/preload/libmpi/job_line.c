/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/job_line.h"
#include "libmpi/library.h"
#include "platform/log.h"

#include <stdbool.h>
#include <stdlib.h>

/* Return the rank that the launcher gave this process, where MPI cannot be asked; 0 where there is none. */
static int rank_by_launcher(void)
{
    static const char *const variables[] = {"PMIX_RANK",           "PMI_RANK",       "OMPI_COMM_WORLD_RANK",
                                            "PALS_RANKID",         "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK",
                                            "MV2_COMM_WORLD_RANK", "MPI_RANKID",     "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);

        if (rank && *rank) return atoi(rank);
    }
    return 0;
}

void ibp_say_once_a_job(const char *about, const char *text)
{
    static bool said;
    const int rank = ibp_mpi.abi == IBP_ABI_NONE ? rank_by_launcher() : ibp_mpi.rank;

    if ((rank == 0 && !said) || ibp_verbosity > 0) ibp_say("%s: %s", about, text);
    said = true;
}
