/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/job_line.h"
#include "libmpi/library.h"
#include "platform/log.h"
#include "recording/job_name.h"

#include <stdbool.h>
#include <stdlib.h>

void ibp_say_once_a_job(const char *about, const char *text)
{
    static bool said;
    const int rank = ibp_mpi.abi == IBP_ABI_NONE ? atoi(ibp_launcher_rank()) : ibp_mpi.rank;

    if ((rank == 0 && !said) || ibp_verbosity > 0) ibp_say("%s: %s", about, text);
    said = true;
}
