/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/verbs/libraries.h"
#include "platform/loader.h"

#include <string.h>

void *ibp_verbs_real_in(const char *library_name, const char *name)
{
    void *library = ibp_loaded_library(library_name);
    void *found = NULL;

    /* By version, because 1.0 has another binary interface; of the others the default is meant. */
    if (library && dlvsym) found = dlvsym(library, name, "IBVERBS_1.1");
    if (library && !found) found = dlsym(library, name);
    return found;
}

void *ibp_verbs_real(const char *name)
{
    return ibp_verbs_real_in(strncmp(name, "mlx5dv_", strlen("mlx5dv_")) ? IBP_VERBS_LIBRARY : IBP_MLX5_LIBRARY, name);
}
