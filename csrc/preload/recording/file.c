/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Disk space for a part of the file is allocated before this part is mapped. On a full file system, a write to a hole
 * of a mapped file causes SIGBUS. The file never grows beyond the limit of file sizes, because a larger file would
 * cause SIGXFSZ. The file is opened again each time it grows, because the program may close ibprof's descriptor and
 * reuse its number.
 */
#include "platform/system.h"
#include "recording/file.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/output.h"
#include "recording/own_file.h"
#include "recording/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 100
#define COPY_MODE (S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH)

int ibp_file_map(int file, uint64_t offset, uint64_t bytes, void **mapped)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t lead = offset % page;
    struct rlimit limit;
    unsigned attempts = 0;
    char *memory;
    int error;

    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur))
        return EFBIG;
    do /* if a timer of the program interrupts each attempt, give up */
        error = posix_fallocate(file, (off_t)offset, (off_t)bytes);
    while (error == EINTR && attempts++ < ATTEMPTS);
    if (error) return error;
    memory = mmap(NULL, bytes + lead, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)(offset - lead));
    if (memory == MAP_FAILED) return errno;
    *mapped = memory + lead;
    return 0;
}

#define HEADER_BYTES                                                                                                   \
    ((sizeof(struct ibp_file_header) + IBP_OPERATIONS * IBP_OPERATION_NAME_BYTES + IBP_PAGE_BYTES - 1) /               \
     IBP_PAGE_BYTES * IBP_PAGE_BYTES)

static void fill_header(struct ibp_file_header *header, const struct ibp_file_header *identity)
{
    char *names = (char *)(header + 1);

    *header = *identity;
    header->version = IBP_FORMAT_VERSION;
    header->byte_order = IBP_BYTE_ORDER;
    header->segments_offset = HEADER_BYTES;
    header->end_bytes = HEADER_BYTES;
    header->start_ns = ibp_clock_ns();
    header->operation_count = IBP_OPERATIONS;
    header->header_bytes = sizeof *header;
    for (unsigned operation = 0; operation < IBP_OPERATIONS; operation++)
        ibp_text_copy(names + operation * IBP_OPERATION_NAME_BYTES, IBP_OPERATION_NAME_BYTES,
                      ibp_operation_name(operation));
    header->members = 1;
    header->magic = IBP_FILE_MAGIC;
}

/* Build a path from folder, stem and number. The number differs from 0 only if another run has the same stem, which is
 * unlikely. Return false if the path is too long. */
static bool name_file(char *path, size_t bytes, const char *folder, const char *stem, unsigned attempt)
{
    return snprintf(path, bytes, "%s/%s-%u.ibprof", folder, stem, attempt) < (int)bytes;
}

/* Return the seconds between copies: the value of IBPROF_FLUSH, by default IBP_FLUSH_SECONDS. */
static uint32_t flush_seconds(void)
{
    const char *given = ibp_environment("IBPROF_FLUSH");

    return *given ? (uint32_t)ibp_text_number(given) : IBP_FLUSH_SECONDS;
}

/* Create the file for copies under an unused name, and write its header. Return 0 or an errno. */
static int make_copy(const struct ibp_recording_file *recording, struct ibp_file_header *header)
{
    int file = -1, error;

    ibp_text_copy(header->storage, sizeof header->storage, recording->path);
    header->flush_seconds = flush_seconds();
    for (unsigned attempt = 0; attempt < ATTEMPTS && file < 0; attempt++) {
        if (!name_file(header->output, sizeof header->output, recording->output_folder, recording->stem, attempt))
            return ENAMETOOLONG;
        file = ibp_storage_open(header->output, O_WRONLY | O_CREAT | O_EXCL, COPY_MODE);
        if (file < 0 && errno != EEXIST) return errno;
    }
    if (file < 0) return EEXIST;
    error = ibp_storage_write(file, header, HEADER_BYTES, 0);
    close(file);
    if (error) unlink(header->output);
    return error;
}

/* Create the file under a temporary name, and link the complete file to its final name. So no process sees a partial
 * file. Return 0 or an errno; EEXIST if another process of the host has created the file first. */
static int make_file(struct ibp_recording_file *recording, const struct ibp_file_header *identity)
{
    char unfinished[PATH_MAX + 32];
    struct ibp_file_header *header = NULL;
    int file, error;

    snprintf(unfinished, sizeof unfinished, "%s.%ld", recording->path, (long)getpid());
    file = ibp_own_file_create(unfinished);
    if (file < 0) return errno;
    error = ibp_file_map(file, 0, HEADER_BYTES, (void **)&header);
    close(file);
    if (!error) {
        fill_header(header, identity);
        if (*recording->output_folder) error = make_copy(recording, header);
    }
    if (!error && link(unfinished, recording->path)) {
        error = errno;
        if (*header->output) unlink(header->output);
    }
    unlink(unfinished);
    if (error) {
        ibp_memory_unmap(header, HEADER_BYTES);
        return error;
    }
    recording->header = header;
    recording->first = true;
    return 0;
}

/* Register this process as a user of the file. Return false if all registered processes have finished, because the last
 * process removes the file. */
