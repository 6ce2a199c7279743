/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "recording_reader.h"
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGEST_FILE (1 << 28)

static const char *file;

void reader_open(const char *folder)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;
    char path[700];
    int descriptor;

    CHECK(opened);
    while ((entry = readdir(opened)) && entry->d_name[0] == '.');
    CHECK(entry);
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(opened);
    descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0);
    /* Map more bytes than the file has, because the file grows. Pages become valid when the file contains them. */
    file = mmap(NULL, LARGEST_FILE, PROT_READ, MAP_SHARED, descriptor, 0);
    CHECK(file != MAP_FAILED);
    close(descriptor);
}

static const struct ibp_segment *next_segment(const struct ibp_segment *segment, enum ibp_segment_kind kind)
{
    const struct ibp_file_header *header = (const void *)file;
    const char *at = segment ? (const char *)segment + segment->bytes : file + header->segments_offset;

    for (; at < file + header->end_bytes; at += ((const struct ibp_segment *)at)->bytes)
        if (((const struct ibp_segment *)at)->kind == kind) return (const void *)at;
    return NULL;
}

int reader_count(enum ibp_segment_kind kind)
{
    int count = 0;

    for (const struct ibp_segment *segment = NULL; (segment = next_segment(segment, kind));)
        count += (int)segment->used;
    return count;
}

uint64_t reader_bytes(enum ibp_segment_kind kind)
{
    uint64_t bytes = 0;

    for (const struct ibp_segment *segment = NULL; (segment = next_segment(segment, kind));) bytes += segment->bytes;
    return bytes;
}

const void *reader_record(enum ibp_segment_kind kind, int number)
{
    for (const struct ibp_segment *segment = NULL; (segment = next_segment(segment, kind));
         number -= (int)segment->used)
        if (number < (int)segment->used) return (const char *)(segment + 1) + (size_t)number * segment->record_bytes;
    CHECK(!"a record of that number");
    return NULL;
}

const struct ibp_process *reader_process(void)
{
    return reader_record(IBP_SEGMENT_PROCESS, 0);
}
