/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/requests.h"
#include "counting/calls.h"
#include "counting/count.h"
#include "counting/current_call.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/operations.h"
#include "recording/process_state.h"

#include "ibprof_recording.h"

#define FIRST_PLACES 256

/* The table before the first request: one free entry. */
static struct ibp_request nothing;
struct ibp_requests ibp_requests = {.place = &nothing};
bool ibp_requests_show_starts;

/* Number of entries with an address, including forgotten requests. */
static uint64_t used;

static struct ibp_request *probe(struct ibp_request *places, uint64_t mask, void *address)
{
    uint64_t place = ibp_request_place(address, mask) / sizeof *places;

    while (places[place].address && places[place].address != address) place = (place + 1) & mask / sizeof *places;
    return &places[place];
}

static int ensure_capacity(void)
{
    const uint64_t places = ibp_requests.mask / sizeof(struct ibp_request) + 1;
    uint64_t larger = FIRST_PLACES, live = 0;
    struct ibp_request *moved;

    if (used * 2 < places - 1) return 0;
    for (uint64_t i = 0; i < places; i++)
        if (ibp_requests.place[i].role && ++live * 4 > larger) larger *= 2;
    moved = ibp_memory_map(larger * sizeof *moved);
    if (!moved) return used + 1 < places ? 0 : -1;
    for (uint64_t i = 0; i < places; i++)
        if (ibp_requests.place[i].role)
            *probe(moved, (larger - 1) * sizeof *moved, ibp_requests.place[i].address) = ibp_requests.place[i];
    if (ibp_requests.place != &nothing) ibp_memory_unmap(ibp_requests.place, places * sizeof *moved);
    ibp_requests.place = moved;
    ibp_requests.mask = (larger - 1) * sizeof *moved;
    used = live;
    return 0;
}

void ibp_request_remember(const struct ibp_request *request)
{
    struct ibp_request *place;

    if (!request->address || ensure_capacity()) return;
    place = probe(ibp_requests.place, ibp_requests.mask, request->address);
    if (!place->address) used++;
    *place = *request;
}

struct ibp_request *ibp_request_find(void *address)
{
    struct ibp_request *place = probe(ibp_requests.place, ibp_requests.mask, address);

    return place->role ? place : NULL;
}

void ibp_request_forget(void *address)
{
    struct ibp_request *place = probe(ibp_requests.place, ibp_requests.mask, address);

    if (place->role) place->role = 0;
}

void ibp_requests_visit(void (*visit)(const struct ibp_request *request))
{
    const uint64_t places = ibp_requests.mask / sizeof(struct ibp_request) + 1;

    for (uint64_t i = 0; i < places; i++)
        if (ibp_requests.place[i].role) visit(&ibp_requests.place[i]);
}

bool ibp_request_copy(void *address, struct ibp_request *copy)
{
    const struct ibp_request *known;

    ibp_lock();
    known = ibp_request_find(address);
    if (known) *copy = *known;
    ibp_unlock();
    return known;
}

void ibp_request_freed(void *address)
{
    ibp_lock();
    ibp_request_forget(address);
    ibp_unlock();
}

void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes,
                           const struct ibp_call *call)
{
    ibp_communicator_learn(communicator);
    ibp_lock();
    ibp_requests_show_starts = false;
    ibp_request_remember(&(struct ibp_request){
        .address = address,
        .role = IBP_REQUEST_PARTS,
        .operation = call->operation,
        .call = call->number,
        .kind = IBP_KIND_USER,
        .peer = ibp_communicator_peer(ibp_communicator_find(communicator), peer),
        .bytes = bytes,
    });
    ibp_unlock();
}

void ibp_request_count_parts(void *address)
{
    struct ibp_request known;

    if (!ibp_request_copy(address, &known) || known.role != IBP_REQUEST_PARTS) return;
    if (ibp_counting && ibp_operation_wanted[known.operation])
        ibp_count_of(ibp_call_by_number(known.call), (enum ibp_kind)known.kind, IBP_DIRECTION_SENT, known.peer,
                     known.bytes);
}

void ibp_request_keep_call(void *address, const struct ibp_call *call, ibp_handle communicator,
                           struct ibp_demanded demanded, bool is_demand)
{
    ibp_lock();
    ibp_requests_show_starts = false;
    ibp_request_remember(&(struct ibp_request){
        .address = address,
        .role = IBP_REQUEST_COLLECTIVE,
        .operation = call->operation,
        .call = call->number,
        .communicator = communicator,
        .peer = demanded.partner,
        .bytes = demanded.bytes,
        .is_demand = is_demand,
    });
    ibp_unlock();
}

void ibp_request_demand(void *address)
{
    struct ibp_request known;

    if (ibp_request_copy(address, &known) && known.is_demand)
        ibp_ledger_enter(ibp_call_by_number(known.call),
                         (struct ibp_demanded){.partner = known.peer, .bytes = known.bytes});
}

void ibp_requests_forget_communicator(ibp_handle communicator)
{
    const uint64_t places = ibp_requests.mask / sizeof(struct ibp_request) + 1;

    for (uint64_t i = 0; i < places; i++) {
        struct ibp_request *place = &ibp_requests.place[i];

        if (place->role == IBP_REQUEST_COLLECTIVE && place->communicator == communicator) place->communicator = 0;
    }
}

ibp_handle ibp_request_communicator(void *address)
{
    struct ibp_request known;

    return ibp_request_copy(address, &known) && known.role == IBP_REQUEST_COLLECTIVE ? known.communicator : 0;
}

struct ibp_call *ibp_request_call(void *address)
{
    struct ibp_request known;

    if (!ibp_request_copy(address, &known)) return &ibp_calls[IBP_OPERATION_NONE];
    if (known.role == IBP_REQUEST_COLLECTIVE) return ibp_call_by_number(known.call);
    return &ibp_calls[ibp_labels_sends ? known.operation : IBP_OPERATION_NONE];
}
