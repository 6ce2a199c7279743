/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/openmpi/table.h"
#include "platform/log.h"

#include <stdio.h>
#include <string.h>

#define SLOTS_MAX 24

static const char *const slots_of_4[SLOTS_MAX] = {"add_procs", "del_procs",  "enable", "progress", "add_comm",
                                                  "del_comm",  "irecv_init", "irecv",  "recv",     "isend_init",
                                                  "isend",     "send",       "iprobe", "probe",    "start",
                                                  "improbe",   "mprobe",     "imrecv", "mrecv",    "dump"};
static const char *const slots_of_5[SLOTS_MAX] = {
    "add_procs",  "del_procs", "enable",  "progress",   "add_comm", "del_comm", "revoke_comm",
    "irecv_init", "irecv",     "recv",    "isend_init", "isend",    "send",     "iprobe",
    "probe",      "start",     "improbe", "mprobe",     "imrecv",   "mrecv",    "dump"};

struct ibp_openmpi_functions ibp_openmpi_next;

static void **table;
static const char *const *slots;

/* Return the table entry whose name is the end of a function's name: `isend` for mca_pml_ob1_isend. Return NULL if
 * there is no such entry. */
static const char *slot_named(const char *symbol)
{
    for (size_t i = 0; i < SLOTS_MAX && slots_of_5[i]; i++) {
        const size_t name = strlen(slots_of_5[i]), length = strlen(symbol);

        if (length > name && symbol[length - name - 1] == '_' && !strcmp(symbol + length - name, slots_of_5[i]))
            return slots_of_5[i];
    }
    return NULL;
}

/* Return how many functions of the table have the name that the layout expects at their entry. Return -1 if the layout
 * expects a function's name at another entry. */
static int confirm_layout(const char *const *layout)
{
    int confirmed = 0;

    for (size_t i = 0; i < SLOTS_MAX && layout[i]; i++) {
        const char *named;
        Dl_info function;

        if (!table[i] || !dladdr(table[i], &function) || !function.dli_sname || function.dli_saddr != table[i])
            continue;
        named = slot_named(function.dli_sname);
        if (!named) continue;
        if (strcmp(named, layout[i])) return -1;
        confirmed++;
    }
    return confirmed;
}

/* Return the layout of the table; NULL if it is unknown. If both layouts match equally many names, decide by Open MPI's
 * version. */
static const char *const *find_layout(void)
{
    const int as_4 = confirm_layout(slots_of_4), as_5 = confirm_layout(slots_of_5);

    ibp_log(3, "mca_pml: %d functions agree with the layout of Open MPI 4, %d with the layout of 5", as_4, as_5);
    if (as_4 < 3 && as_5 < 3) return NULL;
    if (as_4 != as_5) return as_4 > as_5 ? slots_of_4 : slots_of_5;
    if (strstr(ibp_mpi.version, "v4.")) return slots_of_4;
    return strstr(ibp_mpi.version, "v5.") ? slots_of_5 : NULL;
}

int ibp_openmpi_table_find(char *why, size_t why_bytes)
{
    table = ibp_mpi_symbol("mca_pml");
    if (!table) {
        snprintf(why, why_bytes, "this Open MPI (%s) does not show its table of point-to-point calls", ibp_mpi.version);
        return -1;
    }
    slots = find_layout();
    if (!slots) {
        snprintf(why, why_bytes, "the table of point-to-point calls of this Open MPI (%s) has an unknown layout",
                 ibp_mpi.version);
        return -1;
    }
    return 0;
}

static void hook_slot(const struct ibp_openmpi_hook *hook)
{
    for (size_t i = 0; i < SLOTS_MAX && slots[i]; i++)
        if (table[i] && !strcmp(slots[i], hook->slot)) {
            memcpy(hook->next, &table[i], sizeof table[i]);
            table[i] = hook->function;
        }
}

void ibp_openmpi_table_hook(const struct ibp_openmpi_hook *hooks, size_t count)
{
    for (size_t i = 0; i < count; i++) hook_slot(&hooks[i]);
}

void ibp_openmpi_table_unhook(const struct ibp_openmpi_hook *hooks, size_t count)
{
    for (size_t i = 0; table && i < SLOTS_MAX; i++)
        for (size_t hook = 0; hook < count; hook++)
            if (table[i] == hooks[hook].function) memcpy(&table[i], hooks[hook].next, sizeof table[i]);
}

static bool sends_by(const char *name)
{
    Dl_info function;

    return dladdr((void *)(uintptr_t)ibp_openmpi_next.send, &function) && function.dli_sname &&
           !strcmp(function.dli_sname, name);
}

bool ibp_openmpi_sends_by_ob1(void)
{
    return sends_by("mca_pml_ob1_send");
}

bool ibp_openmpi_sends_pass_progress(void)
{
    return ibp_openmpi_sends_by_ob1() || sends_by("mca_pml_ucx_send");
}
