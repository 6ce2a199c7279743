/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/implementation.h"
#include "platform/loaded_objects.h"
#include "platform/loader.h"
#include "platform/text.h"

#include <link.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* -- symbols of one library ---------------------------------------------------------------------------------------- */

void *ibp_implementation_symbol(const struct ibp_implementation *library, const char *name)
{
    void *found = library->handle ? dlsym(library->handle, name) : NULL;

    return found && ibp_is_within(library->whole, (uintptr_t)found) ? found : NULL;
}

void *ibp_implementation_function(const struct ibp_implementation *library, const char *name)
{
    void *found = ibp_implementation_symbol(library, name);

    return found ? found : ibp_implementation_symbol(library, name + 1);
}

static bool defines_all(const struct ibp_implementation *library, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!ibp_implementation_symbol(library, names[i])) return false;
    return true;
}

/* Return whether a library defines the calls that every MPI has. Most tools define only some of these calls. */
static bool is_mpi(const struct ibp_implementation *library)
{
    static const char *const calls[] = {"MPI_Init", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Type_size", "MPI_Finalize"};

    return defines_all(library, calls, COUNT(calls));
}

/* -- loaded libraries ---------------------------------------------------------------------------------------------- */

static void describe(const struct dl_phdr_info *info, struct ibp_implementation *into)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    *into = (struct ibp_implementation){.whole = {UINTPTR_MAX, 0}, .name = slash ? slash + 1 : info->dlpi_name};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const struct ibp_span span = {info->dlpi_addr + part->p_vaddr, info->dlpi_addr + part->p_vaddr + part->p_memsz};

        if (part->p_type != PT_LOAD) continue;
        if (span.begin < into->whole.begin) into->whole.begin = span.begin;
        if (span.end > into->whole.end) into->whole.end = span.end;
        if (part->p_flags & PF_W) into->data = span;
    }
}

struct search {
    /* An address in the wanted library. If 0, the search uses `is_wanted`. */
    uintptr_t address;
    bool (*is_wanted)(const struct ibp_implementation *);
    /* The search skips the library at these addresses. */
    struct ibp_span except;
    struct ibp_implementation *found;
};

/* dl_iterate_phdr calls this function for each object. The function keeps only the wanted library open. The first
 * object, with an empty name, is the program. */
static int visit_library(struct dl_phdr_info *info, size_t bytes, void *into)
{
    static const char self;
    const struct search *search = into;
    struct ibp_implementation library;

    (void)bytes;
    if (!info->dlpi_name || !*info->dlpi_name) return 0;
    describe(info, &library);
    if (ibp_is_within(library.whole, (uintptr_t)&self) || library.whole.begin == search->except.begin) return 0;
    if (search->address && !ibp_is_within(library.whole, search->address)) return 0;
    library.handle = ibp_loaded_library(info->dlpi_name);
    if (!library.handle) return 0;
    if (search->is_wanted && !search->is_wanted(&library)) {
        dlclose(library.handle);
        return 0;
    }
    *search->found = library;
    return 1;
}

static bool look(const struct search *search)
{
    return ibp_visit_objects(visit_library, (void *)search);
}

static bool find_by_address(const void *address, struct ibp_implementation *found)
{
    return address && look(&(struct search){.address = (uintptr_t)address, .found = found});
}

void ibp_implementation_version(const struct ibp_implementation *library, char *text, size_t bytes)
{
    static char whole[IBP_LIBRARY_VERSION_MAX];
    int (*get_version)(char *, int *) = NULL;
    void *function = ibp_implementation_function(library, "PMPI_Get_library_version");
    int length = 0;

    *text = '\0';
    memcpy(&get_version, &function, sizeof function);
    if (!get_version || get_version(whole, &length)) return;
    ibp_text_copy(text, bytes, whole);
    text[strcspn(text, "\n")] = '\0';
}

/* Return true if both libraries report the same version text, or if the first library reports no version. In these
 * cases, the first library is a tool that passes all calls on with unchanged handles. */
