/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/job_line.h"
#include "libmpi/library.h"
#include "platform/log.h"

#include <stdbool.h>

void ibp_say_once_a_job(const char *about, const char *text)
{
    static bool said;

    if ((ibp_mpi.rank == 0 && !said) || ibp_verbosity > 0) ibp_say("%s: %s", about, text);
    said = true;
}
