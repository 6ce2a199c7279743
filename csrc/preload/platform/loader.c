/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/loader.h"

#include <string.h>

ibp_open_function *ibp_loader_open(void)
{
    static ibp_open_function *found;
    ibp_open_function *open = __atomic_load_n(&found, __ATOMIC_RELAXED);
    void *function;

    if (!open && dlsym) {
        function = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&open, &function, sizeof open);
        __atomic_store_n(&found, open, __ATOMIC_RELAXED);
    }
    return open;
}

void *ibp_loaded_library(const char *path)
{
    ibp_open_function *open = ibp_loader_open();

    return open ? open(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}
