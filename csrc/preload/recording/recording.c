/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Nothing here may harm the program. Space is allocated on the file system before it is mapped: writing to a hole in a
 * full file system raises SIGBUS. Files never grow beyond the limit of file sizes (SIGXFSZ). The file is opened anew
 * for each growth, since a program may close every descriptor, or reuse ibprof's number for a file of its own.
 */
#include "platform/system.h"
#include "recording/recording.h"
#include "platform/cancellation.h"
#include "platform/clock.h"
#include "platform/log.h"
#include "platform/memory.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/output.h"
#include "recording/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KINDS (IBP_SEGMENT_GRIDS + 1)
#define LARGEST_SEGMENT_PAGES 256
#define SEGMENTS_MAX 4096
#define ATTEMPTS 100

static const uint32_t record_bytes[KINDS] = {
    [IBP_SEGMENT_PROCESS] = sizeof(struct ibp_process),   [IBP_SEGMENT_PORTS] = sizeof(struct ibp_port),
    [IBP_SEGMENT_REGIONS] = sizeof(struct ibp_region),    [IBP_SEGMENT_COUNTERS] = sizeof(struct ibp_counter),
    [IBP_SEGMENT_SIZES] = sizeof(struct ibp_sizes),       [IBP_SEGMENT_MARKS] = sizeof(struct ibp_mark),
    [IBP_SEGMENT_PAIRS] = sizeof(struct ibp_pair),        [IBP_SEGMENT_TRANSFERS] = sizeof(struct ibp_transfer),
    [IBP_SEGMENT_HARDWARE] = sizeof(struct ibp_hardware), [IBP_SEGMENT_SNAPSHOTS] = sizeof(struct ibp_snapshot),
    [IBP_SEGMENT_ADDRESSES] = sizeof(struct ibp_address), [IBP_SEGMENT_LAUNCH] = sizeof(struct ibp_launch),
    [IBP_SEGMENT_GRIDS] = sizeof(struct ibp_grid),
};
_Static_assert(sizeof(struct ibp_segment) + sizeof(struct ibp_process) <= IBP_PAGE_BYTES, "a process fits a page");

static struct {
    /* Of the mapped file. */
    char path[PATH_MAX];
    /* Destination of copies; empty when the mapped file lies there itself. */
    char output_folder[PATH_MAX];
    char stem[128];
    struct ibp_file_header *header;
    uint64_t process_offset;
    bool first;
    /* Segments being filled. */
    struct ibp_segment *segment[KINDS];
    uint32_t published[KINDS];
    /* Begins with the process's own record; several threads may pass the limit at once. */
    struct ibp_segment *all[SEGMENTS_MAX + 8];
    unsigned segments;
} recording;

/* Allocate and map a part of the file; `offset` need not be a multiple of this system's page. Return 0 or an errno. */
static int map_part(int file, uint64_t offset, uint64_t bytes, void **mapped)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t lead = offset % page;
    struct rlimit limit;
    unsigned attempts = 0;
    char *memory;
    int error;

    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur))
        return EFBIG;
    do /* a program's timer may interrupt it each time; then give up */
        error = posix_fallocate(file, (off_t)offset, (off_t)bytes);
    while (error == EINTR && attempts++ < ATTEMPTS);
    if (error) return error;
    memory = mmap(NULL, bytes + lead, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)(offset - lead));
    if (memory == MAP_FAILED) return errno;
    *mapped = memory + lead;
    return 0;
}

/* -- making and joining the file ----------------------------------------------------------------------------------- */

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
    for (unsigned operation = 0; operation < IBP_OPERATIONS; operation++)
        ibp_text_copy(names + operation * IBP_OPERATION_NAME_BYTES, IBP_OPERATION_NAME_BYTES,
                      ibp_operation_name(operation));
    header->members = 1;
    header->magic = IBP_FILE_MAGIC;
}

