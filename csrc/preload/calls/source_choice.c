/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/source_choice.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/log.h"
#include "platform/text.h"
#include "sources/mpich/libfabric.h"
#include "sources/mpich/ucx.h"
#include "sources/openmpi/openmpi.h"

#include <stdio.h>
#include <strings.h>

/* The sources of each MPI, most likely first. Open MPI may send by UCX or libfabric, but ibprof counts the messages in
 * Open MPI's higher layer. */
static const struct ibp_source_operations *const sources_of_openmpi[] = {&ibp_source_openmpi, NULL};
static const struct ibp_source_operations *const sources_behind_layer[] = {&ibp_source_openmpi_behind_layer, NULL};
static const struct ibp_source_operations *const sources_of_mpich[] = {&ibp_source_ucx, &ibp_source_libfabric, NULL};

static const struct ibp_source_operations *const *list_sources(void)
{
    if (ibp_mpi.is_behind_layer) return sources_behind_layer;
    return ibp_mpi.abi == IBP_ABI_OPENMPI ? sources_of_openmpi : sources_of_mpich;
}

/* Values of IBPROF_SOURCE. With `auto` and `exact`, ibprof chooses the source. With `verbs`, ibprof records only work
 * requests. */
static const char *const known[] = {"auto", "exact", "openmpi", "ucx", "libfabric", "verbs"};
enum { FIRST_NAME = 2, KNOWN = sizeof known / sizeof *known };

static const char *asked(void)
{
    return *ibp_environment("IBPROF_SOURCE") ? ibp_environment("IBPROF_SOURCE") : "auto";
}

static int number_asked_for(void)
{
    for (int i = 0; i < KNOWN; i++)
        if (!strcasecmp(asked(), known[i])) return i;
    return -1;
}

/* Return whether IBPROF_SOURCE names `source`, or lets ibprof choose. */
static bool is_asked_for(const struct ibp_source_operations *source)
{
    return number_asked_for() < FIRST_NAME || !strcasecmp(asked(), source->name);
}

void ibp_sources_describe_unknown(char *unknown, size_t bytes)
{
    *unknown = '\0';
    if (number_asked_for() < 0)
        snprintf(unknown, bytes,
                 "%.64s; ibprof chooses a source; known values: auto, exact, openmpi, ucx, libfabric, verbs", asked());
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

    if (!strcasecmp(asked(), "verbs"))
        snprintf(why, why_bytes, "IBPROF_SOURCE=verbs records only work requests");
    else
        snprintf(why, why_bytes, "this MPI (%s) has no source %s", ibp_mpi.version, asked());
    for (; *source; source++) {
        if (!is_asked_for(*source)) continue;
        if (!(*source)->attach(why, why_bytes)) return *source;
        ibp_log(2, "messages are not recorded by source %s: %s", (*source)->name, why);
    }
    ibp_got_restore();
    return NULL;
}
