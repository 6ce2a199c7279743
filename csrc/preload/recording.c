/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Nothing here may harm the program: space is allocated on the file system before it is mapped (a write to a hole in a full
 * one is SIGBUS), never beyond the limit of file sizes (SIGXFSZ), and the file is opened anew for each growth, since a program
 * may close every descriptor, or be given our number for a file of its own.
 */
#include "system.h"
#include "hydra.h"
#include "operations.h"
#include "recording.h"
#include "text.h"

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
#include <time.h>
#include <unistd.h>

#define KINDS (IBP_SEGMENT_SNAPSHOTS + 1)
#define LARGEST_SEGMENT_PAGES 256

static const uint32_t record_bytes[KINDS] = {
    [IBP_SEGMENT_PROCESS] = sizeof(struct ibp_process),   [IBP_SEGMENT_PORTS] = sizeof(struct ibp_port),
    [IBP_SEGMENT_REGIONS] = sizeof(struct ibp_region),    [IBP_SEGMENT_COUNTERS] = sizeof(struct ibp_counter),
    [IBP_SEGMENT_SIZES] = sizeof(struct ibp_sizes),       [IBP_SEGMENT_MARKS] = sizeof(struct ibp_mark),
    [IBP_SEGMENT_PAIRS] = sizeof(struct ibp_pair),        [IBP_SEGMENT_TRANSFERS] = sizeof(struct ibp_transfer),
    [IBP_SEGMENT_HARDWARE] = sizeof(struct ibp_hardware), [IBP_SEGMENT_SNAPSHOTS] = sizeof(struct ibp_snapshot),
    [IBP_SEGMENT_ADDRESSES] = sizeof(struct ibp_address),
};
_Static_assert(sizeof(struct ibp_segment) + sizeof(struct ibp_process) <= IBP_PAGE_BYTES, "a process fits a page");

static struct {
    char path[PATH_MAX];
    struct ibp_file_header *header;
    uint64_t process_offset;
    bool first;
    struct ibp_segment *segment[KINDS]; /* the one being filled */
    uint32_t published[KINDS];
} recording;

uint64_t ibp_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void *ibp_memory_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void ibp_memory_unmap(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}

/* Allocates and maps a part of the file; `offset` need not be a multiple of this system's page. Returns 0 or an errno. */
static int map_part(int file, uint64_t offset, uint64_t bytes, void **mapped)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t lead = offset % page;
    struct rlimit limit;
    char *memory;
    int error;

    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur))
        return EFBIG;
    error = posix_fallocate(file, (off_t)offset, (off_t)bytes);
    if (error) return error;
    memory = mmap(NULL, bytes + lead, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)(offset - lead));
    if (memory == MAP_FAILED) return errno;
    *mapped = memory + lead;
    return 0;
}

/* -- which file ------------------------------------------------------------------------------------------------------- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

/* The launcher's name of this job: the same in all processes of one MPI_COMM_WORLD, and no other's. */
static void describe_job(char *job, size_t bytes)
{
    job[0] = '\0';
    if (*environment("PMIX_NAMESPACE")) {
        ibp_text_copy(job, bytes, environment("PMIX_NAMESPACE"));
        /* Open MPI 4 makes its name from a process number, which comes round again; this is drawn at random. */
        ibp_text_append(job, bytes, "/");
        ibp_text_append(job, bytes, environment("OMPI_MCA_orte_precondition_transports"));
    } else if (*environment("SLURM_STEP_ID")) {
        ibp_text_copy(job, bytes, environment("SLURM_JOB_ID"));
        ibp_text_append(job, bytes, ".");
        ibp_text_append(job, bytes, environment("SLURM_STEP_ID"));
    }
}