static bool become_member(struct ibp_file_header *header)
{
    uint64_t members = __atomic_load_n(&header->members, __ATOMIC_ACQUIRE);

    do
        if (*header->storage && members >> 32 == (uint32_t)members) return false;
    while (!__atomic_compare_exchange_n(&header->members, &members, members + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    return true;
}

/* Read the header. Return whether the file belongs to this launch and was created at this path. */
static bool is_of_launch(int file, const char *path, const struct ibp_file_header *identity)
{
    struct ibp_file_header found;

    return pread(file, &found, sizeof found, 0) == (ssize_t)sizeof found && found.magic == IBP_FILE_MAGIC &&
           found.version == IBP_FORMAT_VERSION && found.operation_count == IBP_OPERATIONS &&
           !strcmp(found.launch, identity->launch) && !strcmp(found.run, identity->run) &&
           !strcmp(found.library_version, identity->library_version) &&
           (!*found.storage || !strcmp(found.storage, path));
}

/* Join the file of another process of this launch. The file is verified before anything is allocated. Return 0 or an
 * errno; EEXIST if the file belongs to another launch, or is no recording. */
static int join_file(struct ibp_recording_file *recording, const struct ibp_file_header *identity)
{
    const int reader = ibp_own_file_open(recording->path);
    struct ibp_file_header *header = NULL;
    int file, error;

    if (reader < 0) return errno;
    if (!is_of_launch(reader, recording->path, identity)) {
        close(reader);
        return EEXIST;
    }
    file = ibp_own_file_open_to_write(recording->path, reader);
    error = file < 0 ? errno : ibp_file_map(file, 0, HEADER_BYTES, (void **)&header);
    if (file >= 0) close(file);
    close(reader);
    if (error) return error;
    if (!become_member(header)) {
        ibp_memory_unmap(header, HEADER_BYTES);
        return EEXIST;
    }
    recording->header = header;
    return 0;
}

/* Create the file. If the file exists, or another process creates the file at the same time, join it. */
static int make_or_join_file(struct ibp_recording_file *recording, const struct ibp_file_header *identity)
{
    const int error = make_file(recording, identity);
    const int joined = error ? join_file(recording, identity) : 0;

    return joined == ENOENT ? error : joined;
}

static int open_in(struct ibp_recording_file *recording, const char *folder, const struct ibp_file_header *identity)
{
    int error = EEXIST;

    for (unsigned attempt = 0; attempt < ATTEMPTS && error == EEXIST; attempt++) {
        if (!name_file(recording->path, sizeof recording->path, folder, recording->stem, attempt)) return ENAMETOOLONG;
        error = join_file(recording, identity);
        if (error == ENOENT) error = make_or_join_file(recording, identity);
    }
    return error;
}

/* Open the file on the storage of the node: try folders in order until the file can be opened. */
static int open_on_node(struct ibp_recording_file *recording, const struct ibp_file_header *identity)
{
    char folder[PATH_MAX];
    int error = ENOSPC, choice;

    for (unsigned n = 0; error && (choice = ibp_storage_folder(n, folder, sizeof folder)) >= 0; n++)
        if (!choice) error = open_in(recording, folder, identity);
    return error;
}

/* Return whether an error means that files of this file system cannot be mapped, or cannot be mapped by this user. */
static bool is_unfit(int error)
{
    return error == EINVAL || error == ENODEV || error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

int ibp_file_open(struct ibp_recording_file *recording, const char *output, char *folder, size_t bytes)
{
    struct ibp_file_header identity;
    int error;

    recording->user = geteuid();
    ibp_output_identify(&identity);
    ibp_output_stem(&identity, recording->stem, sizeof recording->stem);
    error = ibp_output_make_folder(output, &identity, folder, bytes);
    if (error) return error;
    if (!ibp_storage_is_remote(folder)) {
        error = open_in(recording, folder, &identity);
        if (!is_unfit(error)) return error;
    }
    ibp_text_copy(recording->output_folder, sizeof recording->output_folder, folder);
    return open_on_node(recording, &identity);
}

/* Return whether a file is the mapped recording or its copy, and not a newer file at the same path. */
static bool is_same(const struct ibp_recording_file *recording, int file)
{
    struct ibp_file_header found;

    return pread(file, &found, sizeof found, 0) == (ssize_t)sizeof found && found.magic == recording->header->magic &&
           found.start_ns == recording->header->start_ns && !strcmp(found.launch, recording->header->launch);
}

int ibp_file_reopen(const struct ibp_recording_file *recording)
{
    const int reader = ibp_own_file_open(recording->path);
    int file = -1, error;

    if (reader < 0) return -1;
    if (is_same(recording, reader))
        file = ibp_own_file_open_to_write(recording->path, reader);
    else
        errno = ESTALE;
    error = errno;
    close(reader);
    errno = error;
    return file;
}

/* The owner of a copy is not checked, because a file server may number users differently. A wrong owner is harmless,
 * because a copy is never mapped. */
int ibp_file_reopen_copy(const struct ibp_recording_file *recording)
{
    const int file = ibp_storage_open(recording->header->output, O_RDWR, 0);

    if (file < 0) return -1;
    if (ibp_own_file_is_regular(file) && is_same(recording, file)) return file;
    close(file);
    errno = ESTALE;
    return -1;
}
