/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/requests.h"
#include "counting/current_call.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#define FIRST_PLACES 256

static struct {
    /* By hash of the address; role 0 marks one that was forgotten. */
    struct ibp_request *place;
    uint64_t mask, used;
} table;

static uint64_t hash(void *address)
{
    return ((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static struct ibp_request *probe(struct ibp_request *places, uint64_t mask, void *address)
{
    uint64_t place = hash(address) & mask;

    while (places[place].address && places[place].address != address) place = (place + 1) & mask;
    return &places[place];
}

static int ensure_capacity(void)
{
    const uint64_t places = table.place ? table.mask + 1 : 0;
    uint64_t larger = FIRST_PLACES, live = 0;
    struct ibp_request *moved;

    if (places && table.used * 2 < places) return 0;
    for (uint64_t i = 0; i < places; i++)
        if (table.place[i].role && ++live * 4 > larger) larger *= 2;
    moved = ibp_memory_map(larger * sizeof *moved);
    if (!moved) return table.used < table.mask ? 0 : -1;
    for (uint64_t i = 0; i < places; i++)
        if (table.place[i].role) *probe(moved, larger - 1, table.place[i].address) = table.place[i];
    ibp_memory_unmap(table.place, places * sizeof *moved);
    table.place = moved;
    table.mask = larger - 1;
    table.used = live;
    return 0;
}

void ibp_request_remember(const struct ibp_request *request)
{
    struct ibp_request *place;

    if (!request->address || ensure_capacity()) return;
    place = probe(table.place, table.mask, request->address);
    if (!place->address) table.used++;
    *place = *request;
}

const struct ibp_request *ibp_request_find(void *address)
{
    const struct ibp_request *place;

    if (!table.place) return NULL;
    place = probe(table.place, table.mask, address);
    return place->role ? place : NULL;
}

void ibp_request_forget(void *address)
{
    if (table.place) probe(table.place, table.mask, address)->role = 0;
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

void ibp_request_keep_send(void *address, ibp_handle communicator, int peer, uint64_t bytes, unsigned operation)
{
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = address,
        .role = IBP_REQUEST_SEND,
        .operation = (uint16_t)operation,
        .kind = IBP_KIND_USER,
        .peer = ibp_communicator_peer(ibp_communicator_find(communicator), peer),
        .bytes = bytes,
    });
    ibp_unlock();
}

void ibp_request_keep_operation(void *address, unsigned operation)
{
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = address,
        .role = IBP_REQUEST_COLLECTIVE,
        .operation = (uint16_t)operation,
    });
    ibp_unlock();
}

unsigned ibp_request_operation(void *address)
{
    struct ibp_request known;

    if (!ibp_request_copy(address, &known)) return IBP_OPERATION_NONE;
    return known.role == IBP_REQUEST_COLLECTIVE || ibp_labels_sends ? known.operation : IBP_OPERATION_NONE;
}
