/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/counted_tags.h"
#include "counting/calls.h"
#include "counting/current_call.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "sources/mpich/contexts.h"
#include "sources/mpich/forced_algorithms.h"

#include <string.h>

/* The first tag that MPICH allocates on a communicator: 287 in MPICH 3.4 to 5.0. If a message shows that MPICH began
 * with another tag, ibprof corrects this value. */
static uint32_t first_counted_tag = 287;

#define FEW 16 /* maximum number of tags that MPICH allocates for one call */

/* For calls that create communicators, MPICH computes tags from the arguments. Computed tags are at least this
 * value. */
#define LOWEST_MARKED_TAG 0x80000

static bool numbers_were_wrong;
/* True if this MPI allocates tags for calls that create communicators: a message of such a call had a tag below
 * LOWEST_MARKED_TAG. */
static bool makers_take_tags;

static bool has_taken_tags;
/* Number of the last `ibp_call` of MPI_Comm_idup or a similar function; initially IBP_OPERATION_NONE. */
static unsigned duplicating_call = IBP_OPERATION_NONE;

bool ibp_mpich_has_taken_tags(void)
{
    return has_taken_tags;
}

bool ibp_mpich_counted_wrongly(void)
{
    return numbers_were_wrong;
}

static bool takes_tag(void)
{
    return ibp_current_call.operation &&
           (ibp_current_call.kind == IBP_CALL_NONBLOCKING || ibp_current_call.kind == IBP_CALL_DUPLICATING ||
            ibp_current_call.kind == IBP_CALL_PERSISTENT);
}

static void note_started(struct ibp_communicator *communicator)
{
    const unsigned operation = ibp_mpich_starting(ibp_current_call.operation);

    if (communicator->only_started == IBP_OPERATION_NONE) communicator->only_started = (uint16_t)operation;
    if (communicator->only_started != operation) communicator->only_started = IBP_OPERATION_UNATTRIBUTED;
}

static bool is_version(const char *number)
{
    const char *version = strstr(ibp_mpi.version, "MPICH Version:");

    if (!version) return false;
    version += strlen("MPICH Version:");
    version += strspn(version, " \t");
    return !strncmp(version, number, strlen(number));
}

/* Return whether MPICH allocates a tag for the current call. MPICH 3 does so for every call. In tests, MPICH 4, MPICH 5
 * and Intel MPI allocated no tag for some calls with a count of 0. If another version differs, ibprof corrects the
 * result by the tags of messages. */
static bool is_given_tag(const struct ibp_communicator *communicator)
{
    if (!ibp_current_call.moves_nothing || is_version("3.")) return true;
    if (ibp_current_call.operation == IBP_OPERATION_Ibcast) return is_version("4.0");
    if (communicator->is_between) return true;
    switch (ibp_current_call.operation) {
    case IBP_OPERATION_Ireduce:
    case IBP_OPERATION_Iscan:
    case IBP_OPERATION_Iexscan:
    case IBP_OPERATION_Igather:
    case IBP_OPERATION_Iscatter:
    case IBP_OPERATION_Iallgather:
    case IBP_OPERATION_Ialltoall:
    case IBP_OPERATION_Ireduce_scatter_block:
        return false;
    default:
        return true;
    }
}

static bool is_intel(void)
{
    return strstr(ibp_mpi.version, "Intel");
}

/* In Intel MPI 2021, MPI_Start of a persistent collective calls the nonblocking collective, which allocates a tag.
 * MPICH 4 and 5 allocate the tag when the persistent collective is created. */
bool ibp_mpich_starts_take_tags(void)
{
    return is_intel();
}

static void take_tag(struct ibp_communicator *communicator)
{
    const bool is_made = ibp_current_call.kind == IBP_CALL_PERSISTENT && !ibp_current_call.starts_request;

    ibp_current_call.tag = (int)(first_counted_tag + communicator->tags_taken);
    if (is_made && ibp_mpich_starts_take_tags()) return;
    ibp_current_call.moves_nothing = !is_given_tag(communicator);
    if (ibp_current_call.moves_nothing) {
        communicator->has_spared_tags = true;
        return;
    }
    ibp_tag_remember(communicator, ibp_current_call.tag, ibp_current_call_number());
    note_started(communicator);
    communicator->tags_taken++;
    if (ibp_current_call.kind != IBP_CALL_DUPLICATING) return;
    communicator->is_duplicated = true;
    duplicating_call = ibp_current_call_number();
}

