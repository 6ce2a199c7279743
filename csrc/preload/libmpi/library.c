/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/library.h"
#include "platform/loaded_objects.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct ibp_mpi ibp_mpi;

bool ibp_is_mpi_library(const char *path)
{
    static const char *const names[] = {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi_cray.so", "libmpi_gnu"};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

/* The library whose MPI functions the program calls: the MPI library, or a library that translates handles. */
static struct ibp_implementation front;

/* The program comes first. */
static int visit_program(struct dl_phdr_info *info, size_t bytes, void *into)
{
    struct ibp_span *span = into;

    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_W) {
            span->begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            span->end = span->begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static bool find_front(void)
{
    return front.handle || (dlsym && ibp_implementation_find(&front));
}

void *ibp_mpi_next(const char *name)
{
    void *found = dlsym ? dlsym(RTLD_NEXT, name) : NULL;

    return found || !find_front() ? found : dlsym(front.handle, name);
}

bool ibp_mpi_is_wrapped(const char *name)
{
    void *next = ibp_mpi_next(name);
    Dl_info object;

    return next && dladdr && dladdr(next, &object) && !ibp_is_mpi_library(object.dli_fname);
}

void *ibp_mpi_symbol(const char *name)
{
    /* Search the program first. After a copy relocation, only the program's copy of the object is used. */
    void *found = ibp_mpi.is_behind_layer ? NULL : dlsym(RTLD_DEFAULT, name);

    return found || !ibp_mpi.library.handle ? found : dlsym(ibp_mpi.library.handle, name);
}

void *ibp_mpi_own_function(const char *name)
{
    return ibp_implementation_function(&ibp_mpi.library, name);
}

static int find_functions(void)
{
    const struct {
        void *into;
        const char *name;
    } needed[] = {
        {&ibp_mpi.comm_rank, "PMPI_Comm_rank"},
        {&ibp_mpi.comm_free, "PMPI_Comm_free"},
        {&ibp_mpi.comm_size, "PMPI_Comm_size"},
        {&ibp_mpi.comm_group, "PMPI_Comm_group"},
        {&ibp_mpi.comm_remote_group, "PMPI_Comm_remote_group"},
        {&ibp_mpi.comm_test_inter, "PMPI_Comm_test_inter"},
        {&ibp_mpi.win_get_group, "PMPI_Win_get_group"},
        {&ibp_mpi.group_size, "PMPI_Group_size"},
        {&ibp_mpi.group_translate_ranks, "PMPI_Group_translate_ranks"},
        {&ibp_mpi.group_free, "PMPI_Group_free"},
        {&ibp_mpi.type_size, "PMPI_Type_size_x"},
        {&ibp_mpi.irecv, "PMPI_Irecv"},
        {&ibp_mpi.send, "PMPI_Send"},
        {&ibp_mpi.wait, "PMPI_Wait"},
        {&ibp_mpi.ibarrier, "PMPI_Ibarrier"},
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *function = ibp_mpi_own_function(needed[i].name);

        if (!function) return -ENOSYS;
        memcpy(needed[i].into, &function, sizeof function);
    }
    return 0;
}

static void set_constants(void)
{
    switch (ibp_mpi.abi) {
    case IBP_ABI_OPENMPI:
        ibp_mpi.world = (ibp_handle)ibp_mpi_symbol("ompi_mpi_comm_world");
        ibp_mpi.self = (ibp_handle)ibp_mpi_symbol("ompi_mpi_comm_self");
        ibp_mpi.null_request = ibp_mpi_symbol("ompi_request_null");
        ibp_mpi.empty_request = ibp_mpi_symbol("ompi_request_empty");
        break;
    case IBP_ABI_STANDARD:
        ibp_mpi.world = 0x101;
        ibp_mpi.self = 0x102;
        break;
    case IBP_ABI_MPICH:
        ibp_mpi.world = 0x44000000;
        ibp_mpi.self = 0x44000001;
        break;
    default:
        ibp_mpi.world = ibp_mpi.self = 0;
    }
}

static void ask_thread_level(void)
{
    int (*query_thread)(int *) = NULL;
    void *function = ibp_mpi_own_function("PMPI_Query_thread");

    memcpy(&query_thread, &function, sizeof function);
    if (query_thread) query_thread(&ibp_mpi.thread_level);
}

void *ibp_mpi_dependency(const char *name)
{
    return ibp_mpi.library.handle ? dlsym(ibp_mpi.library.handle, name) : NULL;
}

int ibp_mpi_find(void)
{
    if (!find_front()) return -ENOSYS;
    ibp_visit_objects(visit_program, &ibp_mpi.program_data);
    ibp_mpi.library = front;
    ibp_mpi.abi = ibp_implementation_abi(&front);
    set_constants();
    return ibp_mpi.abi == IBP_ABI_NONE ? -ENOTSUP : 0;
}

static ibp_handle no_info(void)
{
    if (ibp_mpi.abi == IBP_ABI_OPENMPI) return (ibp_handle)ibp_mpi_symbol("ompi_mpi_info_null");
    return ibp_mpi.abi == IBP_ABI_MPICH ? 0x1c000000 : 0x130;
}

static ibp_handle errors_return(void)
{
    if (ibp_mpi.abi == IBP_ABI_OPENMPI) return (ibp_handle)ibp_mpi_symbol("ompi_mpi_errors_return");
    return ibp_mpi.abi == IBP_ABI_MPICH ? 0x54000001 : 0x143;
}

/* Set rank and size for a program that begins with a session, where MPI_COMM_WORLD and MPI_COMM_SELF do not exist.
 * Ranks are ranks in the process set mpi://WORLD. A new communicator that contains only this process replaces
 * MPI_COMM_SELF. */
static int ask_process_sets(void)
{
    struct {
        int (*from_set)(ibp_handle, const char *, ibp_handle *);
        int (*group_rank)(ibp_handle, int *);
        int (*create)(ibp_handle, const char *, ibp_handle, ibp_handle, ibp_handle *);
    } session;
    void *const functions[] = {ibp_mpi_own_function("PMPI_Group_from_session_pset"),
                               ibp_mpi_own_function("PMPI_Group_rank"),
                               ibp_mpi_own_function("PMPI_Comm_create_from_group")};
    ibp_handle self = 0;
    int error;

    if (!functions[0] || !functions[1] || !functions[2]) return -ENOSYS;
    memcpy(&session, functions, sizeof session);
    if (session.from_set(ibp_mpi.session, "mpi://WORLD", &ibp_mpi.world_group) ||
        session.group_rank(ibp_mpi.world_group, &ibp_mpi.rank) ||
        ibp_mpi.group_size(ibp_mpi.world_group, &ibp_mpi.size) ||
        session.from_set(ibp_mpi.session, "mpi://SELF", &self))
        return -EPROTO;
    error = session.create(self, "ibprof", no_info(), errors_return(), &ibp_mpi.self);
    ibp_mpi.group_free(&self);
    ibp_mpi.has_own_self = !error;
    return error ? -EPROTO : 0;
}

void ibp_mpi_close(void)
{
    if (!ibp_mpi.session) return;
    if (ibp_mpi.world_group) ibp_mpi.group_free(&ibp_mpi.world_group);
    if (ibp_mpi.has_own_self) ibp_mpi.comm_free(&ibp_mpi.self);
    ibp_mpi.session = ibp_mpi.world_group = 0;
    ibp_mpi.has_own_self = false;
    set_constants();
}

/* `front` has an unknown ABI: find the MPI library that it calls with translated handles. */
static int find_behind(char *why, size_t why_bytes)
{
    ibp_implementation_version(&front, ibp_mpi.version, sizeof ibp_mpi.version);
    if (ibp_mpi.session || !ibp_implementation_find_behind(&front, &ibp_mpi.library)) {
        snprintf(why, why_bytes, "ibprof does not know this MPI (%.200s)",
                 *ibp_mpi.version ? ibp_mpi.version : front.name);
        return -1;
    }
    if (ibp_implementation_abi(&ibp_mpi.library) != IBP_ABI_OPENMPI) {
        snprintf(why, why_bytes,
                 "the program calls its MPI (%.200s) through a library that translates handles (%.100s)",
                 ibp_mpi.version, front.name);
        return -1;
    }
    ibp_mpi.is_behind_layer = true;
    ibp_mpi.abi = IBP_ABI_OPENMPI;
    set_constants();
    return 0;
}

int ibp_mpi_open(char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "the MPI library's functions cannot be found");
    if (!find_front() || (ibp_mpi_find() && find_behind(why, why_bytes)) || find_functions()) return -1;
    ibp_implementation_version(&ibp_mpi.library, ibp_mpi.version, sizeof ibp_mpi.version);
    ask_thread_level();
    if (ibp_mpi.session) return ask_process_sets();
    snprintf(why, why_bytes, "MPI (%.200s) does not report the rank of this process", ibp_mpi.version);
    return ibp_mpi.comm_rank(ibp_mpi.world, &ibp_mpi.rank) || ibp_mpi.comm_size(ibp_mpi.world, &ibp_mpi.size) ? -1 : 0;
}

unsigned ibp_mpi_largest_tag(void)
{
    int (*get_attribute)(ibp_handle, int, void *, int *) = NULL;
    void *function = ibp_mpi_own_function("PMPI_Comm_get_attr");
    const int key = ibp_mpi.abi == IBP_ABI_MPICH ? 0x64400001 : 501; /* MPI_TAG_UB */
    int *value = NULL, found = 0;

    memcpy(&get_attribute, &function, sizeof function);
    if (!get_attribute || ibp_mpi.abi == IBP_ABI_OPENMPI ||
        get_attribute(ibp_mpi.session ? ibp_mpi.self : ibp_mpi.world, key, &value, &found))
        return 0;
    return found && value ? (unsigned)*value : 0;
}
