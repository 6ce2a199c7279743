/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "python/symbols.h"
#include "platform/loaded_objects.h"
#include "platform/loader.h"

#include <link.h>
#include <string.h>

static int visit_library(struct dl_phdr_info *info, size_t bytes, void *into)
{
    static const char name[] = "/libpython3";
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)bytes;
    if (!slash || strncmp(slash, name, strlen(name))) return 0;
    *(const char **)into = info->dlpi_name;
    return 1;
}

/* Return a handle of the interpreter's library; NULL if it is not loaded. With RTLD_LOCAL, dlsym needs the handle. */
static void *hidden_library(void)
{
    const char *path = NULL;

    ibp_visit_objects(visit_library, &path);
    return path ? ibp_loaded_library(path) : NULL;
}

/* Keep the interpreter's library loaded after the program closes it, because ibprof calls a function of the library. */
static void keep_loaded(const void *symbol)
{
    ibp_open_function *open = ibp_loader_open();
    Dl_info info;

    if (open && dladdr && dladdr(symbol, &info) && info.dli_fname)
        open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static unsigned long find_version(void *library)
{
    const unsigned long *version = dlsym(library, "Py_Version"); /* from 3.11 on */

    if (version) return *version;
    if (dlsym(library, "PyIter_Send")) return 0x030a00f0;
    return dlsym(library, "PyFrame_GetBack") ? 0x030900f0 : 0;
}

bool ibp_python_find_symbols(struct ibp_python_symbols *symbols)
{
    void *library = RTLD_DEFAULT, *function;

    if (!dlsym) return false;
    symbols->runtime = dlsym(library, "_PyRuntime");
    if (!symbols->runtime && (library = hidden_library())) symbols->runtime = dlsym(library, "_PyRuntime");
    if (!symbols->runtime) return false;
    keep_loaded(symbols->runtime);
    symbols->version = find_version(library);
    symbols->code_type = dlsym(library, "PyCode_Type");
    symbols->string_type = dlsym(library, "PyUnicode_Type");
    symbols->bytes_type = dlsym(library, "PyBytes_Type");
    symbols->frame_type = dlsym(library, "PyFrame_Type");
    symbols->type_type = dlsym(library, "PyType_Type");
    function = dlsym(library, "PyGILState_GetThisThreadState");
    memcpy(&symbols->thread_state, &function, sizeof function);
    return true;
}