void ibp_mpich_before_tag(void)
{
    struct ibp_communicator *communicator;

    has_taken_tags = true;
    if (!ibp_current_communicator()) return;
    ibp_communicator_learn(ibp_current_communicator());
    ibp_lock();
    communicator = ibp_communicator_enter(ibp_current_communicator());
    if (communicator) take_tag(communicator);
    ibp_unlock();
}

/* Return whether a call failed because of invalid arguments, before MPICH allocated a tag. The lowest 7 bits of MPICH's
 * error codes are the error class. MPI_ERR_ARG (12) is the last class for invalid arguments. If a call fails with
 * another error, MPICH has allocated a tag. */
static bool is_of_arguments(int error)
{
    enum { CLASS = 0x7f, LAST = 12 };

    return error && (error & CLASS) <= LAST;
}

void ibp_mpich_after_tag(int error)
{
    struct ibp_communicator *communicator;

    if (!is_of_arguments(error) || !ibp_current_communicator()) return;
    ibp_lock();
    communicator = ibp_communicator_enter(ibp_current_communicator());
    if (communicator && communicator->tags_taken &&
        ibp_tag_call(communicator, ibp_current_call.tag) == ibp_current_call_number()) {
        ibp_tag_remember(communicator, ibp_current_call.tag, IBP_OPERATION_NONE);
        communicator->tags_taken--;
    }
    ibp_unlock();
}

/* In Intel MPI 2021, calls that create a communicator, window or file from an intracommunicator allocate one tag, which
 * no message has. MPI_Comm_create_group does not, so ibprof does not call this function after it. */
void ibp_mpich_made_object(ibp_handle parent)
{
    struct ibp_communicator *communicator;

    if (!parent || !is_intel()) return;
    ibp_communicator_learn(parent);
    ibp_lock();
    communicator = ibp_communicator_enter(parent);
    if (communicator && !communicator->is_between) communicator->tags_taken++;
    ibp_unlock();
}

/* Correct the number of allocated tags by the tag in a message of the current call. */
static void correct_numbers(struct ibp_communicator *communicator, uint32_t tag)
{
    const uint32_t uncounted = tag - (uint32_t)ibp_current_call.tag + ibp_current_call.moves_nothing;

    if (uncounted) {
        const bool is_first = communicator->tags_taken == 1 && !communicator->has_spared_tags;

        if (is_first && !numbers_were_wrong && !makers_take_tags && !is_intel()) {
            first_counted_tag += uncounted;
        } else {
            communicator->tags_taken += uncounted;
            numbers_were_wrong |= !is_first;
        }
        ibp_current_call.tag = (int)tag;
        ibp_current_call.moves_nothing = false;
    }
    ibp_tag_remember(communicator, (int)tag, ibp_current_call_number());
    communicator->is_duplicated = false;
}

static unsigned operation_of(unsigned call)
{
    return ibp_call_by_number(call)->operation;
}

/* Return whether a context may belong to a communicator: false if the communicator already has a local or remote
 * context like this one, or has only one rank and therefore no messages. */
static bool may_have(const struct ibp_communicator *communicator, uint32_t context)
{
    const bool is_local = ibp_mpich_is_local(context);

    if (communicator->described && communicator->size == 1 && !communicator->is_between) return false;
    return !ibp_mpich_has_context(communicator->handle, is_local) && (!is_local || communicator->is_between);
}

static bool is_duplicating(unsigned operation)
{
    return operation == IBP_OPERATION_Comm_idup || operation == IBP_OPERATION_Comm_idup_with_info;
}

/* Guess the call of a message with this tag, among calls on communicators whose context is unknown. Return the call; if
 * several calls are possible, their common operation, or IBP_OPERATION_UNATTRIBUTED if they have none; if no call is
 * possible, IBP_OPERATION_NONE. `is_duplicated`: consider only calls of MPI_Comm_idup. Otherwise, consider only
 * communicators on which MPI_Comm_idup was not called. */
