/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/messages.h"
#include "counting/addresses.h"
#include "counting/counters.h"
#include "counting/current_call.h"
#include "counting/requests.h"
#include "libmpi/communicators.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/log.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/mpich/proof.h"
#include "sources/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lowest bit of a context marks collectives; the bits above it distinguish parts of one communicator. */
#define COLLECTIVE_CONTEXT 1
#define PREFIX_SHIFT 4

/* Tags of blocking collectives are fixed ones below this (mpir_tags.h of 3.4 to 5.0). Counted ones begin somewhere
 * above, with 287 in the versions tried. The first one that is seen in its own call corrects that. */
#define FIRST_TAG_NOT_FIXED 31
static uint32_t first_counted_tag = 287;

#define FEW 16 /* maximum of tags that one call takes */

static struct ibp_peers communicator_of; /* key: prefix of the context, plus 1; address: the handle */
static bool numbers_were_wrong;

/* -- which communicator -------------------------------------------------------------------------------------------- */

/* Return the key of a context, which is never 0. */
static uint64_t key_of(uint32_t context)
{
    return (context >> PREFIX_SHIFT) + 1;
}

static void learn(uint32_t context, ibp_handle communicator)
{
    struct ibp_peer *entry = communicator ? ibp_peer_enter(&communicator_of, key_of(context)) : NULL;

    if (entry && !entry->address) entry->address = (uint64_t)communicator;
}

static ibp_handle known_communicator(uint32_t context)
{
    const struct ibp_peer *entry = ibp_peer_find(&communicator_of, key_of(context));

    return entry ? (ibp_handle)entry->address : 0;
}

/* Return the entry of a communicator; NULL when its context is unknown. */
static struct ibp_peer *find_mapped(ibp_handle communicator)
{
    for (uint64_t i = 0; communicator_of.place && i <= communicator_of.mask; i++)
        if (communicator_of.place[i].key && communicator_of.place[i].address == (uint64_t)communicator)
            return &communicator_of.place[i];
    return NULL;
}

void ibp_mpich_forget_communicator(ibp_handle communicator)
{
    struct ibp_peer *entry;

    ibp_lock();
    entry = find_mapped(communicator);
    if (entry) entry->address = 0;
    ibp_unlock();
}

/* -- counted tags -------------------------------------------------------------------------------------------------- */

static bool takes_tag(void)
{
    return ibp_current_call.operation &&
           (ibp_current_call.kind == IBP_CALL_NONBLOCKING || ibp_current_call.kind == IBP_CALL_DUPLICATING ||
            ibp_current_call.kind == IBP_CALL_PERSISTENT);
}

static unsigned starting(unsigned operation)
{
    return ibp_counting ? operation : IBP_OPERATION_UNWANTED;
}

static void note_started(struct ibp_communicator *communicator)
{
    const unsigned operation = starting(ibp_current_call.operation);

    if (communicator->only_started == IBP_OPERATION_NONE) communicator->only_started = (uint16_t)operation;
    if (communicator->only_started != operation) communicator->only_started = IBP_OPERATION_UNATTRIBUTED;
}

void ibp_mpich_before_tag(void)
{
    struct ibp_communicator *communicator;

    if (!ibp_current_communicator()) return;
    ibp_lock();
    communicator = ibp_communicator_enter(ibp_current_communicator());
    if (communicator) {
        ibp_current_call.tag = (int)(first_counted_tag + communicator->tags_taken);
        ibp_tag_remember(communicator, ibp_current_call.tag, starting(ibp_current_call.operation));
        note_started(communicator);
        communicator->tags_taken++;
        if (ibp_current_call.kind == IBP_CALL_DUPLICATING) communicator->is_duplicated = true;
    }
    ibp_unlock();
}

void ibp_mpich_after_tag(bool succeeded)
{
    (void)succeeded;
}

/* Correct the numbers of tags by a message of the current call, which shows the tag that it took. */
static void correct_numbers(struct ibp_communicator *communicator, uint32_t tag)
{
    const uint32_t expected = (uint32_t)ibp_current_call.tag;

    if (tag > expected) {
        if (communicator->tags_taken == 1 && !numbers_were_wrong) {
            first_counted_tag += tag - expected;
        } else {
            communicator->tags_taken += tag - expected;
            numbers_were_wrong = true;
        }
        ibp_current_call.tag = (int)tag;
    }
    ibp_tag_remember(communicator, (int)tag, starting(ibp_current_call.operation));
    communicator->is_duplicated = false;
}

/* Return the operation that a tag belongs to on a communicator whose context is unknown; IBP_OPERATION_NONE where no
 * communicator expects the tag. */