static bool are_of_one_version(const struct ibp_implementation *one, const struct ibp_implementation *other)
{
    char version[2][256];

    ibp_implementation_version(one, version[0], sizeof version[0]);
    ibp_implementation_version(other, version[1], sizeof version[1]);
    return !*version[0] || !strcmp(version[0], version[1]);
}

bool ibp_implementation_find(struct ibp_implementation *found)
{
    struct ibp_implementation called, profiled;
    const bool is_called = find_by_address(dlsym(RTLD_NEXT, "MPI_Comm_rank"), &called) && is_mpi(&called);
    const bool is_profiled = find_by_address(dlsym(RTLD_NEXT, "PMPI_Comm_rank"), &profiled);

    if (is_called && is_profiled && called.whole.begin != profiled.whole.begin)
        *found = are_of_one_version(&called, &profiled) ? profiled : called;
    else if (is_called || is_profiled)
        *found = is_called ? called : profiled;
    else /* RTLD_NEXT does not search libraries that mpi4py and other programs open with RTLD_LOCAL */
        return look(&(struct search){.is_wanted = is_mpi, .found = found});
    return true;
}

/* -- recognition of each MPI --------------------------------------------------------------------------------------- */

static bool is_openmpi(const struct ibp_implementation *library)
{
    /* Libraries that translate Open MPI's handles define Open MPI's objects too, but not the internal functions. */
    static const char *const own[] = {"ompi_mpi_comm_world", "ompi_mpi_init", "ompi_mpi_finalize"};

    return defines_all(library, own, COUNT(own));
}

/* MPICH and derived MPIs: MVAPICH, Intel MPI, Cray MPICH, ParaStation MPI. Programs do not use the names in `own`, so
 * libraries that translate handles do not define these names. */
static bool is_of_mpich(const struct ibp_implementation *library)
{
    static const char *const own[] = {"MPIR_Err_create_code", "MPIR_Err_return_comm", "MPIR_Process", "MPIDI_Process"};

    for (size_t i = 0; i < COUNT(own); i++)
        if (ibp_implementation_symbol(library, own[i])) return true;
    return false;
}

/* Return whether a library derived from MPICH has the standard ABI of MPI 5. With MPICH's older ABI,
 * MPI_Abi_get_version sets the version to -1. */
static bool has_standard_abi(const struct ibp_implementation *library)
{
    int (*get_version)(int *, int *) = NULL;
    void *function = ibp_implementation_function(library, "PMPI_Abi_get_version");
    int major = -1, minor = -1;

    memcpy(&get_version, &function, sizeof function);
    if (get_version) return !get_version(&major, &minor) && major > 0;
    return !strncmp(library->name, "libmpi_abi", strlen("libmpi_abi"));
}

enum ibp_abi ibp_implementation_abi(const struct ibp_implementation *library)
{
    if (is_openmpi(library)) return IBP_ABI_OPENMPI;
    if (!is_of_mpich(library)) return IBP_ABI_NONE;
    return has_standard_abi(library) ? IBP_ABI_STANDARD : IBP_ABI_MPICH;
}

/* -- libraries that translate handles ------------------------------------------------------------------------------ */

static bool says_yes(const struct ibp_implementation *library, const char *name)
{
    int (*ask)(int *) = NULL;
    void *function = ibp_implementation_function(library, name);
    int answer = 0;

    memcpy(&ask, &function, sizeof function);
    return ask && !ask(&answer) && answer;
}

static bool is_known_and_running(const struct ibp_implementation *library)
{
    return ibp_implementation_abi(library) != IBP_ABI_NONE && says_yes(library, "PMPI_Initialized") &&
           !says_yes(library, "PMPI_Finalized");
}

bool ibp_implementation_find_behind(const struct ibp_implementation *front, struct ibp_implementation *found)
{
    return look(&(struct search){.is_wanted = is_known_and_running, .except = front->whole, .found = found});
}
