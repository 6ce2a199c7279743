/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/got.h"
#include "libmpi/library.h"
#include "platform/loaded_objects.h"
#include "platform/loader.h"
#include "platform/log.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_ADDRESS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_ADDRESS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#elif defined(__powerpc64__)
#define IS_ADDRESS_SLOT(type) ((type) == R_PPC64_JMP_SLOT || (type) == R_PPC64_GLOB_DAT)
#else
#define IS_ADDRESS_SLOT(type) ((void)(type), false)
#endif

#define CHANGES_MAX 1024

static struct {
    void **slot;
    void *before;
    /* True if the dynamic linker made the slot read-only after relocation. */
    bool read_only;
} changes[CHANGES_MAX];
static unsigned changed;

struct tables {
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * relocations[2];
    size_t count[2];
};

struct search {
    /* One replacement, or several replacements of MPI calls whose names end in `_c`. */
    const struct ibp_replacement *replacements;
    size_t count;
    enum { IN_MPI, IN_PARTS_OF_MPI, IN_ALL_ELSE } where;
    void *original;
    int found;
};

static void set_slot(void **slot, void *value, bool read_only)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *begin = (void *)((uintptr_t)slot & ~(page - 1));

    if (read_only && mprotect(begin, page, PROT_READ | PROT_WRITE)) return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (read_only) (void)mprotect(begin, page, PROT_READ);
}