static unsigned guess_operation(uint32_t context, uint32_t tag)
{
    unsigned operation = IBP_OPERATION_NONE;
    ibp_handle only = 0;

    for (size_t i = 0;; i++) {
        const struct ibp_communicator *candidate = ibp_communicator_at(&i);
        unsigned found;

        if (!candidate) break;
        found = ibp_tag_operation(candidate, (int)tag);
        if (found == IBP_OPERATION_NONE || candidate->is_duplicated || find_mapped(candidate->handle)) continue;
        if (operation != IBP_OPERATION_NONE && operation != found) return IBP_OPERATION_UNATTRIBUTED;
        only = operation == IBP_OPERATION_NONE ? candidate->handle : 0;
        operation = found;
    }
    if (only) learn(context, only);
    return operation;
}

/* Return whether the current call makes a communicator: it then sends under tags from its arguments, marked as tags
 * of collectives. */
static bool makes_communicator(void)
{
    return ibp_current_call.kind == IBP_CALL_BLOCKING && ibp_current_call.operation >= IBP_OPERATION_Comm_dup &&
           ibp_current_call.operation <= IBP_OPERATION_Dist_graph_create_adjacent;
}

/* Return whether the current call is a blocking collective. MPICH implements some of them by nonblocking ones,
 * neighbourhood collectives included. */
static bool is_blocking_collective(void)
{
    return ibp_current_call.operation && ibp_current_call.kind == IBP_CALL_COLLECTIVE;
}

/* Return whether a counted tag belongs to a blocking collective: always in neighbourhood collectives, in others only
 * where nothing else was started on the communicator. */
static bool is_of_blocking_collective(const struct ibp_communicator *communicator)
{
    const unsigned operation = ibp_current_call.operation;

    return is_blocking_collective() && communicator->handle == ibp_current_communicator() &&
           ((operation >= IBP_OPERATION_Neighbor_allgather && operation <= IBP_OPERATION_Neighbor_alltoallw) ||
            !communicator->only_started);
}

/* Return the operation of a call that takes tags of its communicator unexpectedly: a blocking collective, or one
 * that makes another communicator. */
static unsigned blocking_operation(struct ibp_communicator *communicator, uint32_t tag)
{
    const uint32_t number = tag - first_counted_tag;

    if (communicator && communicator->handle == ibp_current_communicator() && number >= communicator->tags_taken &&
        number < communicator->tags_taken + FEW) {
        communicator->tags_taken = number + 1;
        ibp_tag_remember(communicator, (int)tag, starting(ibp_current_call.operation));
    }
    return starting(ibp_current_call.operation);
}

static unsigned counted_operation(struct ibp_mpich_envelope envelope)
{
    const bool within = takes_tag();
    ibp_handle handle = known_communicator(envelope.context);
    struct ibp_communicator *communicator;
    unsigned operation;

    if (ibp_current_call.operation && ibp_current_call.starts_request) return ibp_current_call.operation;
    if (!handle && within && !find_mapped(ibp_current_communicator())) {
        learn(envelope.context, ibp_current_communicator());
        handle = ibp_current_communicator();
    }
    if (!handle && !makes_communicator()) {
        operation = guess_operation(envelope.context, envelope.tag);
        if (operation != IBP_OPERATION_NONE) return operation;
        if (!is_blocking_collective() || find_mapped(ibp_current_communicator())) return IBP_OPERATION_UNATTRIBUTED;
        learn(envelope.context, ibp_current_communicator());
        handle = ibp_current_communicator();
    }
    communicator = handle ? ibp_communicator_enter(handle) : NULL;
    if (communicator && within && handle == ibp_current_communicator() &&
        envelope.tag >= (uint32_t)ibp_current_call.tag)
        correct_numbers(communicator, envelope.tag);
    operation = communicator ? ibp_tag_operation(communicator, (int)envelope.tag) : IBP_OPERATION_NONE;
    if (operation != IBP_OPERATION_NONE && !communicator->is_duplicated) return operation;
    if (makes_communicator()) return blocking_operation(communicator, envelope.tag);
    if (!communicator) return IBP_OPERATION_UNATTRIBUTED;
    if (communicator->is_duplicated) return IBP_OPERATION_Comm_idup;
    if (is_of_blocking_collective(communicator)) return blocking_operation(communicator, envelope.tag);
    /* The tag was not expected: a call took several tags, or a start a new one. The operation is known if all calls
     * are of one. */
    return communicator->only_started ? communicator->only_started : IBP_OPERATION_UNATTRIBUTED;
}

/* -- counting ------------------------------------------------------------------------------------------------------ */

static bool is_synchronisation(unsigned operation)
{
    return operation >= IBP_OPERATION_Win_free && operation <= IBP_OPERATION_Win_flush_local_all;
}

