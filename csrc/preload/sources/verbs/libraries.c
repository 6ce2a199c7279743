/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/libraries.h"
#include "platform/loader.h"

#include <string.h>

/* The libraries, and the prefix of their functions' names. */
static const struct {
    const char *prefix, *library;
} owners[] = {
    {"ibv_", IBP_VERBS_LIBRARY}, {"mlx5dv_", IBP_MLX5_LIBRARY}, {"mlx4dv_", IBP_MLX4_LIBRARY},
    {"efadv_", IBP_EFA_LIBRARY}, {"hnsdv_", IBP_HNS_LIBRARY},   {"manadv_", IBP_MANA_LIBRARY},
};

void *ibp_verbs_real_in(const char *library_name, const char *name)
{
    void *library = ibp_loaded_library(library_name);
    void *found = NULL;

    /* In libibverbs, select version IBVERBS_1.1, because IBVERBS_1.0 is another binary interface. In the vendors'
     * libraries, use the default version. */
    if (library && dlvsym) found = dlvsym(library, name, "IBVERBS_1.1");
    if (library && !found) found = dlsym(library, name);
    return found;
}

const char *ibp_verbs_library_of(const char *name)
{
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        if (!strncmp(name, owners[i].prefix, strlen(owners[i].prefix))) return owners[i].library;
    return NULL;
}

bool ibp_verbs_is_library(const char *file)
{
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        const char *version = strrchr(owners[i].library, '.');

        if (!strncmp(file, owners[i].library, (size_t)(version - owners[i].library))) return true;
    }
    return false;
}

void *ibp_verbs_real(const char *name)
{
    const char *library = ibp_verbs_library_of(name);

    return library ? ibp_verbs_real_in(library, name) : NULL;
}