static unsigned guess_call_where(bool is_duplicated, uint32_t context, uint32_t tag)
{
    unsigned call = IBP_OPERATION_NONE;
    ibp_handle only = 0;

    for (size_t i = 0;; i++) {
        const struct ibp_communicator *candidate = ibp_communicator_at(&i);
        unsigned found;

        if (!candidate) break;
        found = ibp_tag_call(candidate, (int)tag);
        if (found == IBP_OPERATION_NONE || candidate->is_duplicated != is_duplicated || !may_have(candidate, context))
            continue;
        if (is_duplicated && !is_duplicating(operation_of(found))) continue;
        if (call != IBP_OPERATION_NONE && operation_of(call) != operation_of(found)) return IBP_OPERATION_UNATTRIBUTED;
        only = call == IBP_OPERATION_NONE ? candidate->handle : 0;
        call = call == IBP_OPERATION_NONE || call == found ? found : operation_of(found);
    }
    if (only) ibp_mpich_enter_context(context, only);
    return call;
}

static unsigned guess_call(uint32_t context, uint32_t tag)
{
    const unsigned call = guess_call_where(false, context, tag);

    return call == IBP_OPERATION_NONE ? guess_call_where(true, context, tag) : call;
}

/* Return whether the current call creates a communicator. MPICH computes the tags of such a call's messages from the
 * arguments. */
static bool makes_communicator(void)
{
    return (ibp_current_call.kind == IBP_CALL_MAKING || ibp_current_call.kind == IBP_CALL_BLOCKING) &&
           ibp_current_call.operation >= IBP_OPERATION_Comm_dup &&
           ibp_current_call.operation <= IBP_OPERATION_Dist_graph_create_adjacent;
}

/* Return whether the current call is a blocking collective or a blocking neighbourhood collective. */
static bool is_blocking_collective(void)
{
    return ibp_current_call.operation && ibp_current_call.kind == IBP_CALL_COLLECTIVE;
}

static bool is_between_groups(void)
{
    const struct ibp_communicator *communicator = ibp_communicator_enter(ibp_current_communicator());

    return communicator && communicator->is_between;
}

/* Return whether MPICH implements the current blocking collective as a nonblocking collective and a wait. MPICH always
 * does so for neighbourhood collectives, and for other collectives if an environment variable requests it. */
static bool is_made_of_nonblocking(void)
{
    const unsigned operation = ibp_current_call.operation;

    if (!is_blocking_collective()) return false;
    return (operation >= IBP_OPERATION_Neighbor_allgather && operation <= IBP_OPERATION_Neighbor_alltoallw) ||
           ibp_mpich_is_made_of_nonblocking(operation, is_between_groups());
}

/* Return whether an unknown context of a message may be the context of the current call's communicator, rather than of
 * a freed communicator. */
static bool may_be_current(uint32_t context, uint32_t tag)
{
    const struct ibp_communicator *communicator = ibp_communicator_enter(ibp_current_communicator());

    if (!communicator || !may_have(communicator, context)) return false;
    return is_made_of_nonblocking() || tag == (uint32_t)ibp_current_call.tag ||
           ibp_mpich_call_of_freed(context, tag) == IBP_OPERATION_NONE;
}

static bool is_next_tag(const struct ibp_communicator *communicator, uint32_t tag)
{
    const uint32_t number = tag - first_counted_tag;

    return number >= communicator->tags_taken && number < communicator->tags_taken + FEW;
}

/* Return whether a message with an unknown context may belong to a nonblocking collective that MPICH calls inside the
 * current blocking call. The first message with a tag is from the current call, because the call sends before it waits,
 * and pending calls send messages only while the current call waits. */
static bool is_of_current_blocking(uint32_t tag)
{
    const struct ibp_communicator *communicator;

    if (!is_made_of_nonblocking() && (!makes_communicator() || tag >= LOWEST_MARKED_TAG)) return false;
    communicator = ibp_communicator_enter(ibp_current_communicator());
    return communicator && is_next_tag(communicator, tag) && !(makes_communicator() && communicator->is_between);
}

