/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/communicators.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <string.h>

#define FIRST_PLACES 64
#define FREED ((ibp_handle) - 1)

static struct {
    /* Hash table with the handle as the key; the number of entries is a power of two. In a free entry, the handle is 0;
     * in a deleted entry, it is FREED. */
    struct ibp_communicator *place;
    /* `used` includes FREED places. */
    uint64_t mask, used;
} table;

static uint64_t hash(ibp_handle handle)
{
    return ((uint64_t)handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static bool is_live(ibp_handle handle)
{
    return handle && handle != FREED;
}

static size_t map_bytes(int size)
{
    return (size_t)(size ? size : 1) * sizeof(uint32_t);
}

static int take_world_group(ibp_handle *group)
{
    *group = ibp_mpi.world_group;
    return ibp_mpi.session ? 0 : ibp_mpi.comm_group(ibp_mpi.world, group);
}

/* Write the world ranks of a group's members to `world`. The array has 2 * size elements; the second half is scratch.
 * Return 1 if rank i is world rank i for all members, 0 if not, -1 on failure. */
static int translate_ranks(ibp_handle group, int size, int *world)
{
    ibp_handle world_group = 0;
    int *own = world + size, failed;
    bool same = true;

    if (take_world_group(&world_group)) return -1;
    for (int i = 0; i < size; i++) own[i] = i;
    failed = ibp_mpi.group_translate_ranks(group, size, own, world_group, world);
    if (!ibp_mpi.session) ibp_mpi.group_free(&world_group);
    for (int i = 0; !failed && i < size; i++) {
        if (world[i] < 0 || world[i] >= ibp_mpi.size) world[i] = (int)IBP_PEER_UNKNOWN; /* in another job */
        same = same && world[i] == i;
    }
    return failed ? -1 : same;
}

/* Write the size of a group and the world ranks of its members to `into`. If rank i is world rank i for all members,
 * the array of ranks is NULL. If such a group has at most FEW members, allocate nothing. Return 0, or -1 on failure. */
static int translate(ibp_handle group, struct ibp_communicator *into)
{
    enum { FEW = 128 };
    int few[2 * FEW], *world = few, same = -1;

    if (ibp_mpi.group_size(group, &into->size)) return -1;
    if (into->size > FEW) world = ibp_memory_map(2 * map_bytes(into->size));
    if (world) same = translate_ranks(group, into->size, world);
    if (same == 0 && (into->world_rank = ibp_memory_map(map_bytes(into->size))))
        memcpy(into->world_rank, world, map_bytes(into->size));
    if (world != few) ibp_memory_unmap(world, 2 * map_bytes(into->size));
    return same < 0 || (!same && !into->world_rank) ? -1 : 0;
}

static int describe_communicator(ibp_handle handle, struct ibp_communicator *into)
{
    ibp_handle group = 0;
    int between = 0, failed;

    if (ibp_mpi_is_null(handle) || ibp_mpi.comm_test_inter(handle, &between)) return -1;
    into->is_between = between;
    failed = between ? ibp_mpi.comm_remote_group(handle, &group) : ibp_mpi.comm_group(handle, &group);
    if (!failed) {
        failed = translate(group, into);
        ibp_mpi.group_free(&group);
    }
    return failed;
}

static int describe_window(ibp_handle handle, struct ibp_communicator *into)
{
    ibp_handle group = 0;
    int failed = ibp_mpi_is_null(handle) || ibp_mpi.win_get_group(handle, &group);

    if (!failed) {
        failed = translate(group, into);
        ibp_mpi.group_free(&group);
    }
    return failed;
}

static bool ensure_capacity(void)
{
    const uint64_t places = table.place ? table.mask + 1 : 0;
    uint64_t larger = FIRST_PLACES;
    struct ibp_communicator *moved;

    if (places && table.used * 2 < places) return true;
    for (uint64_t i = 0, live = 0; i < places; i++)
        if (is_live(table.place[i].handle) && ++live * 4 > larger) larger *= 2;
    moved = ibp_memory_map(larger * sizeof *moved);
    if (!moved) return false;
    table.used = 0;
    for (uint64_t i = 0; i < places; i++) {
        const ibp_handle handle = table.place[i].handle;
        uint64_t place = hash(handle) & (larger - 1);

        if (!is_live(handle)) continue;
        while (moved[place].handle) place = (place + 1) & (larger - 1);
        moved[place] = table.place[i];
        table.used++;
    }
    ibp_memory_unmap(table.place, places * sizeof *moved);
    table.place = moved;
    table.mask = larger - 1;
    return true;
}

static struct ibp_communicator *find_known(ibp_handle handle)
{
    uint64_t place = hash(handle) & table.mask;

    if (IBP_UNLIKELY(!table.place)) return NULL;
    for (; table.place[place].handle; place = (place + 1) & table.mask)
        if (table.place[place].handle == handle) return &table.place[place];
    return NULL;
}

/* Return the entry of a handle, created if needed; NULL if memory is exhausted. */
static struct ibp_communicator *enter(ibp_handle handle)
{
    struct ibp_communicator *known = find_known(handle);
    uint64_t place;

    if (IBP_LIKELY(known != NULL)) return known;
    if (!ensure_capacity()) return NULL;
    for (place = hash(handle) & table.mask; is_live(table.place[place].handle);) place = (place + 1) & table.mask;
    table.used += !table.place[place].handle;
    table.place[place] = (struct ibp_communicator){.handle = handle};
    return &table.place[place];
}

struct ibp_communicator *ibp_communicator_enter(ibp_handle communicator)
{
    return enter(communicator);
}

const struct ibp_communicator *ibp_communicator_at(size_t *place)
{
    for (; table.place && *place <= table.mask; ++*place)
        if (is_live(table.place[*place].handle)) return &table.place[*place];
    return NULL;
}

struct ibp_communicator *ibp_communicator_find(ibp_handle communicator)
{
    struct ibp_communicator *entry = enter(communicator);

    if (entry && IBP_UNLIKELY(!entry->described)) {
        if (describe_communicator(communicator, entry)) entry->size = 0; /* makes all peers unknown */
        entry->described = true;
    }
    return entry;
}

static void learn(ibp_handle handle, int (*describe)(ibp_handle, struct ibp_communicator *))
{
    struct ibp_communicator learned = {.handle = handle}, *entry;

    if (describe(handle, &learned)) learned.size = 0; /* makes all peers unknown */
    ibp_lock();
    entry = enter(handle);
    if (entry && !entry->described) {
        entry->size = learned.size;
        entry->world_rank = learned.world_rank;
        entry->is_between = learned.is_between;
        entry->described = true;
    } else {
        ibp_memory_unmap(learned.world_rank, map_bytes(learned.size));
    }
    ibp_unlock();
}

void ibp_communicator_learn(ibp_handle communicator)
{
    const struct ibp_communicator *known;

    ibp_lock();
    known = ibp_communicator_known(communicator);
    ibp_unlock();
    if (!known) learn(communicator, describe_communicator);
}

const struct ibp_communicator *ibp_window_find(ibp_handle window)
{
    const struct ibp_communicator *const known = ibp_communicator_known(window);

    if (IBP_LIKELY(known != NULL)) return known;
    ibp_unlock();
    learn(window, describe_window);
    ibp_lock();
    return ibp_communicator_known(window);
}

const struct ibp_communicator *ibp_communicator_known(ibp_handle communicator)
{
    const struct ibp_communicator *entry = find_known(communicator);

    return entry && entry->described ? entry : NULL;
}

void ibp_communicator_forget(ibp_handle handle)
{
    struct ibp_communicator *gone = find_known(handle);

    if (!gone) return;
    ibp_memory_unmap(gone->world_rank, map_bytes(gone->size));
    ibp_memory_unmap(gone->tags, sizeof *gone->tags);
    *gone = (struct ibp_communicator){.handle = FREED};
}

uint32_t ibp_communicator_peer(const struct ibp_communicator *communicator, int rank)
{
    if (!communicator || rank < 0 || rank >= communicator->size) return IBP_PEER_UNKNOWN;
    return communicator->world_rank ? communicator->world_rank[rank] : (uint32_t)rank;
}

void ibp_communicator_note_carrier(ibp_handle communicator)
{
    struct ibp_communicator *entry = enter(communicator);

    if (entry) entry->carries_windows = true;
}

unsigned ibp_tag_call(const struct ibp_communicator *communicator, int tag)
{
    const struct ibp_tag_memory *tags = communicator->tags;
    const unsigned place = (unsigned)-tag % IBP_TAGS_REMEMBERED;

    return tags && tags->place[place].tag == tag ? tags->place[place].call : IBP_OPERATION_NONE;
}

void ibp_tag_remember(struct ibp_communicator *communicator, int tag, unsigned call)
{
    const unsigned place = (unsigned)-tag % IBP_TAGS_REMEMBERED;

    if (!communicator->tags) communicator->tags = ibp_memory_map(sizeof *communicator->tags);
    if (!communicator->tags) return;
    communicator->tags->place[place].tag = tag;
    communicator->tags->place[place].call = (uint16_t)call;
}