/* What tells this launch on this host from any other: the address of its daemon here, or this process itself. */
static void describe_launch(char *launch, size_t bytes, const char *job)
{
    static const char *const daemon_addresses[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3",
                                                   "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"};

    for (size_t i = 0; i < sizeof daemon_addresses / sizeof *daemon_addresses; i++)
        if (*environment(daemon_addresses[i])) {
            ibp_text_copy(launch, bytes, environment(daemon_addresses[i]));
            return;
        }
    if (*job)
        ibp_text_copy(launch, bytes, job);
    else
        snprintf(launch, bytes, "process %ld %llu", (long)getpid(), (unsigned long long)ibp_clock_ns());
}

/* Letters, digits and a few signs of a name; what else it holds becomes '_'. */
static void make_file_name(char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    for (; *name; name++)
        if (!strchr(allowed, *name)) *name = '_';
}

/* Fills in %j and %h. */
static void expand_output(const char *output, const char *host, const char *job, char *into, size_t bytes)
{
    char letter[2] = "";
    char name[256];

    into[0] = '\0';
    for (; *output; output++) {
        if (output[0] == '%' && output[1] == 'h') {
            ibp_text_append(into, bytes, host);
            output++;
        } else if (output[0] == '%' && output[1] == 'j') {
            ibp_text_copy(name, sizeof name,
                          *environment("SLURM_JOB_ID") ? environment("SLURM_JOB_ID")
                          : *environment("PBS_JOBID")  ? environment("PBS_JOBID")
                          : *job                       ? job
                                                       : "nojob");
            make_file_name(name);
            ibp_text_append(into, bytes, name);
            output++;
        } else {
            letter[0] = *output;
            ibp_text_append(into, bytes, letter);
        }
    }
}

/* Makes a folder and those above it. Returns 0 or an errno. */
static int make_folder(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    if (!mkdir(path, 0777) || errno == EEXIST) return 0;
    return errno;
}

/* -- making and joining the file -------------------------------------------------------------------------------------- */

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
    header->magic = IBP_FILE_MAGIC;
}

/* Makes the file whole under another name and links it to its own, so that nobody ever sees half of it: the first of the
 * host's processes wins, the others join. Returns 0 or an errno; EEXIST when another one was first. */
