/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Some programs open an MPI library or libibverbs with dlopen, and find the library's functions with dlsym. Examples
 * are ctypes, Julia and NCCL. ibprof hooks dlsym. If dlsym finds a function that ibprof wraps, the hook returns
 * ibprof's wrapper.
 *
 * When a library is closed, ibprof forgets its call sites, because the dynamic linker may map a new library at the same
 * addresses.
 */
#include "platform/system.h"
#include "calls/large_calls.h"
#include "counting/calls.h"
#include "counting/repeats.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/loader.h"
#include "sources/verbs/libraries.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)

typedef void *lookup_function(void *, const char *);
typedef void *versioned_lookup_function(void *, const char *, const char *);

static struct {
    lookup_function *lookup;
    versioned_lookup_function *versioned_lookup;
} real;

static void fill(void *into, void *function)
{
    memcpy(into, &function, sizeof function);
}

/* -- ibprof's functions -------------------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool is_mpi_call(const char *name)
{
    return begins(name, "MPI_") || begins(name, "PMPI_") || begins(name, "MPIX_") || begins(name, "PMPIX_");
}

/* Return true if the first characters of a name may belong to a function that ibprof wraps. The function must be fast,
 * because every lookup calls it. */
static bool is_watched(const char *name)
{
    switch (name[0]) {
    case 'e':
    case 'h':
    case 'i':
    case 'm':
        return ibp_verbs_library_of(name);
    default:
        return is_mpi_call(name);
    }
}

static void *our_function(const char *name)
{
    static void *own;
    Dl_info self;
    void *found;

    if (!own && dladdr((void *)our_function, &self)) own = ibp_loaded_library(self.dli_fname);
    found = own ? dlsym(own, name) : NULL;
    return found ? found : ibp_large_call(name);
}

/* If ibprof's wrapper with this name calls the function `found`, return the wrapper. Otherwise return `found`, which
 * may be another tool's function, or another version of the wrapped function. */
static void *prefer_own(const char *name, void *found)
{
    void *own = found ? our_function(name) : NULL;

    if (!own || own == found) return found;
    return found == (is_mpi_call(name) ? ibp_mpi_next(name) : ibp_verbs_real(name)) ? own : found;
}

/* 1 if the program has opened a library with RTLD_DEEPBIND and ibprof has not yet redirected the library's MPI calls.
 * The dynamic linker binds the MPI calls of such a library directly to the MPI library, so these calls bypass
 * ibprof. */
static char opened_deep;

/* Before a lookup: redirect the MPI calls of libraries that were opened with RTLD_DEEPBIND. */
static void follow_deep_calls(void)
{
    if (IBP_LIKELY(!__atomic_load_n(&opened_deep, __ATOMIC_RELAXED))) return;
    if (__atomic_exchange_n(&opened_deep, 0, __ATOMIC_ACQ_REL) && ibp_mpi_next("MPI_Init"))
        ibp_got_redirect_deep(prefer_own);
}

static void *look_up(void *library, const char *name)
{
    return prefer_own(name, real.lookup(library, name));
}

static void *look_up_version(void *library, const char *name, const char *version)
{
    return prefer_own(name, real.versioned_lookup(library, name, version));
}

/* Return whether ibprof must check the result of a lookup. Lookups with RTLD_DEFAULT and RTLD_NEXT find ibprof's
 * wrappers without help, and the results depend on the caller. */
static bool is_answered(void *library, const char *name)
{
    return library != RTLD_DEFAULT && library != RTLD_NEXT && name && is_watched(name);
}

__attribute__((used)) static lookup_function *choose_lookup(void *library, const char *name)
{
    follow_deep_calls();
    return is_answered(library, name) ? look_up : real.lookup;
}

__attribute__((used)) static versioned_lookup_function *choose_versioned_lookup(void *library, const char *name)
{
    follow_deep_calls();
    return is_answered(library, name) ? look_up_version : real.versioned_lookup;
}

/* -- tail calls ---------------------------------------------------------------------------------------------------- */

/* Define a function that calls `choose` with its arguments, and then jumps to the function that `choose` returns. The
 * results of dlsym and dlopen depend on the caller. After the jump, dlsym and dlopen see the program as their caller,
 * and not ibprof. The macro uses assembler, because compilers do not guarantee a jump. */
#define TAIL_JUMP(name, choose)                                                                                        \
    __asm__(".text\n.type " #name ",@function\n" #name ":\n"                                                           \
            ".cfi_startproc\n"                                                                                         \
            "push %rdi\n.cfi_adjust_cfa_offset 8\n"                                                                    \
            "push %rsi\n.cfi_adjust_cfa_offset 8\n"                                                                    \
            "push %rdx\n.cfi_adjust_cfa_offset 8\n"                                                                    \
            "call " #choose "\n"                                                                                       \
            "pop %rdx\n.cfi_adjust_cfa_offset -8\n"                                                                    \
            "pop %rsi\n.cfi_adjust_cfa_offset -8\n"                                                                    \
            "pop %rdi\n.cfi_adjust_cfa_offset -8\n"                                                                    \
            "jmp *%rax\n"                                                                                              \
            ".cfi_endproc\n.size " #name ",.-" #name "\n")

TAIL_JUMP(ibp_dlsym_by_caller, choose_lookup);
TAIL_JUMP(ibp_dlvsym_by_caller, choose_versioned_lookup);
extern IBP_INTERNAL void ibp_dlsym_by_caller(void), ibp_dlvsym_by_caller(void);

/* -- interposing dlopen -------------------------------------------------------------------------------------------- */

static void redirect_lookups(void)
{
    static char lock;

    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) sched_yield();
    if (!real.lookup) {
        fill(&real.lookup, dlsym(RTLD_DEFAULT, "dlsym"));
        fill(&real.versioned_lookup, dlsym(RTLD_DEFAULT, "dlvsym"));
    }
    if (real.lookup) ibp_got_redirect_all("dlsym", (void *)real.lookup, (void *)ibp_dlsym_by_caller);
    if (real.versioned_lookup)
        ibp_got_redirect_all("dlvsym", (void *)real.versioned_lookup, (void *)ibp_dlvsym_by_caller);
    __atomic_clear(&lock, __ATOMIC_RELEASE);
}

static bool is_watched_library(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    return ibp_verbs_is_library(name) || ibp_is_mpi_library(path);
}

static void *open_nothing(const char *path, int flags)
{
    (void)path, (void)flags;
    return NULL;
}

/* Redirect dlsym in all loaded objects before the program opens an MPI library, libibverbs, or a library with
 * RTLD_DEEPBIND. Any object may look up functions of this new library. */
__attribute__((used)) static ibp_open_function *choose_open(const char *path, int flags)
{
    ibp_open_function *open = ibp_loader_open();

    if (ibp_calls_forget_unloaded()) ibp_repeats_forget_later();
    if (path && (is_watched_library(path) || flags & RTLD_DEEPBIND)) redirect_lookups();
    if (path && flags & RTLD_DEEPBIND) __atomic_store_n(&opened_deep, 1, __ATOMIC_RELEASE);
    return open ? open : open_nothing;
}

TAIL_JUMP(dlopen, choose_open);
__asm__(".globl dlopen");

#endif
