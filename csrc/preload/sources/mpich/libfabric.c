/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * MPI calls most functions of libfabric through tables of functions in libfabric's objects. ibprof first redirects the
 * function that opens a fabric. When MPI has opened a fabric, ibprof replaces the fabric's tables, and later the tables
 * of the fabric's domains and endpoints.
 */
#include "platform/system.h"
#include "sources/mpich/libfabric.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/text.h"
#include "sources/mpich/libfabric_abi.h"
#include "sources/mpich/libfabric_layout.h"
#include "sources/mpich/libfabric_memory.h"
#include "sources/mpich/libfabric_peers.h"
#include "sources/mpich/libfabric_rendezvous.h"
#include "sources/mpich/libfabric_sends.h"
#include "sources/mpich/libfabric_tables.h"
#include "sources/mpich/messages.h"
#include "sources/mpich/proof.h"

#include <stdio.h>
#include <string.h>

typedef int fabric_function(void *, struct ibp_fi_fabric **, void *);
typedef void *dlvsym_function(void *, const char *, const char *);
typedef void *dlsym_function(void *, const char *);

static struct {
    fabric_function *fabric;
    dlvsym_function *dlvsym;
    dlsym_function *dlsym;
} original;

/* -- objects ------------------------------------------------------------------------------------------------------- */

static int hook_transmit_context(struct ibp_fi_endpoint *scalable, int index, void *attributes,
                                 struct ibp_fi_endpoint **object, void *context)
{
    const int result = ORIGINAL(scalable->table)->transmit_context(scalable, index, attributes, object, context);

    if (!result) ibp_fi_hook_sends(*object, OWNED(scalable->table)->owner);
    return result;
}

static int hook_endpoint(struct ibp_fi_domain *domain, void *info, struct ibp_fi_endpoint **object, void *context)
{
    const int result = ORIGINAL(domain->table)->endpoint(domain, info, object, context);
    struct ibp_fi_known_endpoint *endpoint = result ? NULL : ibp_fi_add_endpoint(*object, domain);

    if (endpoint) ibp_fi_hook_sends(*object, endpoint);
    return result;
}

static int hook_scalable_endpoint(struct ibp_fi_domain *domain, void *info, struct ibp_fi_endpoint **object,
                                  void *context)
{
    const int result = ORIGINAL(domain->table)->scalable_endpoint(domain, info, object, context);
    struct ibp_fi_known_endpoint *endpoint = result ? NULL : ibp_fi_add_endpoint(*object, domain);

    if (endpoint && ibp_fi_copy_table(&(*object)->table, endpoint))
        PUT((*object)->table, transmit_context, hook_transmit_context);
    return result;
}

static int hook_av_open(struct ibp_fi_domain *domain, void *attributes, struct ibp_fi_av **av, void *context)
{
    const int result = ORIGINAL(domain->table)->av_open(domain, attributes, av, context);

    if (!result) ibp_fi_add_addresses(*av, domain);
    return result;
}

static int hook_domain(struct ibp_fi_fabric *fabric, void *info, struct ibp_fi_domain **domain, void *context)
{
    const int result = ORIGINAL(fabric->table)->domain(fabric, info, domain, context);

    if (result || !ibp_fi_copy_table(&(*domain)->table, NULL)) return result;
    PUT((*domain)->table, av_open, hook_av_open);
    PUT((*domain)->table, endpoint, hook_endpoint);
    PUT((*domain)->table, scalable_endpoint, hook_scalable_endpoint);
    ibp_fi_hook_domain(*domain);
    return result;
}

static int hook_fabric(void *attributes, struct ibp_fi_fabric **fabric, void *context)
{
    const int result = original.fabric(attributes, fabric, context);

    if (!result && ibp_fi_copy_table(&(*fabric)->table, NULL)) PUT((*fabric)->table, domain, hook_domain);
    return result;
}

/* Intel MPI finds libfabric's functions by dlsym. For other names than fi_fabric, the hooks make a tail call of the
 * real dlsym, because its result may depend on the caller. */
static void *found_fabric(void *function)
{
    if (!function) return NULL;
    memcpy(&original.fabric, &function, sizeof function);
    return (void *)hook_fabric;
}

static void *hook_dlvsym(void *library, const char *name, const char *version)
{
    if (strcmp(name, "fi_fabric")) return original.dlvsym(library, name, version);
    return found_fabric(original.dlvsym(library, name, version));
}

static void *hook_dlsym(void *library, const char *name)
{
    if (strcmp(name, "fi_fabric")) return original.dlsym(library, name);
    return found_fabric(original.dlsym(library, name));
}

/* -- hooking in ---------------------------------------------------------------------------------------------------- */

static void prepare(void)
{
    if (ibp_got_redirect("fi_fabric", (void *)hook_fabric, &original.fabric)) return;
    ibp_got_redirect("dlvsym", (void *)hook_dlvsym, &original.dlvsym);
    ibp_got_redirect("dlsym", (void *)hook_dlsym, &original.dlsym);
}

static int attach(char *why, size_t why_bytes)
{
    if (!ibp_fi_enter_own_names()) {
        snprintf(why, why_bytes, "this MPI (%s) does not send through libfabric", ibp_mpi.version);
        return -1;
    }
    ibp_fi_find_layout();
    return ibp_mpich_probe(why, why_bytes);
}

static void describe_gaps(char *notes, size_t bytes)
{
    ibp_mpich_describe_gaps(notes, bytes);
    ibp_fi_describe_rendezvous(notes, bytes);
    if (ibp_fi_work_was_queued())
        ibp_text_append(notes, bytes,
                        "ibprof does not see triggered operations of libfabric, which some collectives use\n");
    if (ibp_fi_is_beyond_limit())
        ibp_text_append(notes, bytes, "there were more endpoints of libfabric than ibprof can watch\n");
}

const struct ibp_source_operations ibp_source_libfabric = {
    .source = IBP_SOURCE_LIBFABRIC,
    .name = "libfabric",
    .prepare = prepare,
    .attach = attach,
    .describe_gaps = describe_gaps,
    IBP_MPICH_SOURCE,
};