/* Return whether a message with a counted tag belongs to the current blocking collective. True only if MPICH implements
 * the collective by a nonblocking collective, or if the program made no nonblocking call on the communicator. */
static bool is_of_blocking_collective(const struct ibp_communicator *communicator)
{
    return is_blocking_collective() && communicator->handle == ibp_current_communicator() &&
           (is_made_of_nonblocking() || !communicator->only_started);
}

/* A message has shown that MPICH allocates tags for the current call, which is a blocking collective or creates a
 * communicator. Correct the number of allocated tags, and return the number of the current `ibp_call`. */
static unsigned blocking_call(struct ibp_communicator *communicator, uint32_t tag)
{
    makers_take_tags |= makes_communicator() && tag < LOWEST_MARKED_TAG;
    if (communicator && communicator->handle == ibp_current_communicator() && is_next_tag(communicator, tag)) {
        communicator->tags_taken = tag - first_counted_tag + 1;
        ibp_tag_remember(communicator, (int)tag, ibp_current_call_number());
    }
    return ibp_current_call_number();
}

/* Return whether a collective's message with an unknown context may belong to the current call. */
static bool may_commit(uint32_t context)
{
    if (!ibp_current_call.operation || ibp_current_call.kind == IBP_CALL_SENDING) return false;
    return ibp_current_call.kind != IBP_CALL_COLLECTIVE ||
           !ibp_mpich_has_context(ibp_current_communicator(), ibp_mpich_is_local(context));
}

unsigned ibp_mpich_committing_call(uint32_t context)
{
    if (duplicating_call == IBP_OPERATION_NONE || ibp_mpich_communicator_of(context) || may_commit(context))
        return IBP_OPERATION_NONE;
    return duplicating_call;
}

unsigned ibp_mpich_counted_call(uint32_t context, uint32_t tag)
{
    const bool within = takes_tag();
    ibp_handle handle = ibp_mpich_communicator_of(context);
    struct ibp_communicator *communicator;
    unsigned call;

    if (ibp_current_call.operation && ibp_current_call.starts_request &&
        !(ibp_mpich_starts_take_tags() && ibp_current_communicator()))
        return ibp_current_call.operation;
    if (!handle && (within || is_of_current_blocking(tag)) && may_be_current(context, tag)) {
        ibp_mpich_enter_context(context, ibp_current_communicator());
        handle = ibp_current_communicator();
    }
    if (!handle) {
        call = makes_communicator() && makers_take_tags ? IBP_OPERATION_NONE : guess_call(context, tag);
        if (call == IBP_OPERATION_NONE && !is_made_of_nonblocking()) call = ibp_mpich_call_of_freed(context, tag);
        if (call != IBP_OPERATION_NONE) return call;
    }
    if (!handle && !makes_communicator()) {
        if (!is_blocking_collective() || !may_be_current(context, tag)) {
            call = ibp_mpich_call_of_freed_guessed(context, tag);
            return call == IBP_OPERATION_NONE ? IBP_OPERATION_UNATTRIBUTED : call;
        }
        ibp_mpich_enter_context(context, ibp_current_communicator());
        handle = ibp_current_communicator();
    }
    communicator = handle ? ibp_communicator_enter(handle) : NULL;
    if (communicator && within && handle == ibp_current_communicator() && tag >= (uint32_t)ibp_current_call.tag)
        correct_numbers(communicator, tag);
    call = communicator ? ibp_tag_call(communicator, (int)tag) : IBP_OPERATION_NONE;
    if (call != IBP_OPERATION_NONE && !communicator->is_duplicated) return call;
    if (makes_communicator()) return blocking_call(communicator, tag);
    if (!communicator) return IBP_OPERATION_UNATTRIBUTED;
    if (communicator->is_duplicated) return IBP_OPERATION_Comm_idup;
    if (is_of_blocking_collective(communicator)) return blocking_call(communicator, tag);
    /* The tag is unknown: MPICH allocated several tags for a call, or a new tag at the start of a persistent
     * collective. If all nonblocking calls on the communicator have one operation, the message has this operation. */
    return communicator->only_started ? communicator->only_started : IBP_OPERATION_UNATTRIBUTED;
}
