/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/ledger.h"
#include "counting/counters.h"
#include "counting/partners.h"
#include "libmpi/communicators.h"
#include "libmpi/datatypes.h"
#include "libmpi/lock.h"
#include "recording/process_state.h"

#include "ibprof_recording.h"

/* List of all `ibp_ledger_recent` elements whose communicator is not 0. */
static struct ibp_ledger_recent *used;

static bool has_root(const struct ibp_demanding *call)
{
    return call->shape == IBP_DEMAND_TREE || call->shape == IBP_DEMAND_LEAF || call->shape == IBP_DEMAND_PEER;
}

/* Return whether `items` of a call is an array of counts. */
static bool has_counts(const struct ibp_demanding *call)
{
    return call->shape == IBP_DEMAND_OWN || call->shape == IBP_DEMAND_OTHERS || call->shape == IBP_DEMAND_OTHERS_TYPES;
}

static uint32_t find_partner(const struct ibp_demanding *call)
{
    struct ibp_communicator *communicator;
    uint32_t partner = IBP_PARTNER_NUMBER_UNKNOWN;

    ibp_communicator_learn(IBP_HANDLE(call->communicator));
    ibp_lock();
    communicator = ibp_communicator_find(IBP_HANDLE(call->communicator));
    if (communicator)
        partner =
            has_root(call) ? ibp_communicator_peer(communicator, (int)call->root) : ibp_partner_group(communicator);
    ibp_unlock();
    return partner;
}

/* -- bytes --------------------------------------------------------------------------------------------------------- */

static uint64_t count_at(const struct ibp_demanding *call, int place)
{
    const int64_t items = call->is_large ? ((const int64_t *)call->items)[place] : ((const int *)call->items)[place];

    return items > 0 ? (uint64_t)items : 0;
}

static long type_at(const struct ibp_demanding *call, int place)
{
    return ibp_mpi.abi == IBP_ABI_MPICH ? ((const int *)call->type)[place] : ((const long *)call->type)[place];
}

/* Sum the bytes of an array of counts, such as MPI_Alltoallv's. */
static uint64_t bytes_of_counts(const struct ibp_demanding *call, int size)
{
    uint64_t bytes = 0;
    int own = 0;

    if (!call->items || ibp_mpi.comm_rank(IBP_HANDLE(call->communicator), &own)) return 0;
    if (call->shape == IBP_DEMAND_OWN) return ibp_mpi_bytes(count_at(call, own), IBP_HANDLE(call->type));
    for (int rank = 0; rank < size; rank++) {
        const uint64_t items = rank == own ? 0 : count_at(call, rank);

        if (call->shape == IBP_DEMAND_OTHERS)
            bytes += items;
        else if (items)
            bytes += ibp_mpi_bytes(items, (ibp_handle)type_at(call, rank));
    }
    return call->shape == IBP_DEMAND_OTHERS ? ibp_mpi_bytes(bytes, IBP_HANDLE(call->type)) : bytes;
}

struct ibp_demanded ibp_ledger_describe(const struct ibp_demanding *call)
{
    struct ibp_demanded demanded = {.partner = find_partner(call)};
    const int64_t items = call->is_large ? call->items : (int)call->items;

    if (demanded.partner == IBP_PARTNER_NUMBER_UNKNOWN) return demanded;
    if (has_counts(call))
        demanded.bytes = bytes_of_counts(call, ibp_partner_size(demanded.partner));
    else if (items > 0 && (call->shape != IBP_DEMAND_LEAF || demanded.partner != (uint32_t)ibp_mpi.rank))
        demanded.bytes = ibp_mpi_bytes((uint64_t)items, IBP_HANDLE(call->type));
    return demanded;
}

/* -- entries ------------------------------------------------------------------------------------------------------- */

static uint64_t *enter(struct ibp_call *call, struct ibp_demanded demanded)
{
    const uint32_t origin = ibp_context_origin(&call->context, &call->context.send);
    const uint64_t key = IBP_SLOT_KEY(origin, IBP_KEY_DEMAND, 0, demanded.partner);
    struct ibp_slot *slot = ibp_slot_of(key);

    if (slot->key != key) slot = ibp_counters_find(key);
    ibp_add(slot->amount, demanded.bytes);
    return slot->ordinal ? slot->amount : NULL;
}

/* Return whether a call is entered in the ledger. No call is entered if a library such as mpitrampoline translates the
 * program's handles: ibprof cannot read the program's handles. */
static bool is_wanted(const struct ibp_call *call)
{
    return ibp_is_active() && ibp_counting && ibp_operation_wanted[call->operation] && !ibp_mpi.is_behind_layer;
}

void ibp_ledger_enter(struct ibp_call *call, struct ibp_demanded demanded)
{
    if (!is_wanted(call)) return;
    ibp_lock();
    enter(call, demanded);
    ibp_unlock();
}

static void remember(const struct ibp_demanding *call, uint32_t partner, uint64_t *amount)
{
    struct ibp_ledger_recent *recent = &call->call->ledger;

    if (!recent->communicator) {
        recent->next = used;
        used = recent;
    }
    recent->communicator = call->communicator;
    recent->root = (int)call->root;
    recent->is_root = partner == (uint32_t)ibp_mpi.rank;
    recent->amount = amount;
}

/* Return whether the size of the datatype may be cached. MPI never reuses the handle of a predefined datatype for
 * another datatype. */
static bool is_type_kept(const struct ibp_demanding *call)
{
    return !has_counts(call) && !ibp_datatype_size_offset && ibp_datatype_is_predefined(IBP_HANDLE(call->type));
}

/* Call MPI before taking ibprof's lock, to avoid a deadlock: a thread that holds a lock of MPI may wait for ibprof's
 * lock. */
void ibp_ledger_add(const struct ibp_demanding *call)
{
    struct ibp_demanded demanded;
    uint64_t *amount, type_size;

    if (call->shape == IBP_DEMAND_NONE || !is_wanted(call->call)) return;
    demanded = ibp_ledger_describe(call);
    type_size = demanded.bytes && is_type_kept(call) ? ibp_mpi_bytes(1, IBP_HANDLE(call->type)) : 0;
    ibp_lock();
    amount = enter(call->call, demanded);
    if (amount && call->communicator && call->shape != IBP_DEMAND_PEER) remember(call, demanded.partner, amount);
    if (type_size) {
        call->call->ledger.type = call->type;
        call->call->ledger.type_size = type_size;
    }
    ibp_unlock();
}

void ibp_ledger_add_failed(struct ibp_call *call)
{
    ibp_ledger_enter(call, (struct ibp_demanded){.partner = IBP_PARTNER_NUMBER_FAILED});
}

void ibp_ledger_forget(ibp_handle communicator)
{
    for (const struct ibp_ledger_recent *recent = used; recent; recent = recent->next)
        if (IBP_HANDLE(recent->communicator) == communicator) {
            ibp_ledger_forget_all();
            return;
        }
}

void ibp_ledger_forget_all(void)
{
    for (; used; used = used->next) used->communicator = 0;
}
