/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/recording.h"
#include "platform/cancellation.h"
#include "platform/clock.h"
#include "platform/log.h"
#include "recording/file.h"
#include "recording/storage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KINDS (IBP_SEGMENT_NCCL_SAMPLES + 1)
#define LARGEST_SEGMENT_PAGES 256
#define SEGMENTS_MAX 4096

/* The size and the version of each kind of records. The version is incremented when members are added at the end of the
 * record. */
static const struct {
    uint32_t bytes, version;
} record[KINDS] = {
    [IBP_SEGMENT_PROCESS] = {sizeof(struct ibp_process), 7},
    [IBP_SEGMENT_PORTS] = {sizeof(struct ibp_port), 3},
    [IBP_SEGMENT_REGIONS] = {sizeof(struct ibp_region), 1},
    [IBP_SEGMENT_ORIGINS] = {sizeof(struct ibp_origin), 1},
    [IBP_SEGMENT_COUNTERS] = {sizeof(struct ibp_counter), 1},
    [IBP_SEGMENT_SIZES] = {sizeof(struct ibp_sizes), 1},
    [IBP_SEGMENT_MARKS] = {sizeof(struct ibp_mark), 1},
    [IBP_SEGMENT_PAIRS] = {sizeof(struct ibp_pair), 1},
    [IBP_SEGMENT_TRANSFERS] = {sizeof(struct ibp_transfer), 1},
    [IBP_SEGMENT_HARDWARE] = {sizeof(struct ibp_hardware), 1},
    [IBP_SEGMENT_SNAPSHOTS] = {sizeof(struct ibp_snapshot), 2},
    [IBP_SEGMENT_ADDRESSES] = {sizeof(struct ibp_address), 1},
    [IBP_SEGMENT_LAUNCH] = {sizeof(struct ibp_launch), 1},
    [IBP_SEGMENT_GRIDS] = {sizeof(struct ibp_grid), 1},
    [IBP_SEGMENT_DEMANDS] = {sizeof(struct ibp_demand), 1},
    [IBP_SEGMENT_OBJECTS] = {sizeof(struct ibp_object), 1},
    [IBP_SEGMENT_SITES] = {sizeof(struct ibp_site), 1},
    [IBP_SEGMENT_TIMES] = {sizeof(struct ibp_time), 1},
    [IBP_SEGMENT_CHOICES] = {sizeof(struct ibp_choice), 1},
    [IBP_SEGMENT_COLLECTIVE_SAMPLES] = {sizeof(struct ibp_collective_sample), 2},
    [IBP_SEGMENT_MESSAGE_SAMPLES] = {sizeof(struct ibp_message_sample), 1},
    [IBP_SEGMENT_INTERFACES] = {sizeof(struct ibp_interface), 1},
    [IBP_SEGMENT_TRANSPORTS] = {sizeof(struct ibp_transport), 1},
    [IBP_SEGMENT_NCCL_COMMUNICATORS] = {sizeof(struct ibp_nccl_communicator), 1},
    [IBP_SEGMENT_NCCL_TASKS] = {sizeof(struct ibp_nccl_task), 1},
    [IBP_SEGMENT_NCCL_FLOWS] = {sizeof(struct ibp_nccl_flow), 1},
    [IBP_SEGMENT_NCCL_SAMPLES] = {sizeof(struct ibp_nccl_sample), 1},
};
_Static_assert(sizeof(struct ibp_segment) + sizeof(struct ibp_process) <= IBP_PAGE_BYTES, "a process fits a page");

static struct {
    struct ibp_recording_file file;
    uint64_t process_offset;
    /* For each kind of records, the segment that is being filled. */
    struct ibp_segment *segment[KINDS];
    uint32_t published[KINDS];
    /* All segments of this process. The first segment contains the record of the process. The array is longer than
     * SEGMENTS_MAX, because several threads may pass the check of the limit at once. */
    struct ibp_segment *all[SEGMENTS_MAX + 8];
    unsigned segments;
} recording;

struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes)
{
    struct ibp_process *process;
    char folder[PATH_MAX];
    const int error = ibp_file_open(&recording.file, output, folder, sizeof folder);

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
    ibp_log(1, "recording to %s", recording.file.path);
    return process;
}

int ibp_recording_is_first(void)
{
    return recording.file.first;
}

/* -- segments ------------------------------------------------------------------------------------------------------ */

enum ibp_full ibp_recording_why_full(void)
{
    return (enum ibp_full)__atomic_load_n(&recording.file.header->full, __ATOMIC_RELAXED);
}

const char *ibp_recording_path(void)
{
    return recording.file.path;
}

/* Report that no segment can be added. Store the reason in the header, for the other processes of this host. */
static struct ibp_segment *refuse_segment(enum ibp_full reason, const char *why)
{
    uint32_t none = IBP_NOT_FULL;

    __atomic_compare_exchange_n(&recording.file.header->full, &none, reason, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ibp_log(1, "recording in %s ends: %s", recording.file.path, why);
    return NULL;
}

/* Refuse a segment because the file cannot be opened again. The reason is in errno. */
static struct ibp_segment *refuse_unopened(void)
{
    const bool is_gone = errno == ENOENT || errno == ENOTDIR || errno == ESTALE || errno == EEXIST;

    if (geteuid() != recording.file.user) return refuse_segment(IBP_FULL_USER, "the program changed its user");
    return refuse_segment(is_gone ? IBP_FULL_MOVED : IBP_FULL_CLOSED, strerror(errno));
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
        return refuse_segment(IBP_FULL_SPACE, "too many segments");
    if (bytes > (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES)
        bytes = (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES;
    file = ibp_file_reopen(&recording.file);
    if (file < 0) return refuse_unopened();
    offset = __atomic_fetch_add(&recording.file.header->end_bytes, bytes, __ATOMIC_RELAXED);
    error = ibp_file_map(file, offset, bytes, (void **)&segment);
    close(file);
    if (error) return refuse_segment(IBP_FULL_SPACE, strerror(error));
    if (kind == IBP_SEGMENT_PROCESS) recording.process_offset = offset;
    segment->kind = kind;
    segment->offset = offset;
    segment->bytes = bytes;
    segment->process = recording.process_offset;
    segment->record_bytes = record[kind].bytes;
    segment->version = record[kind].version;
    segment->capacity = (uint32_t)((bytes - sizeof *segment) / segment->record_bytes);
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
    return *recording.file.header->storage ? recording.file.header->flush_seconds : 0;
}

static int copy_segments(void)
{
    struct ibp_process *process = (struct ibp_process *)(recording.all[0] + 1);
    int file, error;

    file = ibp_file_reopen_copy(&recording.file);
    if (file < 0) return errno ? errno : ENOENT;
    /* Copy the record of the process first and last, so that the copy shows whether the process was killed while
     * copying. */
    process->copy_begun_ns = ibp_clock_ns();
    error = copy_segment(file, recording.all[0]);
    for (unsigned i = 1; i < recording.segments && !error; i++) {
        const struct ibp_segment *segment = __atomic_load_n(&recording.all[i], __ATOMIC_ACQUIRE);

        if (segment) error = copy_segment(file, segment);
    }
    if (!error) process->copied_ns = process->copy_begun_ns;
    if (!error) error = copy_segment(file, recording.all[0]);
    if (close(file) && !error) error = errno; /* a network file system may report an exceeded quota only here */
    return error;
}

int ibp_recording_copy(void)
{
    int cancellation, error;

    if (!*recording.file.header->storage) return 0;
    cancellation = ibp_cancellation_hold();
    error = copy_segments();
    ibp_cancellation_allow(cancellation);
    return error;
}

void ibp_recording_leave(void)
{
    const uint64_t one_done = UINT64_C(1) << 32;
    uint64_t members;

    if (!*recording.file.header->storage) return;
    members = __atomic_add_fetch(&recording.file.header->members, one_done, __ATOMIC_ACQ_REL);
    if (members >> 32 == (uint32_t)members) unlink(recording.file.path);
}
