/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which source this MPI's bytes are seen by.
 */
#include "system.h"
#include "redirect.h"
#include "source.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct ibp_source_operations *ibp_source;
bool ibp_source_unproved;

/* Those that an MPI can have, the likelier one first. One of Open MPI's components may use UCX or libfabric too, below the
 * place where we see its messages. */
static const struct ibp_source_operations *const sources_of_openmpi[] = {&ibp_source_openmpi, NULL};
static const struct ibp_source_operations *const sources_of_others[] = {&ibp_source_ucx, &ibp_source_libfabric, NULL};

static const struct ibp_source_operations *const *list_sources(void)
{
    return ibp_mpi.abi == IBP_ABI_OPENMPI ? sources_of_openmpi : sources_of_others;
}

/* Whether IBPROF_SOURCE names a source, or leaves the choice to us. */
static bool is_asked_for(const struct ibp_source_operations *source)
{
    static const char *const all[] = {"openmpi", "ucx", "libfabric"};
    const char *asked = getenv("IBPROF_SOURCE");

    for (size_t i = 0; asked && i < sizeof all / sizeof *all; i++)
        if (!strcasecmp(asked, all[i])) return !strcasecmp(asked, source->name);
    return true;
}

void ibp_sources_prepare(void)
{
    const struct ibp_source_operations *const *source = list_sources();

    for (; *source; source++)
        if ((*source)->prepare && is_asked_for(*source)) (*source)->prepare();
}

const struct ibp_source_operations *ibp_sources_choose(char *why, size_t why_bytes)
{
    const struct ibp_source_operations *const *source = list_sources();

    snprintf(why, why_bytes, "this MPI (%s) has no source %s", ibp_mpi.version, getenv("IBPROF_SOURCE"));
    for (; *source; source++) {
        if (!is_asked_for(*source)) continue;
        if (!(*source)->attach(why, why_bytes)) return *source;
        ibp_log(2, "not by %s: %s", (*source)->name, why);
    }
    ibp_redirect_undo();
    return NULL;
}
