/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Samples of collectives and messages: which are kept, and how many. The table of open requests.
 */
#include "check.h"
#include "counting/open_requests.h"
#include "counting/samples.h"
#include "recording/recording.h"
#include "recording_reader.h"

#include "ibprof_recording.h"

#include <stdint.h>
#include <string.h>

static struct ibp_process *process;

/* Each level keeps one number of each block of 2^level numbers. All lower levels keep this number too. */
static void test_one_of_each_block(void)
{
    for (uint64_t stream = 1; stream < 50; stream++)
        for (unsigned level = 0; level < 8; level++) {
            uint64_t kept = 0;

            for (uint64_t number = 0; number < 1024; number++) {
                const bool is_kept = ibp_sample_keeps(stream, number) >= level;

                kept += is_kept;
                CHECK(is_kept == (ibp_sample_next(stream, number, level) == number));
            }
            CHECK(kept == UINT64_C(1024) >> level);
        }
    CHECK(ibp_sample_next(7, UINT64_C(1) << 40, 20) >= UINT64_C(1) << 40);
}

static void test_streams_differ(void)
{
    uint64_t firsts = 0;

    for (uint64_t stream = 0; stream < 256; stream++) firsts |= UINT64_C(1) << ibp_sample_next(stream, 0, 6);
    CHECK(__builtin_popcountll(firsts) > 40);
}

static struct ibp_collective_sample *take(uint64_t stream, uint64_t number, unsigned stratum)
{
    struct ibp_collective_sample *const sample =
        ibp_sample_take(IBP_INSTANCE_COLLECTIVE, stratum, ibp_sample_keeps(stream, number), UINT8_MAX);

    if (!sample) return NULL;
    sample->number = number;
    sample->member = stratum;
    sample->communicator = stream;
    return sample;
}

/* All samples of a stratum (samples.h) with few calls are kept. A sample of a stratum with many calls is kept if the
 * stratum's level keeps it. */
static void test_space_is_shared(void)
{
    enum { FREQUENT = 3, RARE = 5, RARE_CALLS = 40, STREAM = 99 };
    uint32_t frequent = 0, rare = 0;
    unsigned level;

    for (uint64_t number = 0; number < 1000000; number++) {
        if (number % (1000000 / RARE_CALLS) == 0) CHECK(take(STREAM + 1, number, RARE));
        take(STREAM, number, FREQUENT);
    }
    level = ibp_sample_level(IBP_INSTANCE_COLLECTIVE, FREQUENT);
    CHECK(level > 5 && !ibp_sample_level(IBP_INSTANCE_COLLECTIVE, RARE));
    CHECK(process->level[IBP_INSTANCE_COLLECTIVE] == level);
    CHECK(reader_count(IBP_SEGMENT_COLLECTIVE_SAMPLES) == IBP_SAMPLES_MAX);
    for (int i = 0; i < IBP_SAMPLES_MAX; i++) {
        const struct ibp_collective_sample *sample = reader_record(IBP_SEGMENT_COLLECTIVE_SAMPLES, i);

        if (!sample->communicator) continue;
        frequent += sample->member == FREQUENT;
        rare += sample->member == RARE;
        CHECK(sample->level == (sample->member == FREQUENT ? level : 0));
        CHECK(sample->member == RARE || ibp_sample_keeps(STREAM, sample->number) >= level);
    }
    CHECK(rare == RARE_CALLS);
    CHECK(frequent == (1000000U + (1U << level) - 1) >> level || frequent == 1000000U >> level);
}

