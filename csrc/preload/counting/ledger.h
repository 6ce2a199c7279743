/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The ledger: the bytes that calls asked MPI to move, for a comparison with the bytes that the source saw. From all
 * recordings, readers compute a lower bound on the bytes that any algorithm must send (ibprof/profile/unaccounted.py).
 *
 * A call adds its bytes to the demand of (operation, partner). The partner is the rank of the root or peer, or the
 * group of the communicator.
 */
#ifndef IBPROF_COUNTING_LEDGER_H
#define IBPROF_COUNTING_LEDGER_H

#include "counting/calls.h"
#include "counting/counters.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "libmpi/library.h"
#include "platform/system.h"
#include "recording/operations.h"

#include <stdbool.h>
#include <stdint.h>

/* The arguments that determine a call's bytes. */
enum ibp_demand_shape {
    /* The call is not in the ledger. */
    IBP_DEMAND_NONE,
    /* With a root; the call's arguments are equal on all ranks (MPI_Bcast). */
    IBP_DEMAND_TREE,
    /* With a root; the call's arguments count on all ranks except the root (MPI_Gather). */
    IBP_DEMAND_LEAF,
    /* The call's arguments (MPI_Allreduce). */
    IBP_DEMAND_GROUP,
    /* This rank's element of an array of counts (MPI_Allgatherv). */
    IBP_DEMAND_OWN,
    /* An array of counts, without this rank's element (MPI_Alltoallv). */
    IBP_DEMAND_OTHERS,
    /* Arrays of counts and of datatypes, without this rank's element (MPI_Alltoallw). */
    IBP_DEMAND_OTHERS_TYPES,
    /* The call's arguments, to a peer (MPI_Send). */
    IBP_DEMAND_PEER
};

/* A call with its arguments as passed. */
struct ibp_demanding {
    struct ibp_call *call;
    uint16_t operation;
    uint8_t shape; /* enum ibp_demand_shape */
    /* Counts have 64 bits: a call for large counts. */
    bool is_large;
    long communicator;
    /* A count or an array of counts, and a datatype or an array of them. */
    long items, type;
    /* Rank of the root or the peer. */
    long root;
};

/* The partner and bytes of a call that has succeeded. */
struct ibp_demanded {
    uint32_t partner;
    uint64_t bytes;
};
struct ibp_demanded ibp_ledger_describe(const struct ibp_demanding *call);

/* Enter one call. */
void ibp_ledger_enter(struct ibp_call *call, struct ibp_demanded demanded);

/* Enter a call that has succeeded, and remember its partner for the next call; or enter a call that has failed. */
void ibp_ledger_add(const struct ibp_demanding *call);
void ibp_ledger_add_failed(struct ibp_call *call);

/* Forget remembered partners of a communicator that is freed, or all partners when the region changes. */
void ibp_ledger_forget(ibp_handle communicator);
void ibp_ledger_forget_all(void);

/* Find the size of a call's datatype, if no call to MPI is needed. */
static inline bool ibp_ledger_type_size(struct ibp_demanding call, uint64_t *size)
{
    const struct ibp_ledger_recent *recent = &call.call->ledger;

    if (IBP_LIKELY(ibp_datatype_size_offset) && IBP_LIKELY(call.type)) {
        *size = ibp_datatype_size_there(call.type);
        return true;
    }
    *size = recent->type_size;
    return call.type == recent->type;
}

/* Add a call to a peer of MPI_COMM_WORLD to an existing demand. */
static inline bool ibp_ledger_add_to_peer(struct ibp_demanding call, uint64_t bytes)
{
    const struct ibp_slot *slot;

    if (call.communicator != ibp_mpi.world || IBP_UNLIKELY((int)call.root < 0)) return false;
    slot = ibp_slot_known(call.call->context.send.origin, IBP_KEY_DEMAND, 0, (int)call.root);
    if (slot) ibp_add(slot->amount, bytes);
    return slot;
}

/* Enter a call before it is made, if it resembles the last call of its operation: the same communicator and root, and a
 * datatype of known size. Return false for all other calls. To be called only while one thread at a time is in MPI. */
static inline __attribute__((always_inline)) bool ibp_ledger_add_known(struct ibp_demanding call)
{
    const struct ibp_ledger_recent *recent = &call.call->ledger;
    const uint64_t items = call.is_large ? (uint64_t)call.items : (uint32_t)call.items;
    uint64_t size;
    const bool is_rooted = call.shape == IBP_DEMAND_TREE || call.shape == IBP_DEMAND_LEAF;

    if (call.shape == IBP_DEMAND_NONE) return true;
    if (!is_rooted && call.shape != IBP_DEMAND_GROUP && call.shape != IBP_DEMAND_PEER) return false;
    if (call.shape != IBP_DEMAND_PEER && IBP_UNLIKELY(call.communicator != recent->communicator)) return false;
    if (is_rooted && IBP_UNLIKELY((int)call.root != recent->root)) return false;
    if (call.shape == IBP_DEMAND_LEAF && recent->is_root) {
        recent->amount[1]++;
        return true;
    }
    if (IBP_UNLIKELY(items > INT32_MAX) || IBP_UNLIKELY(!ibp_ledger_type_size(call, &size))) return false;
    if (call.shape == IBP_DEMAND_PEER) return ibp_ledger_add_to_peer(call, items * size);
    ibp_add(recent->amount, items * size);
    return true;
}

#endif
