/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/caller_chains.h"
#include "libmpi/callers.h"
#include "libmpi/lock.h"
#include "platform/stack_walk.h"
#include "platform/text.h"
#include "recording/objects.h"

#include <string.h>

unsigned ibp_callers_recorded;

static uint64_t callers_asked(void)
{
    const char *given = ibp_environment("IBPROF_CALLERS");

    return ibp_text_is_number(given) ? ibp_text_number(given) : 0;
}

void ibp_callers_prepare(void)
{
    const uint64_t asked = callers_asked();

    if (!asked || !ibp_stack_walk_prepare()) return;
    ibp_callers_recorded = asked < IBP_CALLERS_MAX ? (unsigned)asked : IBP_CALLERS_MAX;
}

/* -- kinds of code ------------------------------------------------------------------------------------------------- */

enum kind {
    /* Code outside of all loaded objects, such as code that was compiled at run time. */
    IS_UNKNOWN,
    IS_OF_PROGRAM,
    /* Code of MPI or its bindings. */
    IS_OF_MPI,
    /* Code of the Python interpreter, or of a library that calls C functions for Python. */
    IS_OF_PYTHON,
    /* Code of libc, the dynamic linker or ibprof. This code may call functions of the program, for example the
     * comparison function of qsort. */
    IS_OF_SYSTEM
};

static bool begins_with_any(const char *name, const char *const *begins)
{
    for (; *begins; begins++)
        if (!strncmp(name, *begins, strlen(*begins))) return true;
    return false;
}

/* Return the kind of the code at an address: of the program, MPI, Python or the system. The lock must be held. */
static enum kind judge(const void *address)
{
    static const char *const mpi[] = {"libopen-pal", "libopen-rte", "mca_", NULL};
    static const char *const of_system[] = {"libc.so", "libc-", "ld-", "libpthread", NULL};
    struct ibp_object_place where, own;
    const char *slash, *name;

    if (!ibp_object_find(address, &where)) return IS_UNKNOWN;
    if (ibp_object_find((const void *)judge, &own) && where.path == own.path && *own.path) return IS_OF_SYSTEM;
    if (ibp_object_calls_for_python(where.path)) {
        ibp_script_seek_again(); /* search again: the interpreter may be loaded by now */
        return IS_OF_PYTHON;
    }
    slash = strrchr(where.path, '/');
    name = slash ? slash + 1 : where.path;
    if (ibp_is_mpi_binding(where.path) || begins_with_any(name, mpi)) return IS_OF_MPI;
    return begins_with_any(name, of_system) ? IS_OF_SYSTEM : IS_OF_PROGRAM;
}

/* Cache of kinds by address. An element is an address whose upper 4 bits are replaced by the kind. */
#define JUDGED 1024
static uint64_t known[JUDGED];

static enum kind kind_of(const void *address)
{
    const uint64_t number = (uintptr_t)address & ((UINT64_C(1) << 60) - 1);
    uint64_t *const place = &known[(number * UINT64_C(0x9e3779b97f4a7c15) >> 40) % JUDGED];
    const uint64_t judged = __atomic_load_n(place, __ATOMIC_RELAXED);
    enum kind kind;

    if (IBP_LIKELY((judged & ((UINT64_C(1) << 60) - 1)) == number)) return (enum kind)(judged >> 60);
    ibp_lock();
    kind = judge(address);
    ibp_unlock();
    __atomic_store_n(place, number | (uint64_t)kind << 60, __ATOMIC_RELAXED);
    return kind;
}

/* -- chains -------------------------------------------------------------------------------------------------------- */

/* Number of calls of ibp_caller_chains_forget. */
static uint64_t generation;

void ibp_caller_chains_forget(void)
{
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < JUDGED; i++) __atomic_store_n(&known[i], 0, __ATOMIC_RELAXED);
    ibp_stack_walk_forget();
}

struct collecting {
    struct ibp_caller_chain *chain;
    /* The return address at which the chain begins. The stack walk skips the inner frames, which belong to ibprof and
     * MPI. */
    const void *first;
    bool is_found;
    uint64_t hash;
};

static uint64_t mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 31;
}

static unsigned length(const struct ibp_caller_chain *chain)
{
    return chain->addresses + chain->frames;
}

static void add_address(struct collecting *collecting, const void *address)
{
    collecting->chain->address[collecting->chain->addresses++] = address;
    collecting->hash = mix(collecting->hash, (uintptr_t)address);
}

static void add_frames(struct collecting *collecting)
{
    struct ibp_caller_chain *const chain = collecting->chain;
    struct ibp_script_frame frame;

    for (bool is_found = ibp_script_find(&frame); is_found && length(chain) <= ibp_callers_recorded;
         is_found = ibp_script_next(&frame)) {
        chain->frame[chain->frames++] = frame;
        collecting->hash = mix(collecting->hash, frame.key);
    }
}

static bool collect(void *into, const void *address)
{
    struct collecting *const collecting = into;

    if (!collecting->is_found) {
        collecting->is_found = address == collecting->first;
        return true;
    }
    switch (kind_of(address)) {
    case IS_OF_PROGRAM:
        add_address(collecting, address);
        return length(collecting->chain) <= ibp_callers_recorded;
    case IS_OF_PYTHON:
        add_frames(collecting);
        return false;
    case IS_UNKNOWN:
        return false;
    default:
        return true;
    }
}

bool ibp_caller_chain_find(const void *address, struct ibp_caller_chain *chain)
{
    struct collecting collecting = {
        .chain = chain,
        .first = address,
        .hash = __atomic_load_n(&generation, __ATOMIC_RELAXED),
    };
    enum kind kind = kind_of(address);

    chain->addresses = chain->frames = 0;
    if (kind == IS_OF_MPI) {
        collecting.first = ibp_binding_caller();
        if (!collecting.first) return false;
        kind = kind_of(collecting.first);
    }
    if (kind == IS_UNKNOWN) return false;
    if (kind == IS_OF_PYTHON) {
        add_frames(&collecting);
    } else {
        add_address(&collecting, collecting.first);
        ibp_stack_walk(collect, &collecting);
    }
    chain->key = (const void *)(uintptr_t)((collecting.hash | UINT64_C(1) << 63) & ~(UINT64_C(1) << 62));
    return length(chain) > 0;
}
