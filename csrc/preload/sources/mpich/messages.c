/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "sources/mpich/messages.h"
#include "counting/addresses.h"
#include "counting/calls.h"
#include "counting/count.h"
#include "counting/counters.h"
#include "counting/current_call.h"
#include "libmpi/lock.h"
#include "platform/log.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/mpich/contexts.h"
#include "sources/mpich/counted_tags.h"
#include "sources/mpich/proof.h"
#include "sources/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lowest bit of a context marks collectives. */
#define COLLECTIVE_CONTEXT 1

/* Blocking collectives have fixed tags below this value (mpir_tags.h of MPICH 3.4 to 5.0). Tags that MPICH takes from a
 * counter are above this value. */
#define FIRST_TAG_NOT_FIXED 31

static bool is_synchronisation(unsigned operation)
{
    return operation >= IBP_OPERATION_Win_free && operation <= IBP_OPERATION_Win_flush_local_all;
}

static bool is_one_sided(unsigned operation)
{
    return operation >= IBP_OPERATION_Put && operation <= IBP_OPERATION_Rget_accumulate;
}

/* Return whether a message may belong to a collective that an earlier call has started. */
static bool is_of_pending_collective(struct ibp_mpich_envelope envelope)
{
    return envelope.context & COLLECTIVE_CONTEXT && envelope.tag >= FIRST_TAG_NOT_FIXED && ibp_mpich_has_taken_tags();
}

unsigned ibp_mpich_call_of(struct ibp_mpich_envelope envelope)
{
    const bool collective = envelope.context & COLLECTIVE_CONTEXT;

    if (collective && envelope.tag >= FIRST_TAG_NOT_FIXED)
        return ibp_mpich_counted_call(envelope.context, envelope.tag);
    if (collective && ibp_mpich_committing_call(envelope.context) != IBP_OPERATION_NONE)
        return ibp_mpich_committing_call(envelope.context);
    if (!ibp_current_call.operation) return IBP_OPERATION_UNATTRIBUTED;
    if (ibp_current_call.kind == (collective ? IBP_CALL_COLLECTIVE : IBP_CALL_SENDING))
        ibp_mpich_enter_context(envelope.context, ibp_current_communicator());
    return ibp_current_call_number();
}

static void count(unsigned operation, enum ibp_kind kind, enum ibp_direction direction, uint32_t peer, uint64_t bytes)
{
    if (ibp_operation_wanted[operation]) ibp_count(operation, kind, direction, peer, bytes);
}

static void count_of(struct ibp_call *call, bool is_control, uint32_t peer, uint64_t bytes)
{
    const enum ibp_kind kind = is_control || is_synchronisation(call->operation) || is_one_sided(call->operation)
                                   ? IBP_KIND_CONTROL
                                   : IBP_KIND_USER;

    if (call->site == IBP_SITE_UNKNOWN)
        count(call->operation, kind, IBP_DIRECTION_SENT, peer, bytes);
    else if (ibp_operation_wanted[call->operation])
        ibp_count_of(call, kind, IBP_DIRECTION_SENT, peer, bytes);
}

void ibp_mpich_count_for(unsigned call, uint32_t peer, uint64_t bytes)
{
    if (ibp_is_active() && !ibp_address_is_own(peer)) count_of(ibp_call_by_number(call), false, peer, bytes);
}

void ibp_mpich_count(struct ibp_mpich_envelope envelope, uint32_t peer, uint64_t bytes)
{
    struct ibp_call *call;

    if (IBP_UNLIKELY(!ibp_is_active())) {
        ibp_mpich_probe_seen(envelope.tag, peer, bytes);
        return;
    }
    if (IBP_UNLIKELY(ibp_source_unproved) && !envelope.is_control && !is_of_pending_collective(envelope))
        ibp_mpich_compare(envelope.tag, bytes);
    ibp_log(5, "context %x tag %u to %x: %llu bytes in %s", envelope.context, envelope.tag, peer,
            (unsigned long long)bytes, ibp_operation_name(ibp_current_call.operation));
    if (ibp_address_is_own(peer)) return;
    ibp_lock();
    call = ibp_call_by_number(envelope.is_control ? ibp_mpich_starting(IBP_OPERATION_UNATTRIBUTED)
                                                  : ibp_mpich_call_of(envelope));
    ibp_unlock();
    count_of(call, envelope.is_control, peer, bytes);
}

void ibp_mpich_count_own(uint32_t peer, uint64_t bytes)
{
    const unsigned current = ibp_current_call.operation;
    const bool own = is_synchronisation(current) || is_one_sided(current) || ibp_current_call.starts_request;

    if (!ibp_is_active() || ibp_address_is_own(peer)) return;
    ibp_log(5, "active message to %x: %llu bytes in %s", peer, (unsigned long long)bytes, ibp_operation_name(current));
    count(ibp_mpich_starting(own && current ? current : IBP_OPERATION_UNATTRIBUTED), IBP_KIND_CONTROL,
          IBP_DIRECTION_SENT, peer, bytes);
}

void ibp_mpich_count_active_message(uint32_t peer, uint64_t bytes)
{
    if (IBP_UNLIKELY(ibp_source_unproved) && ibp_is_active()) ibp_mpich_compare(IBP_NO_TAG, bytes);
    ibp_mpich_count_own(peer, bytes);
}

void ibp_mpich_count_moved(enum ibp_direction direction, uint32_t peer, uint64_t bytes)
{
    if (!ibp_is_active() || ibp_address_is_own(peer)) return;
    if (is_one_sided(ibp_current_call.operation) || is_synchronisation(ibp_current_call.operation)) return;
    count(ibp_mpich_starting(IBP_OPERATION_UNATTRIBUTED), ibp_counts_arguments ? IBP_KIND_CONTROL : IBP_KIND_USER,
          direction, peer, bytes);
}

/* -- gaps ---------------------------------------------------------------------------------------------------------- */

static bool is_set_to(const char *name, const char *value)
{
    const char *found = getenv(name);

    return found && !strcmp(found, value);
}

bool ibp_mpich_sees_host(void)
{
    return is_set_to("MPIR_CVAR_NOLOCAL", "1") &&
           (!strstr(ibp_mpi.version, "Intel") ||
            (is_set_to("I_MPI_FABRICS", "ofi") && is_set_to("I_MPI_COLL_INTRANODE", "pt2pt")));
}

void ibp_mpich_describe_gaps(char *notes, size_t bytes)
{
    if (!ibp_mpich_sees_host())
        ibp_text_append(notes, bytes,
                        "ibprof does not see messages between ranks of one host, which do not use the network\n");
    ibp_text_append(notes, bytes, "ibprof does not see received bytes\n");
    ibp_mpich_describe_proof(notes, bytes);
    if (ibp_mpich_counted_wrongly())
        ibp_text_append(notes, bytes,
                        "some nonblocking collectives may be counted under the operation of an earlier one\n");
}