/* The longest collectives are kept, even if the hash does not choose them or drops them later. */
static void test_the_longest_are_kept(void)
{
    enum { CALLS = 5000, STREAM = 55 };
    const int before = (int)reader_count(IBP_SEGMENT_COLLECTIVE_SAMPLES);
    uint32_t kept = 0;

    for (uint64_t i = 1; i <= CALLS; i++) {
        const uint64_t score = i * 2654435761U % 1000003;
        const uint64_t least = ibp_long_ns[IBP_INSTANCE_COLLECTIVE];
        struct ibp_collective_sample *const sample = ibp_sample_take_long(IBP_INSTANCE_COLLECTIVE, score);

        CHECK(!sample == (score <= least));
        if (!sample) continue;
        sample->number = score;
        sample->communicator = STREAM;
    }
    CHECK(ibp_long_ns[IBP_INSTANCE_COLLECTIVE] && process->long_ns == ibp_long_ns[IBP_INSTANCE_COLLECTIVE]);
    CHECK((int)reader_count(IBP_SEGMENT_COLLECTIVE_SAMPLES) == before + IBP_LONGEST_MAX);
    for (int i = before; i < before + IBP_LONGEST_MAX; i++) {
        const struct ibp_collective_sample *sample = reader_record(IBP_SEGMENT_COLLECTIVE_SAMPLES, i);

        CHECK(sample->level == IBP_LEVEL_LONG && sample->score_ns == sample->number);
        CHECK(sample->score_ns >= ibp_long_ns[IBP_INSTANCE_COLLECTIVE]);
        kept += sample->communicator == STREAM;
    }
    CHECK(kept == IBP_LONGEST_MAX);
    for (uint64_t i = 1; i <= CALLS; i++) kept -= i * 2654435761U % 1000003 >= ibp_long_ns[IBP_INSTANCE_COLLECTIVE];
    CHECK(!kept);
    /* Take a sample that the hash chooses at first, and drops after further collectives. */
    for (uint64_t number = 1; number < 200000; number++) {
        struct ibp_collective_sample *const sample = take(STREAM + 1, number, 7);

        if (sample) sample->score_ns = number == 77 ? 2000000 : 0;
    }
    for (int i = 0; i < (int)reader_count(IBP_SEGMENT_COLLECTIVE_SAMPLES); i++) {
        const struct ibp_collective_sample *sample = reader_record(IBP_SEGMENT_COLLECTIVE_SAMPLES, i);

        kept += sample->communicator == STREAM + 1 && sample->number == 77;
    }
    CHECK(kept == 1);
}

/* The messages with the largest scores are kept, in other space than the longest collectives. */
static void test_the_longest_messages_are_kept(void)
{
    const uint64_t of_collectives = process->long_ns;

    for (uint64_t score = 1; score <= 2 * IBP_LONGEST_MAX; score++)
        CHECK(ibp_sample_take_long(IBP_INSTANCE_MESSAGE, score));
    CHECK(!ibp_sample_take_long(IBP_INSTANCE_MESSAGE, IBP_LONGEST_MAX));
    CHECK(ibp_long_ns[IBP_INSTANCE_MESSAGE] == IBP_LONGEST_MAX + 1 && process->long_ns == of_collectives);
    CHECK(reader_count(IBP_SEGMENT_MESSAGE_SAMPLES) == IBP_LONGEST_MAX);
    for (int i = 0; i < IBP_LONGEST_MAX; i++) {
        const struct ibp_message_sample *const sample = reader_record(IBP_SEGMENT_MESSAGE_SAMPLES, i);

        CHECK(sample->level == IBP_LEVEL_LONG && sample->score_ns > IBP_LONGEST_MAX);
    }
}