/* Name a file by folder, stem and number. Two runs of one stem are unlikely; then the number grows. Return false
 * when the path is too long. */
static bool name_file(char *path, size_t bytes, const char *folder, const char *stem, unsigned attempt)
{
    return snprintf(path, bytes, "%s/%s-%u.ibprof", folder, stem, attempt) < (int)bytes;
}

/* Return IBPROF_FLUSH, in seconds. */
static uint32_t flush_seconds(void)
{
    const char *given = getenv("IBPROF_FLUSH");

    return given && *given ? (uint32_t)ibp_text_number(given) : IBP_FLUSH_SECONDS;
}

/* Make the destination of copies under a free name, with the header alone. Return 0 or an errno. */
static int make_copy(struct ibp_file_header *header)
{
    int file = -1, error;

    ibp_text_copy(header->storage, sizeof header->storage, recording.path);
    header->flush_seconds = flush_seconds();
    for (unsigned attempt = 0; attempt < ATTEMPTS && file < 0; attempt++) {
        if (!name_file(header->output, sizeof header->output, recording.output_folder, recording.stem, attempt))
            return ENAMETOOLONG;
        file = ibp_storage_open(header->output, O_WRONLY | O_CREAT | O_EXCL);
        if (file < 0 && errno != EEXIST) return errno;
    }
    if (file < 0) return EEXIST;
    error = ibp_storage_write(file, header, HEADER_BYTES, 0);
    close(file);
    if (error) unlink(header->output);
    return error;
}

/* Make the complete file under another name and link it to its own, so that nobody sees a partial file. The first of
 * the host's processes wins, the others join. Return 0 or an errno; EEXIST when another process was first. */
static int make_file(const struct ibp_file_header *identity)
{
    char unfinished[PATH_MAX + 32];
    struct ibp_file_header *header = NULL;
    int file, error;

    snprintf(unfinished, sizeof unfinished, "%s.%ld", recording.path, (long)getpid());
    file = ibp_storage_open(unfinished, O_RDWR | O_CREAT | O_EXCL);
    if (file < 0) return errno;
    error = map_part(file, 0, HEADER_BYTES, (void **)&header);
    close(file);
    if (!error) {
        fill_header(header, identity);
        if (*recording.output_folder) error = make_copy(header);
    }
    if (!error && link(unfinished, recording.path)) {
        error = errno;
        if (*header->output) unlink(header->output);
    }
    unlink(unfinished);
    if (error) {
        ibp_memory_unmap(header, HEADER_BYTES);
        return error;
    }
    recording.header = header;
    recording.first = true;
    return 0;
}

