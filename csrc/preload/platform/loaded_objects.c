/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/loaded_objects.h"

#include <signal.h>
#include <stddef.h>

bool ibp_can_visit_objects(void)
{
    return dl_iterate_phdr != NULL;
}

int ibp_visit_objects(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *into), void *into)
{
    /* Signals of faults are not blocked. A fault whose signal is blocked ends the process, even if the program has a
     * handler. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t block, before;
    bool is_blocked;
    int last;

    if (!ibp_can_visit_objects()) return 0;
    sigfillset(&block);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&block, faults[i]);
    is_blocked = !sigprocmask(SIG_BLOCK, &block, &before);
    last = dl_iterate_phdr(visit, into);
    if (is_blocked) sigprocmask(SIG_SETMASK, &before, NULL);
    return last;
}

static int copy_unloaded(struct dl_phdr_info *info, size_t bytes, void *into)
{
    if (bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(unsigned long long *)into = info->dlpi_subs;
    return 1;
}

unsigned long long ibp_objects_unloaded(void)
{
    unsigned long long unloaded = 0;

    ibp_visit_objects(copy_unloaded, &unloaded);
    return unloaded;
}
