/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Recordings are written by the library's own code and read back here from the file.
 */
#include "check.h"
#include "counting/contexts.h"
#include "counting/count.h"
#include "counting/counters.h"
#include "counting/ledger.h"
#include "counting/timeline.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- reading ------------------------------------------------------------------------------------------------------- */

static const char *only_file(const char *folder)
{
    static char path[600];
    DIR *opened = opendir(folder);
    const struct dirent *entry;
    int files = 0;

    CHECK(opened);
    while ((entry = readdir(opened)))
        if (entry->d_name[0] != '.') {
            files++;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    closedir(opened);
    CHECK(files == 1);
    return path;
}

static const char *map_file(const char *path, size_t *bytes)
{
    const int file = open(path, O_RDONLY);
    struct stat status;
    char *memory;

    CHECK(file >= 0 && !fstat(file, &status));
    *bytes = (size_t)status.st_size;
    memory = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED);
    close(file);
    return memory;
}

static struct ibp_origin find_origin(const char *file, size_t bytes, uint32_t number)
{
    for (size_t offset = ((const struct ibp_file_header *)(const void *)file)->segments_offset; offset < bytes;
         offset += IBP_PAGE_BYTES) {
        const struct ibp_segment *segment = (const void *)(file + offset);

        if (segment->magic != IBP_SEGMENT_MAGIC || segment->kind != IBP_SEGMENT_ORIGINS) continue;
        if (number < segment->used) return ((const struct ibp_origin *)(const void *)(segment + 1))[number];
        number -= segment->used;
    }
    CHECK(!"an origin of that number");
    return (struct ibp_origin){0};
}

/* Sums over the counters of a region in the file (region -1: all regions), and the number of these counters. */
struct sums {
    uint64_t bytes, messages;
    int records, processes;
};

static struct sums sum_counters(const char *path, int region)
{
    size_t bytes;
    const char *file = map_file(path, &bytes);
    const struct ibp_file_header *header = (const void *)file;
    struct sums sums = {0};

    CHECK(header->magic == IBP_FILE_MAGIC && header->version == IBP_FORMAT_VERSION);
    for (size_t offset = header->segments_offset; offset + sizeof(struct ibp_segment) <= bytes;) {
        const struct ibp_segment *segment = (const void *)(file + offset);
        const struct ibp_counter *counters = (const void *)(segment + 1);

        if (segment->magic != IBP_SEGMENT_MAGIC) {
            offset += IBP_PAGE_BYTES;
            continue;
        }
        CHECK(segment->offset == offset && segment->used <= segment->capacity && segment->version);
        CHECK(sizeof *segment + (size_t)segment->capacity * segment->record_bytes <= segment->bytes);
        sums.processes += segment->kind == IBP_SEGMENT_PROCESS;
        for (uint32_t i = 0; segment->kind == IBP_SEGMENT_COUNTERS && i < segment->used; i++)
            if (region < 0 || find_origin(file, bytes, counters[i].origin).region == (uint32_t)region) {
                sums.bytes += counters[i].bytes;
                sums.messages += counters[i].messages;
                sums.records++;
            }
        offset += segment->bytes;
    }
    munmap((void *)(uintptr_t)file, bytes);
    return sums;
}

/* -- tests, each in a process of its own, since a process has one recording ---------------------------------------- */

static struct ibp_process *start(const char *folder)
{
    char why[256] = "";
    struct ibp_process *process = ibp_recording_open(folder, why, sizeof why);

    if (!process) fprintf(stderr, "%s\n", why);
    CHECK(process && !ibp_counters_open(process, IBP_SOURCE_OPENMPI));
    ibp_contexts_set(0);
    return process;
}

static void counts_every_message_once(const char *folder)
{
    enum { PEERS = 3000, ROUNDS = 3 };
    struct sums sums;

    start(folder);
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t peer = 0; peer < PEERS; peer++) {
            ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, peer);
            ibp_count(IBP_OPERATION_Bcast, IBP_KIND_USER, IBP_DIRECTION_RECEIVED, peer, 1);
        }
    sums = sum_counters(only_file(folder), -1);
    CHECK(sums.records == 2 * PEERS && sums.messages == 2 * PEERS * ROUNDS);
    CHECK(sums.bytes == ROUNDS * ((uint64_t)PEERS * (PEERS - 1) / 2 + PEERS));
}