/* A process keeps at most IBP_SOURCES_MAX records with IBP_SIDE_SOURCE. These records stay when samples are dropped. */
static void test_sources_stay(void)
{
    enum { STREAM = 44, GRAPH = 45, SOURCES = 40 };
    uint32_t sources[SOURCES], found = 0;

    for (uint32_t i = 0; i < SOURCES; i++) sources[i] = i;
    for (int round = 0; round < 10; round++) {
        for (uint64_t number = 0; number < 3000; number++) {
            const unsigned keeps = ibp_sample_keeps(STREAM, number);
            struct ibp_message_sample *const sample = keeps < ibp_sample_level(IBP_INSTANCE_MESSAGE, 1)
                                                          ? NULL
                                                          : ibp_sample_take(IBP_INSTANCE_MESSAGE, 1, keeps, UINT8_MAX);

            if (sample) sample->communicator = STREAM;
        }
        ibp_samples_add_sources(GRAPH + (uint64_t)round, 0, sources, SOURCES);
    }
    CHECK(reader_count(IBP_SEGMENT_MESSAGE_SAMPLES) == IBP_SAMPLES_MAX + IBP_LONGEST_MAX);
    /* Each segment has twice the size of the previous segment, so one more sample might need 64 KiB more. */
    CHECK(reader_bytes(IBP_SEGMENT_MESSAGE_SAMPLES) == 60 << 10);
    CHECK(reader_bytes(IBP_SEGMENT_COLLECTIVE_SAMPLES) == 60 << 10);
    for (int i = 0; i < IBP_SAMPLES_MAX + IBP_LONGEST_MAX; i++) {
        const struct ibp_message_sample *sample = reader_record(IBP_SEGMENT_MESSAGE_SAMPLES, i);

        if (sample->communicator < GRAPH) continue;
        CHECK(sample->side == IBP_SIDE_SOURCE && sample->peer < SOURCES && !sample->exit_ns);
        CHECK(sample->number == SOURCES);
        found++;
    }
    CHECK(found == IBP_SOURCES_MAX / SOURCES * SOURCES);
}

static void test_counts(void)
{
    ibp_sample_count(IBP_INSTANCE_MESSAGE, 1);
    ibp_sample_refuse(IBP_INSTANCE_MESSAGE, IBP_UNSAMPLED_ORDER);
    CHECK(process->instances[IBP_INSTANCE_MESSAGE] == 1);
    CHECK(process->unsampled[IBP_INSTANCE_MESSAGE][IBP_UNSAMPLED_ORDER] == 1);
    CHECK(process->sample_clock_ns[0] && process->sample_unix_ns[1] >= process->sample_unix_ns[0]);
}

/* A remembered request is found while other requests are added and removed. */
static void test_open_requests(void)
{
    enum { REQUESTS = IBP_OPEN_REQUESTS_MAX };

    CHECK(!ibp_open_request_find(1));
    for (int round = 0; round < 20; round++) {
        const uintptr_t step = (uintptr_t)(round + 1) * 64;

        for (uintptr_t i = 1; i <= REQUESTS; i++) {
            struct ibp_open_request *const entry = ibp_open_request_add(i * step);

            CHECK(entry);
            entry->known.number = i;
            ibp_open_request_start(entry, true);
        }
        CHECK(!ibp_open_request_add((REQUESTS + 1) * step) && ibp_open_requests == REQUESTS);
        for (uintptr_t i = 1; i <= REQUESTS; i += 3) ibp_open_request_remove(ibp_open_request_find(i * step));
        for (uintptr_t i = 1; i <= REQUESTS; i++) {
            const struct ibp_open_request *const entry = ibp_open_request_find(i * step);

            CHECK(!entry == (i % 3 == 1));
            CHECK(!entry || entry->known.number == i);
        }
        for (uintptr_t i = 1; i <= REQUESTS; i++)
            if (i % 3 != 1) ibp_open_request_remove(ibp_open_request_find(i * step));
        CHECK(!ibp_open_requests);
    }
}

int main(void)
{
    const char *folder = make_test_folder();
    char why[256] = "";

    process = ibp_recording_open(folder, why, sizeof why);
    CHECK(process);
    reader_open(folder);
    ibp_samples_begin(process);
    test_one_of_each_block();
    test_streams_differ();
    test_space_is_shared();
    test_the_longest_are_kept();
    test_the_longest_messages_are_kept();
    test_sources_stay();
    test_counts();
    test_open_requests();
    ibp_samples_end();
    return 0;
}
