/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/proof.h"
#include "counting/addresses.h"
#include "counting/current_call.h"
#include "counting/times.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "platform/log.h"
#include "platform/text.h"
#include "sources/source.h"

#include <stdbool.h>
#include <stdio.h>

/* -- verification by a message to this process --------------------------------------------------------------------- */

#define PROBE_BYTES 7
#define PROBE_TAG 23063

static struct {
    bool expected;
    unsigned messages;
    uint64_t bytes;
    bool to_other;
} probe;
static bool is_lone; /* true if the job has only one rank, so that no message could verify the source */

void ibp_mpich_probe_seen(uint32_t tag, uint32_t peer, uint64_t bytes)
{
    if (!probe.expected || tag != PROBE_TAG) return;
    probe.messages++;
    probe.bytes += bytes;
    probe.to_other |= !ibp_address_is_own(peer);
}

uint32_t ibp_mpich_passes;

/* Find out whether calls that wait go through the hooked progress loop: MPI_Test of an incomplete request should run
 * the loop once. */
static void prove_progress(void **request)
{
    int (*const test)(void **, int *, void *) = (int (*)(void **, int *, void *))ibp_mpi_symbol("PMPI_Test");
    const uint32_t before = ibp_mpich_passes;
    long status[32];
    int is_complete = 0;

    if (ibp_threads_multiple || !test || test(request, &is_complete, status)) return;
    ibp_times_see_progress = ibp_times_see_sends = ibp_times_see_exits = ibp_mpich_passes != before;
    ibp_log(2, "waiting calls %s the hooked progress loop", ibp_times_see_progress ? "run" : "do not run");
}

int ibp_mpich_probe(char *why, size_t why_bytes)
{
    char sent[PROBE_BYTES] = "ibprof", received[PROBE_BYTES] = "";
    const ibp_handle byte = ibp_mpi.abi == IBP_ABI_MPICH ? 0x4c00010d : 0x247;
    const ibp_handle communicator = ibp_mpi.session ? ibp_mpi.self : ibp_mpi.world;
    const int me = ibp_mpi.session ? 0 : ibp_mpi.rank;
    long status[32]; /* larger than MPI_Status of any MPI */
    void *request = NULL;

    probe.expected = true;
    if (!ibp_mpi.irecv(received, sizeof received, byte, me, PROBE_TAG, communicator, &request)) {
        prove_progress(&request);
        if (!ibp_mpi.send(sent, sizeof sent, byte, me, PROBE_TAG, communicator)) ibp_mpi.wait(&request, status);
    }
    probe.expected = false;
    ibp_log(2, "a message to itself was seen %u times", probe.messages);
    /* A job of one rank sends no messages to other ranks, so no message can verify the source. */
    ibp_source_unproved = !probe.messages && ibp_mpi.size > 1;
    is_lone = !probe.messages && ibp_mpi.size == 1;
    if (!probe.messages || (probe.messages == 1 && probe.bytes == PROBE_BYTES && !probe.to_other)) return 0;
    snprintf(why, why_bytes, "a message of %d bytes to itself was seen %u times with %llu bytes%s in this MPI (%s)",
             PROBE_BYTES, probe.messages, (unsigned long long)probe.bytes, probe.to_other ? ", to another address" : "",
             ibp_mpi.version);
    return -1;
}

/* -- verification by the first messages to other processes --------------------------------------------------------- */

/* Messages above this size in bytes are not checked, because MPI may send them in parts. */
#define LARGEST 4096
/* Number of mismatches at which the source is rejected. One mismatch does not prove that the source is wrong, because
 * MPI may send the call's message after the call has returned, and may send other messages inside the call. */
#define FAILURES_MAX 4

/* Maximum size in bytes of MPI's header in active messages. */
#define LARGEST_HEADER 256

static IBP_THREAD_LOCAL struct {
    bool wanted, seen;
    uint16_t operation;
    uint32_t tag;
    uint64_t bytes;
} expected;
static unsigned failures;
/* Number of matches that verify the source if all messages have tag 0. One match is not enough, because with a wrong
 * layout the tag may often appear to be 0. */
#define MATCHES_OF_NOTHING 4
static unsigned matches;

static void take_back(uint32_t tag, uint64_t bytes)
{
    char why[400];

    ibp_source_unproved = false;
    snprintf(why, sizeof why,
             "%d messages differed from the sent messages, the last of %llu bytes with tag %u, in this MPI (%s)",
             FAILURES_MAX, (unsigned long long)bytes, tag, ibp_mpi.version);
    ibp_source_reject(why);
}

void ibp_mpich_expect(uint64_t count, ibp_handle datatype, int peer, int tag)
{
    /* If the source saw no message of a call, this is no mismatch, because the message may have used shared memory. */
    if (expected.wanted && expected.seen && __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) == FAILURES_MAX) {
        take_back(expected.tag, expected.bytes);
        return;
    }
    expected.bytes = ibp_mpi_bytes(count, datatype);
    expected.tag = (uint32_t)tag;
    expected.operation = ibp_current_call.operation;
    expected.wanted = peer >= 0 && expected.bytes <= LARGEST;
    expected.seen = false;
}

/* Return whether a message that a correct source reports must equal the expected message. Messages of other calls need
 * not, nor active messages of another size, such as the reply of a one-sided call. */
static bool should_match(uint32_t tag, uint64_t bytes)
{
    if (ibp_current_call.operation != expected.operation) return false;
    return tag != IBP_NO_TAG || (bytes >= expected.bytes && bytes <= expected.bytes + LARGEST_HEADER);
}

void ibp_mpich_compare(uint32_t tag, uint64_t bytes)
{
    expected.seen |= should_match(tag, bytes);
    if (!expected.wanted || tag != expected.tag || bytes != expected.bytes) return;
    expected.wanted = false;
    if (!tag && __atomic_add_fetch(&matches, 1, __ATOMIC_RELAXED) < MATCHES_OF_NOTHING) return;
    ibp_source_unproved = false;
    ibp_log(2, "a message of %llu bytes with tag %u was seen as it was sent", (unsigned long long)bytes, tag);
}

void ibp_mpich_describe_proof(char *notes, size_t bytes)
{
    if (ibp_source_unproved)
        ibp_text_append(
            notes, bytes,
            "no call sent a short message over the network, so ibprof could not verify the messages that it sees\n");
    if (is_lone)
        ibp_text_append(
            notes, bytes,
            "a lone rank: messages to itself do not reach the network in this MPI, so ibprof could not verify the "
            "messages that it sees to spawned jobs\n");
}