static void sizes_fall_into_their_bins(const char *folder)
{
    const uint64_t sizes[] = {0, 1, 2, 3, 4, 1023, 1024, UINT64_C(1) << 40};
    const unsigned bins[] = {0, 1, 2, 2, 3, 10, 11, 41};
    size_t bytes;
    const char *file;
    const struct ibp_sizes *record = NULL;

    start(folder);
    for (unsigned i = 0; i < 8; i++) ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, i % 3, sizes[i]);
    file = map_file(only_file(folder), &bytes);
    for (size_t offset = 0; offset < bytes && !record; offset += IBP_PAGE_BYTES) {
        const struct ibp_segment *segment = (const void *)(file + offset);

        if (segment->magic == IBP_SEGMENT_MAGIC && segment->kind == IBP_SEGMENT_SIZES)
            record = (const void *)(segment + 1);
    }
    CHECK(record && find_origin(file, bytes, record->origin).operation == IBP_OPERATION_Send);
    for (unsigned i = 0; i < 8; i++) CHECK(record->messages[bins[i]] == (bins[i] == 2 ? 2 : 1));
}

static struct sums sum_demands(const char *path, uint32_t region)
{
    size_t bytes;
    const char *file = map_file(path, &bytes);
    struct sums sums = {0};

    for (size_t offset = 0; offset < bytes; offset += IBP_PAGE_BYTES) {
        const struct ibp_segment *segment = (const void *)(file + offset);
        const struct ibp_demand *demands = (const void *)(segment + 1);

        if (segment->magic != IBP_SEGMENT_MAGIC || segment->kind != IBP_SEGMENT_DEMANDS) continue;
        for (uint32_t i = 0; i < segment->used; i++)
            if (find_origin(file, bytes, demands[i].origin).region == region) {
                sums.bytes += demands[i].bytes;
                sums.messages += demands[i].calls;
            }
    }
    return sums;
}

static void demands_are_apart_from_counters(const char *folder)
{
    const struct ibp_process *process = start(folder);
    struct ibp_mark totals = {0};

    CHECK(!ibp_process_state_open());
    ibp_process_state->active = true;
    ibp_count(IBP_OPERATION_Bcast, IBP_KIND_USER, IBP_DIRECTION_SENT, 1, 10);
    for (int call = 0; call < 3; call++)
        ibp_ledger_enter(&ibp_calls[IBP_OPERATION_Bcast], (struct ibp_demanded){.partner = 1, .bytes = 1000});
    ibp_counters_total(&totals);
    CHECK(totals.sent_bytes == 10 && totals.sent_messages == 1);
    ibp_counters_move(0, 7);
    CHECK(!process->redo_from);
    CHECK(sum_demands(only_file(folder), 0).messages == 0);
    CHECK(sum_demands(only_file(folder), 7).bytes == 3000 && sum_demands(only_file(folder), 7).messages == 3);
    CHECK(sum_counters(only_file(folder), 7).bytes == 10);
}

static void moving_a_region_keeps_its_bytes(const char *folder)
{
    const struct ibp_process *process = start(folder);

    for (int round = 1; round <= 3; round++) {
        for (uint32_t peer = 0; peer < 500; peer++)
            ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 10);
        ibp_counters_move(0, 7);
        CHECK(sum_counters(only_file(folder), 7).bytes == (uint64_t)round * 5000);
        CHECK(sum_counters(only_file(folder), -1).messages == (uint64_t)round * 500);
        CHECK(!process->redo_from);
    }
}

static void says_what_it_could_not_keep(const char *folder)
{
    const struct ibp_process *process = start(folder);
    const struct rlimit limit = {.rlim_cur = 40 * IBP_PAGE_BYTES, .rlim_max = RLIM_INFINITY};
    uint64_t counted = 0;

    CHECK(!setrlimit(RLIMIT_FSIZE, &limit)); /* a write beyond the limit would end this process by SIGXFSZ */
    for (uint32_t peer = 0; peer < 100000; peer++, counted += 5)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 5);
    CHECK(process->lost_bytes > 0);
    CHECK(sum_counters(only_file(folder), -1).bytes + process->lost_bytes == counted);
}

