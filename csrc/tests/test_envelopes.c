/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The messages of these tests have more envelopes than the table has entries. The samples must represent all messages.
 */
#include "check.h"
#include "counting/communicator_names.h"
#include "counting/envelopes.h"
#include "counting/samples.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "recording/recording.h"
#include "recording_reader.h"

#include "ibprof_recording.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2000, TAGS = 3000 };

#define WORLD ((ibp_handle)0x10)

static int return_handle(ibp_handle handle, ibp_handle *group)
{
    *group = handle;
    return 0;
}

static int is_never_between(ibp_handle handle, int *between)
{
    (void)handle;
    *between = 0;
    return 0;
}

static int group_size(ibp_handle group, int *size)
{
    (void)group;
    *size = RANKS;
    return 0;
}

static int group_free(ibp_handle *group)
{
    *group = 0;
    return 0;
}

static int group_translate_ranks(ibp_handle from, int ranks, const int *list, ibp_handle into, int *translated)
{
    (void)from, (void)into;
    for (int i = 0; i < ranks; i++) translated[i] = list[i];
    return 0;
}

/* Assign a sequence number to a received message, and keep the sample if the message is chosen. */
static void receive(int peer, int tag)
{
    struct ibp_message_sample *sample = NULL;
    struct ibp_numbered numbered;

    ibp_lock();
    numbered = ibp_envelope_number(WORLD, peer, tag, IBP_SIDE_RECEIVER, 0);
    if (numbered.is_sampled)
        sample = ibp_sample_take(IBP_INSTANCE_MESSAGE, numbered.stratum, numbered.keeps, numbered.stream_keeps);
    if (sample) {
        sample->number = numbered.number;
        sample->peer = numbered.peer;
        sample->tag = tag;
        sample->communicator = numbered.communicator;
    }
    ibp_unlock();
}

static void visit_samples(void (*visit)(const struct ibp_message_sample *))
{
    for (int i = 0; i < reader_count(IBP_SEGMENT_MESSAGE_SAMPLES); i++) {
        const struct ibp_message_sample *const sample = reader_record(IBP_SEGMENT_MESSAGE_SAMPLES, i);

        if (sample->communicator) visit(sample);
    }
}

static double represented;

/* Add the number of messages that a sample represents to `represented`. Ignore samples of the first message of an
 * envelope. */
static void add_represented(const struct ibp_message_sample *sample)
{
    if (sample->number) represented += (double)(UINT64_C(1) << sample->level);
}

/* Messages with one tag from many ranks. About 125 of 2,000 envelopes are kept, so the standard error is 9%. */
static void test_samples_stand_for_all_peers(void)
{
    enum { TAG = 77, ROUNDS = 800, FURTHER = RANKS * (ROUNDS - 1) };

    for (int round = 0; round < ROUNDS; round++)
        for (int peer = 0; peer < RANKS; peer++) receive(peer, TAG);
    visit_samples(add_represented);
    CHECK(represented > 0.75 * FURTHER && represented < 1.25 * FURTHER);
}

static uint32_t kept_of_tag[TAGS];

static void count_tag(const struct ibp_message_sample *sample)
{
    kept_of_tag[sample->tag]++;
}

/* In each round, a few peers send one message with a new tag. All messages of a round are sampled, or none. */
static void test_rounds_are_kept_whole(void)
{
    enum { PEERS = 8 };
    uint32_t whole = 0;

    for (int tag = 0; tag < TAGS; tag++)
        for (int peer = 0; peer < PEERS; peer++) receive(peer, tag);
    visit_samples(count_tag);
    for (int tag = 0; tag < TAGS; tag++) {
        CHECK(!kept_of_tag[tag] || kept_of_tag[tag] == PEERS);
        whole += kept_of_tag[tag] == PEERS;
    }
    CHECK(whole >= 16);
}

/* At first, receives from MPI_PROC_NULL fill all entries of the table. Envelopes of messages then replace these
 * entries, and samples represent these messages. */
static void test_receives_from_nobody_leave_the_table(void)
{
    enum { PEERS = 40, ROUNDS = 100, FURTHER = PEERS * (ROUNDS - 1) };

    for (int tag = 0; tag < TAGS; tag++) receive(-1, tag);
    for (int round = 0; round < ROUNDS; round++)
        for (int peer = 0; peer < PEERS; peer++) receive(peer, 5);
    visit_samples(add_represented);
    CHECK(represented > 0.5 * FURTHER && represented < 1.5 * FURTHER);
}

static uint64_t coarse_ns = UINT64_C(1000000000);

/* The coarse clock of this test; other clocks are real. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC_COARSE) return (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = (time_t)(coarse_ns / 1000000000);
    now->tv_nsec = (long)(coarse_ns % 1000000000);
    return 0;
}

/* Assign sequence numbers to `messages` messages of several peers. Return how many messages of the second half are
 * timed. */
static uint32_t count_timed(uint32_t messages, uint64_t between_ns)
{
    uint32_t timed = 0;

    for (uint32_t i = 0; i < messages; i++) {
        coarse_ns += between_ns;
        ibp_lock();
        if (ibp_envelope_number(WORLD, (int)(i % 5), 3, IBP_SIDE_RECEIVER, 0).is_timed && i >= messages / 2) timed++;
        ibp_unlock();
    }
    return timed;
}

/* While messages are rare, each message is timed, even after frequent messages. */
static void test_each_rare_message_is_timed(void)
{
    CHECK(!count_timed(40000, 500));
    CHECK(count_timed(40000, 10000) == 20000);
    CHECK(!count_timed(40000, 500));
    coarse_ns += UINT64_C(100000000000);
    CHECK(!count_timed(40000, 500));
}

/* The first messages of a run are timed even if they are frequent, so that a delay in the first rounds is found. */
static void test_first_messages_are_timed(void)
{
    CHECK(count_timed(3900, 0) == 1950);
    CHECK(!count_timed(3900, 0));
}

static void begin(void)
{
    const char *folder = make_test_folder();
    char why[256] = "";
    struct ibp_process *process = ibp_recording_open(folder, why, sizeof why);

    CHECK(process);
    reader_open(folder);
    ibp_mpi.world = WORLD;
    ibp_mpi.size = RANKS;
    ibp_mpi.comm_group = return_handle;
    ibp_mpi.comm_remote_group = return_handle;
    ibp_mpi.comm_test_inter = is_never_between;
    ibp_mpi.group_size = group_size;
    ibp_mpi.group_free = group_free;
    ibp_mpi.group_translate_ranks = group_translate_ranks;
    ibp_communicator_learn(WORLD);
    ibp_names_begin();
    CHECK(ibp_envelopes_begin());
    ibp_samples_begin(process);
}

int main(void)
{
    static void (*const tests[])(void) = {
        test_samples_stand_for_all_peers, test_rounds_are_kept_whole,    test_receives_from_nobody_leave_the_table,
        test_each_rare_message_is_timed,  test_first_messages_are_timed,
    };

    /* Each test runs in a new process, because the stream level (counting/samples.h) never falls. */
    for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++) {
        const pid_t child = fork();
        int status = 0;

        CHECK(child >= 0);
        if (!child) {
            begin();
            tests[i]();
            return 0;
        }
        CHECK(waitpid(child, &status, 0) == child && !status);
    }
    return 0;
}
