/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/objects.h"
#include "platform/loaded_objects.h"
#include "platform/text.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX 512

/* [index of an object], its record. A library that is loaded again at another address keeps its index. */
static const struct ibp_object *records[OBJECTS_MAX];
static uint32_t recorded;

const char *ibp_object_of_program(void)
{
    static char path[IBP_PATH_BYTES];
    const ssize_t length = *path ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);

    if (length > 0) path[length] = '\0';
    return path;
}

bool ibp_object_calls_for_python(const char *path)
{
    static const char *const names[] = {"libffi", "_ctypes", "libpython3", "python"};
    const char *slash, *name;

    if (!*path) path = ibp_object_of_program();
    slash = strrchr(path, '/');
    name = slash ? slash + 1 : path;
    if (strstr(path, "/mpi4py/")) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

struct search {
    uintptr_t address;
    struct ibp_object_place *place;
    struct ibp_object *described;
    bool is_found;
};

static void copy_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * part, struct ibp_object *object)
{
    const char *note = (const char *)(info->dlpi_addr + part->p_vaddr), *end = note + part->p_memsz;

    while (note + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *header = (const ElfW(Nhdr) *)note;
        const char *name = note + sizeof *header, *content = name + ((header->n_namesz + 3U) & ~3U);

        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 && !memcmp(name, "GNU", 4) &&
            content + header->n_descsz <= end && header->n_descsz <= IBP_BUILD_ID_BYTES) {
            object->build_id_bytes = header->n_descsz;
            memcpy(object->build_id, content, header->n_descsz);
            return;
        }
        note = content + ((header->n_descsz + 3U) & ~3U);
    }
}

/* Write the object's path and build ID. The build ID is in an ELF note, in the first page, which is always mapped. */
static void describe(const struct dl_phdr_info *info, struct ibp_object *object)
{
    for (int i = 0; i < info->dlpi_phnum && !object->build_id_bytes; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE) copy_build_id(info, &info->dlpi_phdr[i], object);
    if (info->dlpi_name && *info->dlpi_name)
        ibp_text_copy(object->path, sizeof object->path, info->dlpi_name);
    else
        ibp_text_copy(object->path, sizeof object->path, ibp_object_of_program());
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *into)
{
    struct search *search = into;

    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || search->address - (info->dlpi_addr + part->p_vaddr) >= part->p_memsz) continue;
        search->is_found = true;
        if (search->place) {
            search->place->address = search->address - info->dlpi_addr;
            search->place->path = info->dlpi_name ? info->dlpi_name : "";
        }
        if (search->described) describe(info, search->described);
        return 1;
    }
    return 0;
}

bool ibp_object_find(const void *address, struct ibp_object_place *place)
{
    struct search search = {.address = (uintptr_t)address, .place = place};

    *place = (struct ibp_object_place){.object = IBP_OBJECT_UNKNOWN, .path = ""};
    ibp_visit_objects(visit, &search);
    return search.is_found;
}

/* Return the index of an object's record, created if needed. */
static uint32_t record(const struct ibp_object *object)
{
    struct ibp_object *made;

    for (uint32_t i = 0; i < recorded; i++)
        if (records[i]->kind == object->kind && !strcmp(records[i]->path, object->path) &&
            !memcmp(records[i]->build_id, object->build_id, IBP_BUILD_ID_BYTES))
            return i;
    if (recorded == OBJECTS_MAX) return IBP_OBJECT_UNKNOWN;
    made = ibp_recording_reserve(IBP_SEGMENT_OBJECTS);
    if (!made) return IBP_OBJECT_UNKNOWN;
    *made = *object;
    ibp_recording_publish(IBP_SEGMENT_OBJECTS);
    records[recorded] = made;
    return recorded++;
}

void ibp_object_record(const void *address, struct ibp_object_place *place)
{
    static struct ibp_object described; /* static, because it is too large for threads with small stacks */
    struct search search = {.address = (uintptr_t)address, .described = &described};

    described = (struct ibp_object){.kind = IBP_OBJECT_ELF};
    ibp_visit_objects(visit, &search);
    if (search.is_found) place->object = record(&described);
}

uint32_t ibp_object_of_script(const char *path)
{
    static struct ibp_object described;

    described = (struct ibp_object){.kind = IBP_OBJECT_SCRIPT};
    ibp_text_copy(described.path, sizeof described.path, path);
    return record(&described);
}