static void goes_on_when_the_file_is_gone(const char *folder)
{
    const struct ibp_process *process = start(folder);
    char path[600];

    snprintf(path, sizeof path, "%s", only_file(folder));
    CHECK(!unlink(path));
    for (uint32_t peer = 0; peer < 1000; peer++)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 5);
    CHECK(process->lost_messages > 0);
}

static void never_writes_to_another_file_of_that_name(const char *folder)
{
    char path[600];
    struct stat before, after;
    int file;

    start(folder);
    snprintf(path, sizeof path, "%s", only_file(folder));
    CHECK(!unlink(path));
    file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && write(file, "somebody else's", 15) == 15 && !fstat(file, &before));
    for (uint32_t peer = 0; peer < 1000; peer++)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 5);
    CHECK(!fstat(file, &after) && before.st_size == after.st_size);
}

static void a_killed_process_leaves_its_counters(const char *folder)
{
    const pid_t child = fork();
    int status;

    if (!child) {
        start(folder);
        for (uint32_t peer = 0; peer < 200; peer++)
            ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 100);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(sum_counters(only_file(folder), -1).bytes == 20000);
}

static void processes_of_a_launch_share_a_file(const char *folder)
{
    enum { PROCESSES = 16 };
    struct sums sums;

    setenv("PMIX_NAMESPACE", "test-job@1", 1);
    setenv("PMIX_SERVER_URI4", "test-daemon:4711", 1);
    for (int i = 0; i < PROCESSES; i++)
        if (!fork()) {
            start(folder);
            for (uint32_t peer = 0; peer < 1000; peer++)
                ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 1);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
    }
    sums = sum_counters(only_file(folder), -1);
    CHECK(sums.processes == PROCESSES && sums.bytes == PROCESSES * 1000);
}

static void *count_from_a_thread(void *peer)
{
    for (int i = 0; i < 20000; i++)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT,
                  (uint32_t)(uintptr_t)peer + (uint32_t)(i % 700), 1);
    return NULL;
}

static void threads_count_together(const char *folder)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];

    start(folder);
    ibp_threads_multiple = true;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&thread[i], NULL, count_from_a_thread, (void *)(i * 100)));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(thread[i], NULL));
    CHECK(sum_counters(only_file(folder), -1).messages == THREADS * 20000);
}

/* The number of snapshots is limited. The totals of successive snapshots never fall, and the last total equals the
 * counted bytes. A snapshot adds each peer's bytes to the peer's group. */
static void snapshots_are_bounded(const char *folder)
{
    enum { RANKS = 100, GROUP = 4 };
    const uint64_t tick_ns = 10000000;
    uint64_t now = 1, last_bytes = 0, taken = 0, largest = 0, times[512], sums[512], count = 0;
    size_t bytes;
    const char *file;

    start(folder);
    ibp_timeline_open(10, RANKS, now);
    CHECK(!ibp_timeline_is_due(now + tick_ns - 1));
    for (uint32_t i = 0; i < 20000; i++) {
        now += tick_ns;
        if (ibp_timeline_is_due(now)) {
            ibp_timeline_take(now);
            taken++;
        }
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, i % RANKS, 10);
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_RECEIVED, i % RANKS, 1000);
    }
    ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, IBP_PEER_UNKNOWN, 7);
    /* After a long time without traffic, the snapshot must not record earlier bytes as recent bytes. */
    ibp_timeline_take(now + 1000000 * tick_ns);
    CHECK(taken > 600 && taken < 3000);
    file = map_file(only_file(folder), &bytes);
    for (size_t offset = 0, kept = 0; offset < bytes; offset += IBP_PAGE_BYTES) {
        const struct ibp_segment *segment = (const void *)(file + offset);
        const struct ibp_snapshot *snapshot = (const void *)(segment + 1);

        if (segment->magic != IBP_SEGMENT_MAGIC || segment->kind != IBP_SEGMENT_SNAPSHOTS) continue;
        kept += segment->used;
        CHECK(kept <= 512);
        for (uint32_t i = 0; i < segment->used; i++) {
            uint64_t sum = 0;

            if (!snapshot[i].time_ns) continue;
            CHECK(snapshot[i].group_ranks == GROUP);
            for (int group = 0; group < IBP_SNAPSHOT_GROUPS; group++) sum += snapshot[i].bytes[group];
            if (sum > largest) largest = sum, last_bytes = snapshot[i].bytes[RANKS / GROUP - 1];
            times[count] = snapshot[i].time_ns;
            sums[count++] = sum;
        }
    }
    for (uint64_t a = 0; a < count; a++)
        for (uint64_t b = 0; b < count; b++) CHECK(times[a] >= times[b] || sums[a] <= sums[b]);
    CHECK(largest == 20000 * 10 + 7 && last_bytes == 20000 / RANKS * GROUP * 10);
}

