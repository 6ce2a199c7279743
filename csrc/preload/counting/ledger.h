/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The ledger: the bytes that calls asked MPI to move. From the ledger, readers compute a lower bound on the bytes that
 * any algorithm must send. Readers compare this bound with the bytes that the source counted
 * (ibprof/profile/unaccounted.py).
 *
 * The bytes of each call are added to the demand of the call's operation and partner. The partner is the rank of the
 * root or peer, or the group of the communicator.
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

/* The arguments that determine the bytes of a call. */
enum ibp_demand_shape {
    /* Calls of this shape are not entered in the ledger. */
    IBP_DEMAND_NONE,
    /* There is a root; count and datatype are equal on all ranks (MPI_Bcast). */
    IBP_DEMAND_TREE,
    /* There is a root; each other rank sends `count` elements of a datatype (MPI_Gather). */
    IBP_DEMAND_LEAF,
    /* There is no root; count and datatype are equal on all ranks (MPI_Allreduce). */
    IBP_DEMAND_GROUP,
    /* In an array of counts, the element whose index is this rank (MPI_Allgatherv). */
    IBP_DEMAND_OWN,
    /* All elements of an array of counts, except the element of this rank (MPI_Alltoallv). */
    IBP_DEMAND_OTHERS,
    /* All elements of an array of counts and an array of datatypes, except the elements of this rank
     * (MPI_Alltoallw). */
    IBP_DEMAND_OTHERS_TYPES,
    /* Count and datatype of a message to a peer (MPI_Send). */
    IBP_DEMAND_PEER
};

struct ibp_demanding {
    struct ibp_call *call;
    uint16_t operation;
    uint8_t shape; /* enum ibp_demand_shape */
    /* True if the call has 64-bit counts (MPI_Send_c). */
    bool is_large;
    long communicator;
    /* `items`: a count, or the address of an array of counts. `type`: a datatype, or the address of an array of
     * datatypes. */
    long items, type;
    /* Rank of the root or the peer. */
    long root;
};

/* The partner of a call, and the bytes that the call asked MPI to move. */
struct ibp_demanded {
    uint32_t partner;
    uint64_t bytes;
};
struct ibp_demanded ibp_ledger_describe(const struct ibp_demanding *call);

void ibp_ledger_enter(struct ibp_call *call, struct ibp_demanded demanded);

/* ibp_ledger_add: enter a call that has succeeded, and store its communicator and root for ibp_ledger_add_known.
 * ibp_ledger_add_failed: count a call that has failed, without bytes. */
void ibp_ledger_add(const struct ibp_demanding *call);
void ibp_ledger_add_failed(struct ibp_call *call);

/* ibp_ledger_forget_all: when the region changes, forget the stored communicators of all calls. ibp_ledger_forget: when
 * a communicator is freed, forget this communicator in all calls. */
void ibp_ledger_forget(ibp_handle communicator);
void ibp_ledger_forget_all(void);

/* Find the size in bytes of a call's datatype without calling MPI. Return false if the size is unknown. */
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

/* Add the bytes of a send on MPI_COMM_WORLD to the demand of its operation and peer. Return false for other calls, and
 * if ibp_slot_known does not find the demand. */
static inline bool ibp_ledger_add_to_peer(struct ibp_demanding call, uint64_t bytes)
{
    const struct ibp_slot *slot;

    if (call.communicator != ibp_mpi.world || IBP_UNLIKELY((int)call.root < 0)) return false;
    slot = ibp_slot_known(call.call->context.send.origin, IBP_KEY_DEMAND, 0, (int)call.root);
    if (slot) ibp_add(slot->amount, bytes);
    return slot;
}

/* Enter a call before MPI is called. The call must have the same communicator and root as the site's last call, and a
 * datatype of known size. Return false if the call must be entered after MPI has returned. Call this only while at most
 * one thread can be in MPI. */
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
