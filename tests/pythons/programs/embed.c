/* SPDX-License-Identifier: Apache-2.0
 * A program that opens the interpreter's library with hidden symbols, and runs a script. Where the script calls
 * sys.audit("probe"), the program prints the file, line and function that ibprof finds.
 *
 *     embed LIBRARY SCRIPT
 */
#include "platform/system.h"
#include "python/script_frames.h"

#include <stdio.h>
#include <string.h>

static int hook(const char *event, void *arguments, void *data)
{
    struct ibp_script_frame frame;
    char file[256], function[256];
    uint32_t line;

    (void)arguments, (void)data;
    if (!strcmp(event, "probe") && ibp_script_find(&frame) &&
        ibp_script_describe(&frame, file, sizeof file, function, sizeof function, &line))
        printf("%s:%u %s\n", file, line, function);
    return 0;
}

int main(int argc, char **argv)
{
    void *python = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*initialize)(void), (*finalize)(void);
    int (*run)(const char *), (*add_hook)(int (*)(const char *, void *, void *), void *);
    struct ibp_script_frame frame;

    if (!python) return 2;
    initialize = (void (*)(void))dlsym(python, "Py_Initialize");
    finalize = (void (*)(void))dlsym(python, "Py_FinalizeEx");
    run = (int (*)(const char *))dlsym(python, "PyRun_SimpleString");
    add_hook = (int (*)(int (*)(const char *, void *, void *), void *))dlsym(python, "PySys_AddAuditHook");
    for (int round = 0; round < 2; round++) {
        printf("before: %d\n", ibp_script_find(&frame));
        initialize();
        printf("without frames: %d\n", ibp_script_find(&frame));
        add_hook(hook, NULL);
        if (run(argv[2])) return 1;
        printf("without frames: %d\n", ibp_script_find(&frame));
        finalize();
        printf("after: %d\n", ibp_script_find(&frame));
    }
    return 0;
}