/* If peers are known by address, each of the first IBP_SNAPSHOT_GROUPS - 1 peers is a group. All other peers, including
 * peers known by rank, are the last group. */
static void groups_of_addresses(const char *folder)
{
    uint64_t bytes[IBP_SNAPSHOT_GROUPS] = {0}, messages[IBP_SNAPSHOT_GROUPS] = {0};
    const uint32_t last = IBP_SNAPSHOT_GROUPS - 1;

    start(folder);
    for (uint32_t i = 0; i < 40; i++)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, IBP_PEER_ADDRESS + i, 100 + i);
    ibp_count(IBP_OPERATION_Put, IBP_KIND_USER, IBP_DIRECTION_SENT, 3, 10000);
    ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, IBP_PEER_UNKNOWN, 20000);
    ibp_counters_by_group(0, bytes, messages);
    for (uint32_t i = 0; i < last; i++) CHECK(bytes[i] == 100 + i && messages[i] == 1);
    CHECK(messages[last] == 40 - last + 2);
}

static void refuses_a_folder_it_cannot_write(const char *folder)
{
    char why[256] = "", path[600];
    int file;

    snprintf(path, sizeof path, "%s/file", folder);
    file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    snprintf(path, sizeof path, "%s/file/below", folder);
    CHECK(!ibp_recording_open(path, why, sizeof why) && strstr(why, path));
    /* If ibprof cannot create nested folders, ibprof reports the first error, not that the last folder's parent is
     * missing. */
    if (!getuid()) CHECK(!seteuid(65534));
    CHECK(!ibp_recording_open("/closed/to/users", why, sizeof why) && strstr(why, strerror(EACCES)));
    CHECK(!seteuid(getuid()));
}

static void fills_in_job_and_host(const char *folder)
{
    char output[600], host[256] = "", expected[900];

    setenv("SLURM_JOB_ID", "4711/x", 1);
    snprintf(output, sizeof output, "%s/deep/%%j/on-%%h", folder);
    start(output);
    CHECK(!gethostname(host, sizeof host));
    snprintf(expected, sizeof expected, "%s/deep/4711_x/on-%s", folder, host);
    only_file(expected);
}

static void run(void (*test)(const char *))
{
    const pid_t child = fork();
    int status;

    if (!child) {
        char no_names[64];

        ibp_operations_select("", no_names, sizeof no_names);
        test(make_test_folder());
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
    run(counts_every_message_once);
    run(sizes_fall_into_their_bins);
    run(demands_are_apart_from_counters);
    run(moving_a_region_keeps_its_bytes);
    run(says_what_it_could_not_keep);
    run(goes_on_when_the_file_is_gone);
    run(never_writes_to_another_file_of_that_name);
    run(a_killed_process_leaves_its_counters);
    run(processes_of_a_launch_share_a_file);
    run(threads_count_together);
    run(snapshots_are_bounded);
    run(groups_of_addresses);
    run(refuses_a_folder_it_cannot_write);
    run(fills_in_job_and_host);
    return 0;
}
