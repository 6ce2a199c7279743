/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/library.h"
#include "platform/loader.h"
#include "platform/text.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
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

static struct ibp_span writable_data(const struct dl_phdr_info *info)
{
    struct ibp_span span = {0, 0};

    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_W) {
            span.begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            span.end = span.begin + info->dlpi_phdr[i].p_memsz;
        }
    return span;
}

/* Visit a loaded library. mpi4py and others load MPI where RTLD_NEXT does not search, so it is found by its file's
 * name. */
static int visit_library(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    void *library;

    (void)bytes;
    (void)unused;
    if (!info->dlpi_name) return 0;
    if (!ibp_mpi.program_data.end) ibp_mpi.program_data = writable_data(info); /* the program comes first */
    if (!ibp_is_mpi_library(info->dlpi_name)) return 0;
    library = ibp_loaded_library(info->dlpi_name);
    if (!library || !dlsym(library, "PMPI_Init")) return 0;
    ibp_mpi.library = library;
    ibp_mpi.library_data = writable_data(info);
    return 1;
}

static void find_library(void)
{
    if (!ibp_mpi.library && dl_iterate_phdr) dl_iterate_phdr(visit_library, NULL);
}

void *ibp_mpi_next(const char *name)
{
    void *found = dlsym ? dlsym(RTLD_NEXT, name) : NULL;

    if (found) return found;
    find_library();
    return ibp_mpi.library ? dlsym(ibp_mpi.library, name) : NULL;
}

void *ibp_mpi_symbol(const char *name)
{
    /* Ask for the program's symbol first: after a copy relocation the library's own object is unused. */
    void *found = dlsym(RTLD_DEFAULT, name);

    return found || !ibp_mpi.library ? found : dlsym(ibp_mpi.library, name);
}

/* Return a PMPI function of the library itself, not ibprof's wrapper of that name. */
static void *own_function(const char *name)
{
    return ibp_mpi.library ? dlsym(ibp_mpi.library, name) : dlsym(RTLD_NEXT, name);
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
        void *function = own_function(needed[i].name);

        if (!function) return -ENOSYS;
        memcpy(needed[i].into, &function, sizeof function);
    }
    return 0;
}

/* Return whether this is the standard ABI. A library may offer both ABIs, in two files. */
static bool has_standard_abi(void)
{
    Dl_info init;
    const char *slash;

    if (!dladdr(own_function("PMPI_Init"), &init) || !init.dli_fname) return false;
    slash = strrchr(init.dli_fname, '/');
    return !strncmp(slash ? slash + 1 : init.dli_fname, "libmpi_abi", strlen("libmpi_abi"));
}

static void find_abi(void)
{
    if (ibp_mpi_symbol("ompi_mpi_comm_world")) {
        ibp_mpi.abi = IBP_ABI_OPENMPI;
        ibp_mpi.world = (ibp_handle)ibp_mpi_symbol("ompi_mpi_comm_world");
        ibp_mpi.self = (ibp_handle)ibp_mpi_symbol("ompi_mpi_comm_self");
    } else if (has_standard_abi()) {
        ibp_mpi.abi = IBP_ABI_STANDARD;
        ibp_mpi.world = 0x101;
        ibp_mpi.self = 0x102;
    } else {
        ibp_mpi.abi = IBP_ABI_MPICH;
        ibp_mpi.world = 0x44000000;
        ibp_mpi.self = 0x44000001;
    }
}

static void ask_version(void)
{
    static char text[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING is at most this */
    int (*get_version)(char *, int *) = NULL;
    void *function = own_function("PMPI_Get_library_version");
    int length = 0;

    memcpy(&get_version, &function, sizeof function);
    if (!get_version || get_version(text, &length)) return;
    ibp_text_copy(ibp_mpi.version, sizeof ibp_mpi.version, text);
    ibp_mpi.version[strcspn(ibp_mpi.version, "\n")] = '\0';
}

static void ask_thread_level(void)
{
    int (*query_thread)(int *) = NULL;
    void *function = own_function("PMPI_Query_thread");

    memcpy(&query_thread, &function, sizeof function);
    if (query_thread) query_thread(&ibp_mpi.thread_level);
}

void *ibp_mpi_dependency(const char *name)
{
    return ibp_mpi.library ? dlsym(ibp_mpi.library, name) : NULL;
}

int ibp_mpi_find(void)
{
    if (!dlsym) return -ENOSYS;
    find_library();
    if (!own_function("PMPI_Init")) return -ENOSYS;
    find_abi();
    return 0;
}

/* Return the handle of MPI_INFO_NULL, or below that of MPI_ERRORS_RETURN. */
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

/* Find ranks for a program that begins with a session, and so has neither MPI_COMM_WORLD nor MPI_COMM_SELF. Ranks
 * are those of the process set mpi://WORLD. Instead of MPI_COMM_SELF a communicator is made, which needs no other
 * process. */
static int ask_process_sets(void)
{
    struct {
        int (*from_set)(ibp_handle, const char *, ibp_handle *);
        int (*group_rank)(ibp_handle, int *);
        int (*create)(ibp_handle, const char *, ibp_handle, ibp_handle, ibp_handle *);
    } session;
    void *const functions[] = {own_function("PMPI_Group_from_session_pset"), own_function("PMPI_Group_rank"),
                               own_function("PMPI_Comm_create_from_group")};
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
    find_abi();
}

int ibp_mpi_open(void)
{
    if (ibp_mpi_find() || find_functions()) return -ENOSYS;
    ask_version();
    ask_thread_level();
    if (ibp_mpi.session) return ask_process_sets();
    if (ibp_mpi.comm_rank(ibp_mpi.world, &ibp_mpi.rank) || ibp_mpi.comm_size(ibp_mpi.world, &ibp_mpi.size))
        return -EPROTO;
    return 0;
}

unsigned ibp_mpi_largest_tag(void)
{
    int (*get_attribute)(ibp_handle, int, void *, int *) = NULL;
    void *function = own_function("PMPI_Comm_get_attr");
    const int key = ibp_mpi.abi == IBP_ABI_MPICH ? 0x64400001 : 501; /* MPI_TAG_UB */
    int *value = NULL, found = 0;

    memcpy(&get_attribute, &function, sizeof function);
    if (!get_attribute || ibp_mpi.abi == IBP_ABI_OPENMPI ||
        get_attribute(ibp_mpi.session ? ibp_mpi.self : ibp_mpi.world, key, &value, &found))
        return 0;
    return found && value ? (unsigned)*value : 0;
}
