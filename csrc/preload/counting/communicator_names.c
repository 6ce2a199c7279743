/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/communicator_names.h"
#include "counting/samples.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/operations.h"

/* Number of entries of the hash table by handle, with open addressing. At most three quarters of the entries are
 * used. */
#define PLACES IBP_NAMES_MAX
#define USED_MAX (PLACES / 4 * 3)

/* A bit that is 0 in all handles: in addresses, and in integer handles of MPICH. A key with this bit is a hash of
 * members and tag, for communicators that are created from a group. The key's entry counts the communicators that were
 * created with these members and this tag. */
#define COUNT_BIT (INT64_C(1) << 62)

enum { NAME_OF_WORLD = 1, NAME_OF_SELF = 2, NAME_OF_CHILD = 3, NAME_OF_GROUP = 4, NAME_OF_WINDOW = 5 };

static struct {
    struct ibp_named_communicator *places;
    uint32_t used;
    bool is_full;
} names;

/* -- the table ----------------------------------------------------------------------------------------------------- */

static uint32_t home(ibp_handle handle)
{
    return (uint32_t)((uint64_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 40) % PLACES;
}

static struct ibp_named_communicator *probe(ibp_handle handle)
{
    uint32_t place = home(handle);

    while (names.places[place].handle && names.places[place].handle != handle) place = (place + 1) % PLACES;
    return &names.places[place];
}

struct ibp_named_communicator *ibp_name_find(ibp_handle communicator)
{
    struct ibp_named_communicator *const place = names.places ? probe(communicator) : NULL;

    return place && place->handle && place->name ? place : NULL;
}

/* Return the entry of a handle, created if needed; NULL if the table is full. */
static struct ibp_named_communicator *enter(ibp_handle handle)
{
    struct ibp_named_communicator *const place = probe(handle);

    if (place->handle) return place;
    if (names.used == USED_MAX) {
        names.is_full = true;
        return NULL;
    }
    names.used++;
    *place = (struct ibp_named_communicator){.handle = handle};
    return place;
}

bool ibp_names_are_full(void)
{
    return names.is_full;
}

/* Later entries of the probe sequence fill the gap. No entry moves before its own hash position. */
void ibp_name_forget(ibp_handle communicator)
{
    struct ibp_named_communicator *const place = names.places ? probe(communicator) : NULL;
    uint32_t gap;

    if (!place || !place->handle) return;
    names.used--;
    gap = (uint32_t)(place - names.places);
    for (uint32_t next = (gap + 1) % PLACES; names.places[next].handle; next = (next + 1) % PLACES) {
        if ((next - home(names.places[next].handle)) % PLACES < (next - gap) % PLACES) continue;
        names.places[gap] = names.places[next];
        gap = next;
    }
    names.places[gap] = (struct ibp_named_communicator){0};
}

/* -- members ------------------------------------------------------------------------------------------------------- */

/* The members of a group, identified by their ranks in MPI_COMM_WORLD. */
struct members {
    int size;
    /* World rank of the first member, and a hash of all members. */
    int first;
    uint64_t hash;
};

static int translate(ibp_handle group, int count, const int *ranks, int *world)
{
    ibp_handle world_group = ibp_mpi.world_group;
    int failed = 0;

    if (!ibp_mpi.session) failed = ibp_mpi.comm_group(ibp_mpi.world, &world_group);
    if (failed) return failed;
    failed = ibp_mpi.group_translate_ranks(group, count, ranks, world_group, world);
    if (!ibp_mpi.session) ibp_mpi.group_free(&world_group);
    for (int i = 0; !failed && i < count; i++) failed = world[i] < 0 || world[i] >= ibp_mpi.size;
    return failed;
}

/* Describe a group by all its members (`of_all`), or only by its first member. If all groups that a call creates are
 * disjoint, the first member identifies the group. Return false for an empty group, if MPI reports an error, or if a
 * member does not belong to this job. */
static bool describe_group(ibp_handle group, bool of_all, struct members *into)
{
    enum { AT_ONCE = 128 };
    int ranks[AT_ONCE], world[AT_ONCE];

    *into = (struct members){0};
    if (ibp_mpi.group_size(group, &into->size) || !into->size) return false;
    for (int begin = 0; begin < (of_all ? into->size : 1); begin += AT_ONCE) {
        const int rest = (of_all ? into->size : 1) - begin, count = rest < AT_ONCE ? rest : AT_ONCE;

        for (int i = 0; i < count; i++) ranks[i] = begin + i;
        if (translate(group, count, ranks, world)) return false;
        if (!begin) into->first = world[0];
        for (int i = 0; i < count; i++) into->hash = ibp_sample_hash(into->hash, (uint64_t)world[i]);
    }
    return true;
}

/* Describe both groups of a communicator. The remote group of an intracommunicator is empty. */
static bool describe_groups(ibp_handle communicator, bool of_all, struct members *own, struct members *remote)
{
    ibp_handle group = 0;
    int has_two_groups = 0;
    bool is_known;

    *remote = (struct members){0};
    if (ibp_mpi.comm_test_inter(communicator, &has_two_groups) || ibp_mpi.comm_group(communicator, &group))
        return false;
    is_known = describe_group(group, of_all, own);
    ibp_mpi.group_free(&group);
    if (!has_two_groups || !is_known) return is_known;
    if (ibp_mpi.comm_remote_group(communicator, &group)) return false;
    is_known = describe_group(group, of_all, remote);
    ibp_mpi.group_free(&group);
    return is_known;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

/* Return whether the name of an operation's new communicator is a hash of all members. */
static bool is_of_group(unsigned operation)
{
    return operation == IBP_OPERATION_Comm_create_group || operation == IBP_OPERATION_Comm_create_from_group ||
           operation == IBP_OPERATION_Intercomm_create || operation == IBP_OPERATION_Intercomm_create_from_groups;
}

static bool is_of_other_job(unsigned operation)
{
    return operation == IBP_OPERATION_Comm_spawn || operation == IBP_OPERATION_Comm_spawn_multiple ||
           operation == IBP_OPERATION_Comm_accept || operation == IBP_OPERATION_Comm_connect ||
           operation == IBP_OPERATION_Comm_join;
}

/* Return the name of a communicator created from a group (communicator_names.h). The lock must be held. */
static uint64_t name_group(const struct ibp_creation *making, const struct members *own, const struct members *remote)
{
    /* Processes of both groups of an intercommunicator compute the same sum, and so the same name. */
    const uint64_t like = ibp_sample_hash(ibp_sample_hash(NAME_OF_GROUP, making->tag), own->hash + remote->hash);
    struct ibp_named_communicator *const count = enter((ibp_handle)(like | COUNT_BIT));

    return count ? ibp_sample_hash(like, ++count->calls) : 0;
}

static uint64_t name_child(const struct ibp_creation *making, const struct members *own, const struct members *remote)
{
    const int first = remote->size && remote->first < own->first ? remote->first : own->first;

    if (!making->parent) return 0;
    return ibp_sample_hash(ibp_sample_hash(ibp_sample_hash(NAME_OF_CHILD, making->parent), making->number),
                           (uint64_t)first);
}

static void set(ibp_handle handle, uint64_t name, uint32_t size, uint32_t member, bool has_two_groups)
{
    struct ibp_named_communicator *const entry = name ? enter(handle) : NULL;

    if (!name) ibp_name_forget(handle);
    if (!entry) return;
    *entry = (struct ibp_named_communicator){
        .handle = handle,
        .name = name,
        .size = size,
        .member = member,
        .has_two_groups = has_two_groups,
    };
}

void ibp_name_made(ibp_handle made, const struct ibp_creation *making)
{
    const bool is_group = is_of_group(making->operation);
    const ibp_handle described = making->duplicated ? making->duplicated : made;
    struct members own, remote;
    bool is_known;
    uint64_t name;
    int member = 0;

    if (!names.places || ibp_mpi_is_null(made)) return;
    is_known = !is_of_other_job(making->operation) && describe_groups(described, is_group, &own, &remote) &&
               !ibp_mpi.comm_rank(described, &member);
    ibp_lock();
    name = !is_known ? 0 : is_group ? name_group(making, &own, &remote) : name_child(making, &own, &remote);
    if (is_known && remote.size && remote.first < own.first) member += remote.size;
    set(made, name, is_known ? (uint32_t)(own.size + remote.size) : 0, (uint32_t)member, is_known && remote.size);
    ibp_unlock();
}

void ibp_name_window(ibp_handle window, ibp_handle communicator, uint64_t number)
{
    const struct ibp_named_communicator *of;

    if (!names.places || ibp_mpi_is_null(window)) return;
    ibp_lock();
    of = ibp_name_find(communicator);
    if (of && !of->has_two_groups)
        set(window, ibp_sample_hash(ibp_sample_hash(NAME_OF_WINDOW, of->name), number), of->size, of->member, false);
    ibp_unlock();
}

void ibp_names_begin(void)
{
    if (!names.places) names.places = ibp_memory_map(PLACES * sizeof *names.places);
    if (!names.places || ibp_mpi.session) return;
    set(ibp_mpi.world, ibp_sample_hash(0, NAME_OF_WORLD), (uint32_t)ibp_mpi.size, (uint32_t)ibp_mpi.rank, false);
    set(ibp_mpi.self, ibp_sample_hash(ibp_sample_hash(0, NAME_OF_SELF), (uint64_t)ibp_mpi.rank), 1, 0, false);
}