/* Register this process. Return false when all processes of the file have finished, and it is about to be removed. */
static bool become_member(struct ibp_file_header *header)
{
    uint64_t members = __atomic_load_n(&header->members, __ATOMIC_ACQUIRE);

    do
        if (*header->storage && members >> 32 == (uint32_t)members) return false;
    while (!__atomic_compare_exchange_n(&header->members, &members, members + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    return true;
}

/* Join a file that another process of this launch made. Return 0 or an errno; EEXIST when the file belongs to
 * another launch. */
static int join_file(const struct ibp_file_header *identity)
{
    const int file = ibp_storage_open(recording.path, O_RDWR);
    struct ibp_file_header *header = NULL;
    int error;

    if (file < 0) return errno;
    error = map_part(file, 0, HEADER_BYTES, (void **)&header);
    close(file);
    if (error) return error;
    if (header->magic != IBP_FILE_MAGIC || header->version != IBP_FORMAT_VERSION ||
        header->operation_count != IBP_OPERATIONS || strcmp(header->launch, identity->launch) ||
        strcmp(header->run, identity->run) || strcmp(header->library_version, identity->library_version) ||
        !become_member(header)) {
        ibp_memory_unmap(header, HEADER_BYTES);
        return EEXIST;
    }
    recording.header = header;
    return 0;
}

/* Make the file, or join it when another process makes it at the same time. */
static int make_or_join_file(const struct ibp_file_header *identity)
{
    const int error = make_file(identity);
    const int joined = error ? join_file(identity) : 0;

    return joined == ENOENT ? error : joined;
}

static int open_file(const char *folder, const struct ibp_file_header *identity)
{
    int error = EEXIST;

    for (unsigned attempt = 0; attempt < ATTEMPTS && error == EEXIST; attempt++) {
        if (!name_file(recording.path, sizeof recording.path, folder, recording.stem, attempt)) return ENAMETOOLONG;
        error = join_file(identity);
        if (error == ENOENT) error = make_or_join_file(identity);
    }
    return error;
}

/* Open the file on the node's own storage, wherever there is enough space. */
static int open_file_beside(struct ibp_file_header *identity)
{
    char folder[PATH_MAX];
    int error = ENOSPC, choice;

    for (unsigned n = 0; error && (choice = ibp_storage_folder(n, folder, sizeof folder)) >= 0; n++)
        if (!choice) error = open_file(folder, identity);
    return error;
}

struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes)
{
    struct ibp_file_header identity;
    struct ibp_process *process;
    char folder[PATH_MAX];
    int error;

    ibp_output_identify(&identity);
    ibp_output_stem(&identity, recording.stem, sizeof recording.stem);
    error = ibp_output_make_folder(output, &identity, folder, sizeof folder);
    if (!error && ibp_storage_is_remote(folder)) {
        ibp_text_copy(recording.output_folder, sizeof recording.output_folder, folder);
        error = open_file_beside(&identity);
    } else if (!error) {
        error = open_file(folder, &identity);
    }
    if (error) {
        snprintf(why, why_bytes, "cannot write in %s: %s", folder, strerror(error));
        return NULL;
    }
    process = ibp_recording_reserve(IBP_SEGMENT_PROCESS);
    if (!process) {
        snprintf(why, why_bytes, "no space in %s", folder);
        return NULL;
    }
    ibp_recording_publish(IBP_SEGMENT_PROCESS);
    ibp_log(1, "recording to %s", recording.path);
    return process;
}

int ibp_recording_is_first(void)
{
    return recording.first;
}

/* -- segments ------------------------------------------------------------------------------------------------------ */

/* Reopen the file, or its copy, and check that it is still the one whose header is mapped. */
static int reopen_file(const char *path)
{
    const int file = ibp_storage_open(path, O_RDWR);
    struct ibp_file_header found;

    if (file < 0) return -1;
    if (pread(file, &found, sizeof found, 0) != (ssize_t)sizeof found || found.magic != recording.header->magic ||
        found.start_ns != recording.header->start_ns || strcmp(found.launch, recording.header->launch)) {
        close(file);
        return -1;
    }
    return file;
}

int ibp_recording_is_full(void)
{
    return (int)__atomic_load_n(&recording.header->full, __ATOMIC_RELAXED);
}

/* Refuse a segment, and tell this host's other processes by the header. */
static struct ibp_segment *refuse_segment(const char *why)
{
    __atomic_store_n(&recording.header->full, 1, __ATOMIC_RELAXED);
    ibp_log(1, "no space for more in %s: %s", recording.path, why);
    return NULL;
}

static struct ibp_segment *add_segment(enum ibp_segment_kind kind)
{
    const struct ibp_segment *former = recording.segment[kind];
    uint64_t bytes = former ? 2 * former->bytes : IBP_PAGE_BYTES;
    struct ibp_segment *segment = NULL;
    uint64_t offset;
    unsigned number;
    int file, error;

    if (__atomic_load_n(&recording.segments, __ATOMIC_RELAXED) >= SEGMENTS_MAX)
        return refuse_segment("too many segments");
    if (bytes > (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES)
        bytes = (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES;
    file = reopen_file(recording.path);
    if (file < 0) return refuse_segment("it cannot be opened again");
    offset = __atomic_fetch_add(&recording.header->end_bytes, bytes, __ATOMIC_RELAXED);
    error = map_part(file, offset, bytes, (void **)&segment);
    close(file);
    if (error) return refuse_segment(strerror(error));
    if (kind == IBP_SEGMENT_PROCESS) recording.process_offset = offset;
    segment->kind = kind;
    segment->offset = offset;
    segment->bytes = bytes;
    segment->process = recording.process_offset;
    segment->record_bytes = record_bytes[kind];
    segment->capacity = (uint32_t)((bytes - sizeof *segment) / record_bytes[kind]);
    __atomic_store_n(&segment->magic, IBP_SEGMENT_MAGIC, __ATOMIC_RELEASE);
    recording.segment[kind] = segment;
    number = __atomic_fetch_add(&recording.segments, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&recording.all[number], segment, __ATOMIC_RELEASE);
    return segment;
}

static __attribute__((noinline)) struct ibp_segment *add_segment_undisturbed(enum ibp_segment_kind kind)
{
    const int cancellation = ibp_cancellation_hold();
    struct ibp_segment *segment = add_segment(kind);

    ibp_cancellation_allow(cancellation);
    return segment;
}

void *ibp_recording_reserve(enum ibp_segment_kind kind)
{
    struct ibp_segment *segment = recording.segment[kind];

    if (!segment || segment->used == segment->capacity) segment = add_segment_undisturbed(kind);
    if (!segment) return NULL;
    return (char *)(segment + 1) + (size_t)segment->used * segment->record_bytes;
}

void ibp_recording_publish(enum ibp_segment_kind kind)
{
    struct ibp_segment *segment = recording.segment[kind];

    __atomic_store_n(&segment->used, segment->used + 1, __ATOMIC_RELEASE);
    recording.published[kind]++;
}

uint32_t ibp_recording_used(enum ibp_segment_kind kind)
{
    return recording.published[kind];
}

/* -- copying ------------------------------------------------------------------------------------------------------- */

static int copy_segment(int file, const struct ibp_segment *segment)
{
    return ibp_storage_write(file, segment, segment->bytes, segment->offset);
}

uint32_t ibp_recording_flush_seconds(void)
{
    return *recording.header->storage ? recording.header->flush_seconds : 0;
}

static int copy_segments(void)
{
    struct ibp_process *process = (struct ibp_process *)(recording.all[0] + 1);
    int file, error;

    file = reopen_file(recording.header->output);
    if (file < 0) return errno ? errno : ENOENT;
    /* The process's own record goes before and after: if the process is killed in between, the copy shows it. */
    process->copy_begun_ns = ibp_clock_ns();
    error = copy_segment(file, recording.all[0]);
    for (unsigned i = 1; i < recording.segments && !error; i++) {
        const struct ibp_segment *segment = __atomic_load_n(&recording.all[i], __ATOMIC_ACQUIRE);

        if (segment) error = copy_segment(file, segment);
    }
    if (!error) process->copied_ns = process->copy_begun_ns;
    if (!error) error = copy_segment(file, recording.all[0]);
    if (close(file) && !error) error = errno; /* a network file system reports an exceeded quota here */
    return error;
}

int ibp_recording_copy(void)
{
    int cancellation, error;

    if (!*recording.header->storage) return 0;
    cancellation = ibp_cancellation_hold();
    error = copy_segments();
    ibp_cancellation_allow(cancellation);
    return error;
}

void ibp_recording_leave(void)
{
    const uint64_t one_done = UINT64_C(1) << 32;
    uint64_t members;

    if (!*recording.header->storage) return;
    members = __atomic_add_fetch(&recording.header->members, one_done, __ATOMIC_ACQ_REL);
    if (members >> 32 == (uint32_t)members) unlink(recording.path);
}