static bool is_in(const struct dl_phdr_info *info, uint32_t type, uint32_t flags, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == type && (part->p_flags & flags) == flags &&
            (uintptr_t)address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

static const ElfW(Dyn) * find_dynamic(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static struct tables find_tables(const struct dl_phdr_info *info)
{
    struct tables tables = {0};
    bool with_addends = true;

    for (const ElfW(Dyn) *entry = find_dynamic(info); entry && entry->d_tag != DT_NULL; entry++) {
        /* glibc has added the load address to addresses in this table; musl has not. */
        const uintptr_t value = entry->d_un.d_ptr;
        const uintptr_t address = value < info->dlpi_addr ? value + info->dlpi_addr : value;

        if (entry->d_tag == DT_STRTAB) tables.names = (const char *)address;
        if (entry->d_tag == DT_SYMTAB) tables.symbols = (const ElfW(Sym) *)address;
        if (entry->d_tag == DT_JMPREL) tables.relocations[0] = (const ElfW(Rela) *)address;
        if (entry->d_tag == DT_PLTRELSZ) tables.count[0] = value / sizeof(ElfW(Rela));
        if (entry->d_tag == DT_RELA) tables.relocations[1] = (const ElfW(Rela) *)address;
        if (entry->d_tag == DT_RELASZ) tables.count[1] = value / sizeof(ElfW(Rela));
        if (entry->d_tag == DT_PLTREL) with_addends = value == DT_RELA;
    }
    return tables.names && tables.symbols && with_addends ? tables : (struct tables){0};
}

/* Return the function that the slot's callers call; NULL if the dynamic linker finds no function. */
static void *resolve(const struct dl_phdr_info *info, void *const *slot, const char *name)
{
    void *library, *found;

    if (*slot && !is_in(info, PT_LOAD, PF_X, *slot)) return *slot;
    library = ibp_loaded_library(info->dlpi_name);
    found = library ? dlsym(library, name) : NULL;
    if (library) dlclose(library);
    return found;
}

static bool is_large_call(const char *name)
{
    const size_t length = strlen(name);

    return (name[0] == 'M' || name[0] == 'P') && length > 6 && !strcmp(name + length - 2, "_c");
}

static void change(const struct dl_phdr_info *info, void **slot, const struct ibp_replacement *replacement,
                   struct search *search)
{
    void *before = resolve(info, slot, replacement->name);

    /* dlsym may find nothing for a component of Open MPI, because components do not list the libraries that they need.
     * Then use the function that dlsym found for another object. */
    if (!before && search->where == IN_PARTS_OF_MPI) before = search->original;
    if (!before || before == replacement->function || changed == CHANGES_MAX) return;
    changes[changed].slot = slot;
    changes[changed].before = before;
    changes[changed].read_only = is_in(info, PT_GNU_RELRO, 0, slot);
    set_slot(slot, replacement->function, changes[changed].read_only);
    if (*slot != replacement->function) return;
    changed++;
    search->original = before;
    search->found++;
}

static const struct ibp_replacement *find_replacement(const struct search *search, const char *name)
{
    if (search->count > 1 && !is_large_call(name)) return NULL;
    for (size_t i = 0; i < search->count; i++)
        if (!strcmp(search->replacements[i].name, name)) return &search->replacements[i];
    return NULL;
}

/* Return whether an object is a library of Open MPI, or one of its components. */
static bool is_part(const char *path)
{
    static const char *const names[] = {"libopen-pal.so", "libopen-rte.so", "mca_"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

static bool is_searched(const struct search *search, const char *path)
{
    if (ibp_is_mpi_library(path)) return search->where != IN_ALL_ELSE;
    return search->where == IN_ALL_ELSE || (search->where == IN_PARTS_OF_MPI && is_part(path));
}

static int visit_library(struct dl_phdr_info *info, size_t bytes, void *into)
{
    struct search *search = into;
    struct tables tables;

    (void)bytes;
    if (!info->dlpi_name || !is_searched(search, info->dlpi_name)) return 0;
    tables = find_tables(info);
    for (unsigned table = 0; table < 2; table++)
        for (size_t i = 0; tables.relocations[table] && i < tables.count[table]; i++) {
            const ElfW(Rela) *relocation = &tables.relocations[table][i];
            const struct ibp_replacement *replacement;

            if (!IS_ADDRESS_SLOT(ELF64_R_TYPE(relocation->r_info))) continue;
            replacement =
                find_replacement(search, tables.names + tables.symbols[ELF64_R_SYM(relocation->r_info)].st_name);
            if (replacement) change(info, (void **)(info->dlpi_addr + relocation->r_offset), replacement, search);
        }
    return 0;
}

static int redirect(struct search search, const char *name, void *replacement, void *original)
{
    const struct ibp_replacement one = {name, replacement};

    search.replacements = &one;
    search.count = 1;
    ibp_visit_objects(visit_library, &search);
    if (search.found) memcpy(original, &search.original, sizeof search.original);
    ibp_log(3, "%s: %d slots of the MPI library are redirected", name, search.found);
    return search.found;
}

int ibp_got_redirect(const char *name, void *replacement, void *original)
{
    return redirect((struct search){.where = IN_MPI}, name, replacement, original);
}

int ibp_got_redirect_in_parts(const char *name, void *replacement, void *original)
{
    return redirect((struct search){.where = IN_PARTS_OF_MPI}, name, replacement, original);
}

void ibp_got_redirect_users(const struct ibp_replacement *replacements, size_t count)
{
    struct search search = {.replacements = replacements, .count = count, .where = IN_ALL_ELSE};

    ibp_visit_objects(visit_library, &search);
}

struct everybody {
    struct ibp_replacement replacement;
    void *function;
    int found;
};

/* This function must open no library, because other threads may be loading libraries. */
static int visit_caller(struct dl_phdr_info *info, size_t bytes, void *into)
{
    struct everybody *search = into;
    const struct tables tables = find_tables(info);

    (void)bytes;
    if (is_in(info, PT_LOAD, 0, &changed)) return 0; /* libibprof.so itself */
    for (unsigned table = 0; table < 2; table++)
        for (size_t i = 0; tables.relocations[table] && i < tables.count[table]; i++) {
            const ElfW(Rela) *relocation = &tables.relocations[table][i];
            const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
            void **slot = (void **)(info->dlpi_addr + relocation->r_offset);

            if (!IS_ADDRESS_SLOT(ELF64_R_TYPE(relocation->r_info)) || symbol->st_shndx != SHN_UNDEF) continue;
            if (strcmp(tables.names + symbol->st_name, search->replacement.name)) continue;
            /* Before the first call, a slot contains the address of lazy binding code in the caller's library. */
            if (*slot != search->function && !is_in(info, PT_LOAD, PF_X, *slot)) continue;
            set_slot(slot, search->replacement.function, is_in(info, PT_GNU_RELRO, 0, slot));
            search->found++;
        }
    return 0;
}

void ibp_got_redirect_all(const char *name, void *function, void *replacement)
{
    struct everybody search = {.replacement = {name, replacement}, .function = function};

    ibp_visit_objects(visit_caller, &search);
    ibp_log(3, "%s: %d slots of all callers are redirected", name, search.found);
}

typedef void *choose_function(const char *, void *);

struct choice {
    choose_function *choose;
    bool of_bindings;
};

static bool is_call_name(const char *name, bool of_bindings)
{
    if (!of_bindings) return !strncmp(name, "MPI", 3) || !strncmp(name, "PMPI", 4);
    return !strncasecmp(name, "mpi_", 4) || !strncasecmp(name, "pmpi_", 5);
}

static int visit_deep(struct dl_phdr_info *info, size_t bytes, void *into)
{
    const struct choice *choice = into;
    struct tables tables;

    (void)bytes;
    if (!info->dlpi_name || (!*info->dlpi_name && !choice->of_bindings) || ibp_is_mpi_library(info->dlpi_name) ||
        is_in(info, PT_LOAD, 0, &changed))
        return 0;
    tables = find_tables(info);
    for (unsigned table = 0; table < 2; table++)
        for (size_t i = 0; tables.relocations[table] && i < tables.count[table]; i++) {
            const ElfW(Rela) *relocation = &tables.relocations[table][i];
            const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
            void **slot = (void **)(info->dlpi_addr + relocation->r_offset);
            const char *name = tables.names + symbol->st_name;
            void *found;

            if (!IS_ADDRESS_SLOT(ELF64_R_TYPE(relocation->r_info)) || symbol->st_shndx != SHN_UNDEF) continue;
            if (!is_call_name(name, choice->of_bindings)) continue;
            found = resolve(info, slot, name);
            if (found && choice->choose(name, found) != found)
                set_slot(slot, choice->choose(name, found), is_in(info, PT_GNU_RELRO, 0, slot));
        }
    return 0;
}

void ibp_got_redirect_deep(choose_function *choose)
{
    ibp_visit_objects(visit_deep, &(struct choice){choose, false});
}

void ibp_got_redirect_bindings(choose_function *choose)
{
    ibp_visit_objects(visit_deep, &(struct choice){choose, true});
}

void ibp_got_restore(void)
{
    while (changed) {
        changed--;
        set_slot(changes[changed].slot, changes[changed].before, changes[changed].read_only);
    }
}