static bool is_one_sided(unsigned operation)
{
    return operation >= IBP_OPERATION_Put && operation <= IBP_OPERATION_Rget_accumulate;
}

static unsigned operation_of(struct ibp_mpich_envelope envelope)
{
    const bool collective = envelope.context & COLLECTIVE_CONTEXT;

    if (collective && envelope.tag >= FIRST_TAG_NOT_FIXED) return counted_operation(envelope);
    if (!ibp_current_call.operation) return IBP_OPERATION_UNATTRIBUTED;
    if (ibp_current_call.kind == (collective ? IBP_CALL_COLLECTIVE : IBP_CALL_SENDING))
        learn(envelope.context, ibp_current_communicator());
    return starting(ibp_current_call.operation);
}

static void count(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer, uint64_t bytes)
{
    if (ibp_operation_wanted[operation]) ibp_count(operation, kind, direction, peer, bytes);
}

void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes)
{
    enum ibp_kind kind = IBP_KIND_USER;
    unsigned operation;

    if (IBP_UNLIKELY(!ibp_is_active())) {
        ibp_mpich_probe_seen(envelope.tag, peer, bytes);
        return;
    }
    if (IBP_UNLIKELY(ibp_source_unproved)) ibp_mpich_compare(envelope.tag, bytes);
    ibp_log(5, "context %x tag %u to %x: %llu bytes in %s", envelope.context, envelope.tag, peer,
            (unsigned long long)bytes, ibp_operation_name(ibp_current_call.operation));
    if (ibp_address_is_own(peer)) return;
    ibp_lock();
    operation = envelope.is_control ? starting(IBP_OPERATION_UNATTRIBUTED) : operation_of(envelope);
    ibp_unlock();
    if (envelope.is_control || is_synchronisation(operation) || is_one_sided(operation)) kind = IBP_KIND_CONTROL;
    count(operation, kind, IBP_DIRECTION_SENT, peer, bytes);
}

void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes)
{
    const unsigned current = ibp_current_call.operation;
    const bool own = is_synchronisation(current) || is_one_sided(current) || ibp_current_call.starts_request;

    if (!ibp_is_active()) return;
    if (IBP_UNLIKELY(ibp_source_unproved)) ibp_mpich_compare(IBP_NO_TAG, bytes);
    if (ibp_address_is_own(peer)) return;
    ibp_log(5, "active message to %x: %llu bytes in %s", peer, (unsigned long long)bytes, ibp_operation_name(current));
    count(starting(own && current ? current : IBP_OPERATION_UNATTRIBUTED), IBP_KIND_CONTROL, IBP_DIRECTION_SENT, peer,
          bytes);
}

void ibp_mpich_count_read(uint32_t peer, uint64_t bytes)
{
    if (!ibp_is_active() || ibp_address_is_own(peer)) return;
    if (is_one_sided(ibp_current_call.operation) || is_synchronisation(ibp_current_call.operation)) return;
    count(starting(IBP_OPERATION_UNATTRIBUTED), IBP_KIND_USER, IBP_DIRECTION_FETCHED, peer, bytes);
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

/* Count partitioned sends, which travel as active messages. */
void ibp_mpich_before_start(size_t number, void **requests)
{
    for (size_t i = 0; i < number; i++) {
        struct ibp_request request;

        if (ibp_request_copy(ibp_mpi_request(requests, i), &request) && request.role == IBP_REQUEST_SEND)
            count(starting(request.operation), IBP_KIND_USER, IBP_DIRECTION_SENT, request.peer, request.bytes);
    }
}

static bool is_set_to(const char *name, const char *value)
{
    const char *found = getenv(name);

    return found && !strcmp(found, value);
}

/* Return whether ranks of one host use the network, as with IBPROF_INTRANODE=1. */
static bool avoids_memory(void)
{
    return is_set_to("MPIR_CVAR_NOLOCAL", "1") &&
           (!strstr(ibp_mpi.version, "Intel") ||
            (is_set_to("I_MPI_FABRICS", "ofi") && is_set_to("I_MPI_COLL_INTRANODE", "pt2pt")));
}

void ibp_mpich_describe_gaps(char *notes, size_t bytes)
{
    if (!avoids_memory())
        ibp_text_append(notes, bytes,
                        "messages that ranks of one host exchange in its memory are not seen, as no port sees them\n");
    ibp_text_append(notes, bytes, "received bytes are not seen\n");
    ibp_mpich_describe_proof(notes, bytes);
    if (numbers_were_wrong)
        ibp_text_append(notes, bytes,
                        "some nonblocking collectives may be counted under the operation of an earlier one\n");
}