static int make_file(const struct ibp_file_header *identity)
{
    char unfinished[PATH_MAX + 32];
    void *header = NULL;
    int file, error;

    snprintf(unfinished, sizeof unfinished, "%s.%ld", recording.path, (long)getpid());
    file = open(unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return errno;
    error = map_part(file, 0, HEADER_BYTES, &header);
    close(file);
    if (!error) {
        fill_header(header, identity);
        if (link(unfinished, recording.path)) error = errno;
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

/* Joins a file that another process of this launch made. Returns 0 or an errno; EEXIST when it is somebody else's. */
static int join_file(const struct ibp_file_header *identity)
{
    const int file = open(recording.path, O_RDWR | O_CLOEXEC);
    struct ibp_file_header *header = NULL;
    int error;

    if (file < 0) return errno;
    error = map_part(file, 0, HEADER_BYTES, (void **)&header);
    close(file);
    if (error) return error;
    if (header->magic != IBP_FILE_MAGIC || header->version != IBP_FORMAT_VERSION ||
        header->operation_count != IBP_OPERATIONS || strcmp(header->launch, identity->launch) ||
        strcmp(header->run, identity->run) || strcmp(header->library_version, identity->library_version)) {
        ibp_memory_unmap(header, HEADER_BYTES);
        return EEXIST;
    }
    recording.header = header;
    return 0;
}

static int open_file(const char *folder, const struct ibp_file_header *identity)
{
    char host[64];
    uint64_t hash = ibp_text_hash(IBP_HASH_START, identity->job);
    int error = EEXIST;

    ibp_text_copy(host, sizeof host, identity->host);
    make_file_name(host);
    hash = ibp_text_hash(hash, identity->launch);
    hash = ibp_text_hash(hash, identity->run);
    /* Another run under the same name is next to impossible; then this one's file gets a number. */
    for (unsigned attempt = 0; attempt < 100 && error == EEXIST; attempt++) {
        if (snprintf(recording.path, sizeof recording.path, "%s/%s-%016llx-%u.ibprof", folder, host,
                     (unsigned long long)hash, attempt) >= (int)sizeof recording.path)
            return ENAMETOOLONG;
        error = make_file(identity);
        if (error == EEXIST) error = join_file(identity);
    }
    return error;
}

struct ibp_process *ibp_recording_open(const char *output, char *why, size_t why_bytes)
{
    char folder[PATH_MAX], expanded[PATH_MAX];
    struct ibp_file_header identity;
    struct ibp_process *process;
    int error;

    memset(&identity, 0, sizeof identity);
    if (gethostname(identity.host, sizeof identity.host - 1))
        ibp_text_copy(identity.host, sizeof identity.host, "unknown");
    describe_job(identity.job, sizeof identity.job);
    if (*identity.job ||
        !ibp_hydra_describe(identity.job, sizeof identity.job, identity.launch, sizeof identity.launch))
        describe_launch(identity.launch, sizeof identity.launch, identity.job);
    ibp_text_copy(identity.run, sizeof identity.run, environment("IBPROF_RUN"));
    ibp_text_copy(identity.library_version, sizeof identity.library_version, IBP_VERSION);

    expand_output(output, identity.host, identity.job, expanded, sizeof expanded);
    folder[0] = '\0';
    if (expanded[0] != '/') {
        if (!getcwd(folder, sizeof folder)) folder[0] = '\0';
        ibp_text_append(folder, sizeof folder, "/");
    }
    ibp_text_append(folder, sizeof folder, expanded);

    error = make_folder(folder);
    if (!error) error = open_file(folder, &identity);
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

/* -- segments --------------------------------------------------------------------------------------------------------- */

/* Opens the file again for growing, and makes sure that it still is the one that the header is mapped from. */
static int reopen_file(void)
{
    const int file = open(recording.path, O_RDWR | O_CLOEXEC);
    struct ibp_file_header found;

    if (file < 0) return -1;
    if (pread(file, &found, sizeof found, 0) != (ssize_t)sizeof found || found.magic != recording.header->magic ||
        found.start_ns != recording.header->start_ns || strcmp(found.launch, recording.header->launch)) {
        close(file);
        return -1;
    }
    return file;
}

static struct ibp_segment *add_segment(enum ibp_segment_kind kind)
{
    const struct ibp_segment *former = recording.segment[kind];
    uint64_t bytes = former ? 2 * former->bytes : IBP_PAGE_BYTES;
    struct ibp_segment *segment = NULL;
    uint64_t offset;
    int file, error;

    if (bytes > (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES)
        bytes = (uint64_t)LARGEST_SEGMENT_PAGES * IBP_PAGE_BYTES;
    file = reopen_file();
    if (file < 0) return NULL;
    offset = __atomic_fetch_add(&recording.header->end_bytes, bytes, __ATOMIC_RELAXED);
    error = map_part(file, offset, bytes, (void **)&segment);
    close(file);
    if (error) {
        ibp_log(1, "no space for more in %s: %s", recording.path, strerror(error));
        return NULL;
    }
    if (kind == IBP_SEGMENT_PROCESS) recording.process_offset = offset;
    segment->kind = kind;
    segment->offset = offset;
    segment->bytes = bytes;
    segment->process = recording.process_offset;
    segment->record_bytes = record_bytes[kind];
    segment->capacity = (uint32_t)((bytes - sizeof *segment) / record_bytes[kind]);
    __atomic_store_n(&segment->magic, IBP_SEGMENT_MAGIC, __ATOMIC_RELEASE);
    recording.segment[kind] = segment;
    return segment;
}

void *ibp_recording_reserve(enum ibp_segment_kind kind)
{
    struct ibp_segment *segment = recording.segment[kind];

    if (!segment || segment->used == segment->capacity) segment = add_segment(kind);
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
