// SPDX-License-Identifier: Apache-2.0
// A reference for waiting times without ibprof's code: a preloaded library that stores start and end of every MPI call.
//
//     LD_PRELOAD="tracer.so libibprof.so" TRACER_OUTPUT=FOLDER mpirun ... ./program
//
// All ranks of one machine read one clock (CLOCK_MONOTONIC), also in network namespaces, so no clock has to be corrected.
// Each rank keeps all calls in memory and writes FOLDER/trace.RANK at MPI_Finalize: three arrays, which traces.py reads.
// Communicators get a name that their first member chooses and broadcasts. Each call is passed to the next library, so
// that ibprof can record the same run. One thread in MPI; all processes of an intercommunicator are members.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SENT,
    RECEIVED,
    COLLECTIVE,
    PROBED
}; // what a request or a row is of; PROBED: of a message that is received later
enum { BUCKETS = 4096, WINDOWS = 256, NAME_BYTES = 32 };

struct call {
    char name[NAME_BYTES]; // without MPI_
    int64_t enter, exit; // ns
};

struct instance { // a collective's, completed in `call`
    char name[NAME_BYTES];
    uint64_t communicator;
    int64_t number, size, member, root, bytes, start, call; // root is -1 where there is none
};

struct message { // one end of a message, completed in `call`
    char name[NAME_BYTES];
    uint64_t communicator;
    int64_t side, peer, tag, bytes, post, order, call; // peer in MPI_COMM_WORLD; order: of posting
};

struct array {
    size_t used, room, item;
    char *items;
};

struct group { // a communicator
    uint64_t id; // equal on all members; 0 where unknown
    int64_t number; // of its next collective
    int size, member, *world;
};

struct request {
    uint64_t handle;
    int kind, is_persistent, is_active;
    struct group *group;
    MPI_Comm *made; // communicator of MPI_Comm_idup
    union {
        struct instance instance;
        struct message message;
    };
    struct request *next;
};

static struct array calls = {.item = sizeof(struct call)};
static struct array instances = {.item = sizeof(struct instance)};
static struct array messages = {.item = sizeof(struct message)};
static struct request *requests[BUCKETS];
static struct {
    MPI_Win window;
    struct group *group;
} windows[WINDOWS];
static int key = MPI_KEYVAL_INVALID, world_rank, world_size, is_tracing;
static int64_t posted;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *add(struct array *array, const void *item)
{
    if (array->used == array->room) {
        array->room = array->room ? 2 * array->room : 4096;
        array->items = realloc(array->items, array->room * array->item);
        if (!array->items) abort();
    }
    return memcpy(array->items + array->item * array->used++, item, array->item);
}

static void add_call(const char *name, int64_t enter, int64_t exit)
{
    struct call call = {.enter = enter, .exit = exit};
    strncpy(call.name, name, NAME_BYTES - 1);
    if (is_tracing) add(&calls, &call);
}

// -- communicators

static struct group *make_group(MPI_Comm communicator, MPI_Comm attached_to, uint64_t name)
{
    struct group *made = calloc(1, sizeof *made);
    MPI_Group all, members;
    made->id = name;
    PMPI_Comm_size(communicator, &made->size);
    PMPI_Comm_rank(communicator, &made->member);
    made->world = malloc(sizeof(int) * (size_t)made->size);
    int *ranks = malloc(sizeof(int) * (size_t)made->size);
    for (int rank = 0; rank < made->size; ++rank) ranks[rank] = rank;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_group(communicator, &members);
    PMPI_Group_translate_ranks(members, made->size, ranks, all, made->world);
    PMPI_Group_free(&all);
    PMPI_Group_free(&members);
    free(ranks);
    PMPI_Comm_set_attr(attached_to, key, made);
    return made;
}

// Collective over a new communicator: its first member chooses a name.
static void name_communicator(MPI_Comm communicator)
{
    static uint64_t chosen;
    int is_between = 0;
    if (!is_tracing || communicator == MPI_COMM_NULL) return;
    MPI_Comm all = communicator;
    PMPI_Comm_test_inter(communicator, &is_between);
    if (is_between) PMPI_Intercomm_merge(communicator, 0, &all);
    uint64_t name = ((uint64_t)(world_rank + 1) << 32) + ++chosen;
    PMPI_Bcast(&name, sizeof name, MPI_BYTE, 0, all);
    make_group(all, communicator, name);
    if (is_between) PMPI_Comm_free(&all);
}

static struct group *find_group(MPI_Comm communicator)
{
    static struct group unknown;
    struct group *found = NULL;
    int is_there = 0;
    if (is_tracing && communicator != MPI_COMM_NULL) PMPI_Comm_get_attr(communicator, key, &found, &is_there);
    return is_there ? found : &unknown;
}

// -- requests

static uint64_t handle_of(const MPI_Request *request)
{
    uint64_t handle = 0;
    memcpy(&handle, request, sizeof *request);
    return handle;
}

static struct request **bucket_of(uint64_t handle)
{
    return &requests[(handle ^ handle >> 12 ^ handle >> 24) % BUCKETS];
}

static struct request *keep_request(const MPI_Request *handle, const struct request *model)
{
    struct request *kept = malloc(sizeof *kept), **bucket;
    *kept = *model;
    kept->handle = handle_of(handle);
    bucket = bucket_of(kept->handle);
    kept->next = *bucket;
    return *bucket = kept;
}

static struct request **find_request(uint64_t handle)
{
    struct request **at = bucket_of(handle);
    // MPI may use one handle for all requests that complete at once. Then any of these requests is right.
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    return at;
}

static void finish_message(struct message message, const struct group *group, const MPI_Status *status)
{
    if (message.side == RECEIVED && status) {
        int bytes = 0;
        if (status->MPI_SOURCE < 0) return;
        if (message.tag < -1) status = NULL; // partitioned: the status has the tag of the call
        if (status) PMPI_Get_count(status, MPI_BYTE, &bytes);
        message.bytes = bytes;
        if (status) message.tag = status->MPI_TAG;
        if (status) message.peer = group->world[status->MPI_SOURCE];
    }
    message.call = (int64_t)calls.used;
    if (group->id) add(&messages, &message);
}

// Called before the waiting call is added, so calls.used is the number of the waiting call.
static void finish_request(uint64_t handle, const MPI_Status *status)
{
    struct request **at = find_request(handle), *found = *at;
    int is_cancelled = 0;
    if (!found || !found->is_active) return;
    if (status && found->kind == RECEIVED) PMPI_Test_cancelled(status, &is_cancelled);
    if (found->kind == COLLECTIVE) {
        found->instance.call = (int64_t)calls.used;
        if (found->group->id) add(&instances, &found->instance);
        // Its members may complete it at different times, so nothing can be broadcast.
        if (found->made)
            make_group(*found->made, *found->made, found->group->id * 31 + (1ULL << 60) + found->instance.number);
    } else if (!is_cancelled)
        finish_message(found->message, found->group, status);
    found->is_active = 0;
    if (found->is_persistent) return;
    *at = found->next;
    free(found);
}

static struct message make_message(const char *name, int side, MPI_Comm communicator, int peer, int tag, int64_t bytes,
                                   int64_t post)
{
    struct group *group = find_group(communicator);
    struct message made = {.communicator = group->id, .side = side, .tag = tag, .bytes = bytes, .post = post};
    strncpy(made.name, name, NAME_BYTES - 1);
    made.peer = peer >= 0 && group->id ? group->world[peer] : peer;
    made.order = ++posted;
    return made;
}

static int64_t size_of(MPI_Datatype type, int count)
{
    int size = 0;
    if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
    return (int64_t)size * count;
}

static struct instance make_instance(const char *name, struct group *group, int root, int64_t bytes, int64_t start)
{
    struct instance made = {.communicator = group->id, .number = group->number++, .size = group->size};
    strncpy(made.name, name, NAME_BYTES - 1);
    made.member = group->member, made.root = root, made.bytes = bytes, made.start = start;
    return made;
}

// -- wrappers

#define NEXT(name)                                                                                                     \
    static __typeof__(&MPI_##name) next;                                                                               \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "MPI_" #name)

// A call of which only the time is kept.
#define TIMED(name, parameters, arguments)                                                                             \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next arguments;                                                                             \
        add_call(#name, enter, now());                                                                                 \
        return result;                                                                                                 \
    }

// A blocking collective; `after` is done when it has returned.
#define COLLECTIVE_CALL(name, parameters, arguments, of_group, root, bytes, after)                                     \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        struct group *group = of_group;                                                                                \
        const int64_t enter = now();                                                                                   \
        const int result = next arguments;                                                                             \
        const int64_t exit = now();                                                                                    \
        struct instance instance = make_instance(#name, group, root, bytes, enter);                                    \
        instance.call = (int64_t)calls.used;                                                                           \
        if (is_tracing && group->id) add(&instances, &instance);                                                       \
        add_call(#name, enter, exit);                                                                                  \
        after;                                                                                                         \
        return result;                                                                                                 \
    }
#define ON_COMM(name, parameters, arguments, root, bytes)                                                              \
    COLLECTIVE_CALL(name, parameters, arguments, find_group(comm), root, bytes, )
#define MAKES_COMM(name, parameters, arguments)                                                                        \
    COLLECTIVE_CALL(name, parameters, arguments, find_group(comm), -1, 0, name_communicator(*made))

// A nonblocking collective.
#define STARTED(name, parameters, arguments, root, bytes) STARTED_WITH(name, parameters, arguments, root, bytes, NULL)
#define STARTED_WITH(name, parameters, arguments, root, bytes, made_)                                                  \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next arguments;                                                                             \
        struct request model = {.kind = COLLECTIVE, .is_active = 1, .group = find_group(comm), .made = made_};         \
        model.instance = make_instance(#name, model.group, root, bytes, enter);                                        \
        if (is_tracing) keep_request(request, &model);                                                                 \
        add_call(#name, enter, now());                                                                                 \
        return result;                                                                                                 \
    }

#define REDUCED const void *in, void *out, int count, MPI_Datatype type, MPI_Op op
#define FROM_TO const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type
#define VECTORS                                                                                                        \
    const void *in, const int counts[], const int places[], MPI_Datatype type, void *out, const int out_counts[],      \
        const int out_places[], MPI_Datatype out_type
#define BYTES size_of(type, count)

ON_COMM(Barrier, (MPI_Comm comm), (comm), -1, 0)
ON_COMM(Bcast, (void *in, int count, MPI_Datatype type, int root, MPI_Comm comm), (in, count, type, root, comm), root,
        BYTES)
ON_COMM(Allreduce, (REDUCED, MPI_Comm comm), (in, out, count, type, op, comm), -1, BYTES)
ON_COMM(Reduce, (REDUCED, int root, MPI_Comm comm), (in, out, count, type, op, root, comm), root, BYTES)
ON_COMM(Scan, (REDUCED, MPI_Comm comm), (in, out, count, type, op, comm), -1, BYTES)
ON_COMM(Exscan, (REDUCED, MPI_Comm comm), (in, out, count, type, op, comm), -1, BYTES)
ON_COMM(Reduce_scatter_block, (REDUCED, MPI_Comm comm), (in, out, count, type, op, comm), -1, BYTES)
ON_COMM(Reduce_scatter, (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, counts, type, op, comm), -1, 0)
ON_COMM(Alltoall, (FROM_TO, MPI_Comm comm), (in, count, type, out, out_count, out_type, comm), -1, BYTES)
ON_COMM(Allgather, (FROM_TO, MPI_Comm comm), (in, count, type, out, out_count, out_type, comm), -1, BYTES)
ON_COMM(Gather, (FROM_TO, int root, MPI_Comm comm), (in, count, type, out, out_count, out_type, root, comm), root,
        BYTES)
ON_COMM(Scatter, (FROM_TO, int root, MPI_Comm comm), (in, count, type, out, out_count, out_type, root, comm), root,
        size_of(out_type, out_count))
ON_COMM(Allgatherv,
        (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_places[],
         MPI_Datatype out_type, MPI_Comm comm),
        (in, count, type, out, out_counts, out_places, out_type, comm), -1, BYTES)
ON_COMM(Gatherv,
        (const void *in, int count, MPI_Datatype type, void *out, const int out_counts[], const int out_places[],
         MPI_Datatype out_type, int root, MPI_Comm comm),
        (in, count, type, out, out_counts, out_places, out_type, root, comm), root, BYTES)
ON_COMM(Scatterv,
        (const void *in, const int counts[], const int places[], MPI_Datatype type, void *out, int out_count,
         MPI_Datatype out_type, int root, MPI_Comm comm),
        (in, counts, places, type, out, out_count, out_type, root, comm), root, size_of(out_type, out_count))
ON_COMM(Alltoallv, (VECTORS, MPI_Comm comm), (in, counts, places, type, out, out_counts, out_places, out_type, comm),
        -1, 0)
ON_COMM(Alltoallw,
        (const void *in, const int counts[], const int places[], const MPI_Datatype types[], void *out,
         const int out_counts[], const int out_places[], const MPI_Datatype out_types[], MPI_Comm comm),
        (in, counts, places, types, out, out_counts, out_places, out_types, comm), -1, 0)

MAKES_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
MAKES_COMM(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
MAKES_COMM(Intercomm_merge, (MPI_Comm comm, int is_high, MPI_Comm *made), (comm, is_high, made))
MAKES_COMM(Comm_split, (MPI_Comm comm, int colour, int order, MPI_Comm *made), (comm, colour, order, made))
MAKES_COMM(Comm_split_type, (MPI_Comm comm, int kind, int order, MPI_Info info, MPI_Comm *made),
           (comm, kind, order, info, made))
MAKES_COMM(Comm_create, (MPI_Comm comm, MPI_Group members, MPI_Comm *made), (comm, members, made))
MAKES_COMM(Cart_create,
           (MPI_Comm comm, int dimensions, const int extents[], const int periodic[], int reorder, MPI_Comm *made),
           (comm, dimensions, extents, periodic, reorder, made))
MAKES_COMM(Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *made), (comm, kept, made))

// These are calls of no communicator that all callers share. The first one is the first call on the new communicator.
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group members, int tag, MPI_Comm *made)
{
    NEXT(Comm_create_group);
    const int64_t enter = now();
    const int result = next(comm, members, tag, made);
    const int64_t exit = now();
    name_communicator(*made);
    struct instance instance = make_instance("Comm_create_group", find_group(*made), -1, 0, enter);
    instance.call = (int64_t)calls.used;
    if (is_tracing && instance.communicator) add(&instances, &instance);
    add_call("Comm_create_group", enter, exit);
    return result;
}

COLLECTIVE_CALL(Intercomm_create,
                (MPI_Comm comm, int leader, MPI_Comm between, int other_leader, int tag, MPI_Comm *made),
                (comm, leader, between, other_leader, tag, made), find_group(MPI_COMM_NULL), -1, 0,
                name_communicator(*made))

STARTED_WITH(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request), -1, 0, made)
STARTED(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), -1, 0)
STARTED(Ibcast, (void *in, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
        (in, count, type, root, comm, request), root, BYTES)
STARTED(Iallreduce, (REDUCED, MPI_Comm comm, MPI_Request *request), (in, out, count, type, op, comm, request), -1,
        BYTES)
STARTED(Ireduce, (REDUCED, int root, MPI_Comm comm, MPI_Request *request),
        (in, out, count, type, op, root, comm, request), root, BYTES)
STARTED(Ialltoall, (FROM_TO, MPI_Comm comm, MPI_Request *request),
        (in, count, type, out, out_count, out_type, comm, request), -1, BYTES)
STARTED(Iallgather, (FROM_TO, MPI_Comm comm, MPI_Request *request),
        (in, count, type, out, out_count, out_type, comm, request), -1, BYTES)
STARTED(Ialltoallv, (VECTORS, MPI_Comm comm, MPI_Request *request),
        (in, counts, places, type, out, out_counts, out_places, out_type, comm, request), -1, 0)

// -- windows

static void name_window(MPI_Win window, MPI_Comm comm)
{
    static int used;
    struct group *group = find_group(comm);
    if (!group->id || used == WINDOWS) return;
    uint64_t name = ((uint64_t)(world_rank + 1) << 32) + (1U << 31) + (unsigned)used;
    PMPI_Bcast(&name, sizeof name, MPI_BYTE, 0, comm);
    struct group *made = calloc(1, sizeof *made);
    *made = *group, made->id = name, made->number = 0;
    windows[used].window = window, windows[used++].group = made;
}

static struct group *group_of_window(MPI_Win window)
{
    static struct group unknown;
    for (int each = WINDOWS - 1; each >= 0; --each)
        if (windows[each].group && windows[each].window == window) return windows[each].group;
    return &unknown;
}

COLLECTIVE_CALL(Win_create, (void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
                (base, bytes, unit, info, comm, window), find_group(comm), -1, 0, name_window(*window, comm))
COLLECTIVE_CALL(Win_allocate, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
                (bytes, unit, info, comm, base, window), find_group(comm), -1, 0, name_window(*window, comm))
COLLECTIVE_CALL(Win_fence, (int promises, MPI_Win window), (promises, window), group_of_window(window), -1, 0, )
COLLECTIVE_CALL(Win_free, (MPI_Win * window), (window), group_of_window(*window), -1, 0, )
#define ONE_SIDED int count, MPI_Datatype type, int peer, MPI_Aint place, int out_count, MPI_Datatype out_type
TIMED(Put, (const void *in, ONE_SIDED, MPI_Win window), (in, count, type, peer, place, out_count, out_type, window))
TIMED(Get, (void *in, ONE_SIDED, MPI_Win window), (in, count, type, peer, place, out_count, out_type, window))
TIMED(Accumulate, (const void *in, ONE_SIDED, MPI_Op op, MPI_Win window),
      (in, count, type, peer, place, out_count, out_type, op, window))
TIMED(Win_lock, (int kind, int rank, int promises, MPI_Win window), (kind, rank, promises, window))
TIMED(Win_unlock, (int rank, MPI_Win window), (rank, window))
TIMED(Win_lock_all, (int promises, MPI_Win window), (promises, window))
TIMED(Win_unlock_all, (MPI_Win window), (window))
TIMED(Win_flush, (int rank, MPI_Win window), (rank, window))

// If a call needs a call of a peer, the pair of calls is kept like a message. Such pairs have no late receivers.
static void add_end(const char *name, int side, const struct group *group, int peer, int tag, int64_t start)
{
    struct message end = {.communicator = group->id, .side = side, .tag = tag, .post = start, .order = ++posted};
    strncpy(end.name, name, NAME_BYTES - 1);
    end.peer = group->world[peer], end.call = (int64_t)calls.used;
    add(&messages, &end);
}

enum { POSTS, COMPLETIONS, EPOCHS };
static struct epoch {
    int count, *peers;
} epochs[WINDOWS][EPOCHS]; // exposure, access

static struct epoch *epoch_of(MPI_Win window, int which)
{
    for (int each = WINDOWS - 1; each >= 0; --each)
        if (windows[each].group && windows[each].window == window) return &epochs[each][which];
    abort();
}

static struct epoch *open_epoch(MPI_Win window, int which, MPI_Group group)
{
    struct epoch *epoch = epoch_of(window, which);
    MPI_Group all;
    PMPI_Group_size(group, &epoch->count);
    int *ranks = malloc(sizeof(int) * (size_t)(epoch->count + 1));
    for (int each = 0; each < epoch->count; ++each) ranks[each] = each;
    epoch->peers = realloc(epoch->peers, sizeof(int) * (size_t)(epoch->count + 1));
    PMPI_Win_get_group(window, &all);
    PMPI_Group_translate_ranks(group, epoch->count, ranks, all, epoch->peers);
    PMPI_Group_free(&all);
    free(ranks);
    return epoch;
}

static void add_ends(const char *name, int side, MPI_Win window, const struct epoch *epoch, int tag, int64_t start)
{
    const struct group *group = group_of_window(window);
    for (int each = 0; group->id && each < epoch->count; ++each)
        add_end(name, side, group, epoch->peers[each], tag, start);
}

#define EPOCH_CALL(name, parameters, arguments, after)                                                                 \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next arguments;                                                                             \
        const int64_t exit = now();                                                                                    \
        after;                                                                                                         \
        add_call(#name, enter, exit);                                                                                  \
        return result;                                                                                                 \
    }
EPOCH_CALL(Win_post, (MPI_Group group, int promises, MPI_Win window), (group, promises, window),
           add_ends("Win_post", SENT, window, open_epoch(window, 0, group), POSTS, enter))
EPOCH_CALL(Win_start, (MPI_Group group, int promises, MPI_Win window), (group, promises, window),
           add_ends("Win_start", PROBED, window, open_epoch(window, 1, group), POSTS, enter))
EPOCH_CALL(Win_complete, (MPI_Win window), (window),
           (add_ends("Win_complete", RECEIVED, window, epoch_of(window, 1), POSTS, enter),
            add_ends("Win_complete", SENT, window, epoch_of(window, 1), COMPLETIONS, enter)))
EPOCH_CALL(Win_wait, (MPI_Win window), (window),
           add_ends("Win_wait", RECEIVED, window, epoch_of(window, 0), COMPLETIONS, enter))

// -- neighbours

static void add_edges(const char *name, MPI_Comm comm, int64_t start)
{
    enum { TAG = 1 << 30, MOST = 1024 };
    static int from[MOST], to[MOST], weights[MOST];
    const struct group *group = find_group(comm);
    int kind, sources = 0, targets = 0, is_weighted;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        int dimensions;
        PMPI_Cartdim_get(comm, &dimensions);
        for (int each = 0; each < dimensions; ++each, sources += 2)
            PMPI_Cart_shift(comm, each, 1, &from[sources], &from[sources + 1]);
        targets = sources, memcpy(to, from, sizeof to);
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &sources, &targets, &is_weighted);
        PMPI_Dist_graph_neighbors(comm, sources, from, weights, targets, to, weights);
    } else {
        PMPI_Graph_neighbors_count(comm, group->member, &sources);
        PMPI_Graph_neighbors(comm, group->member, sources, from);
        targets = sources, memcpy(to, from, sizeof to);
    }
    for (int each = 0; group->id && each < targets; ++each)
        if (to[each] >= 0) add_end(name, SENT, group, to[each], TAG, start);
    for (int each = 0; group->id && each < sources; ++each)
        if (from[each] >= 0) add_end(name, RECEIVED, group, from[each], TAG, start);
}
#define AMONG_NEIGHBOURS(name, parameters, arguments)                                                                  \
    EPOCH_CALL(name, parameters, arguments, if (is_tracing) add_edges(#name, comm, enter))
AMONG_NEIGHBOURS(Neighbor_alltoall, (FROM_TO, MPI_Comm comm), (in, count, type, out, out_count, out_type, comm))
AMONG_NEIGHBOURS(Neighbor_allgather, (FROM_TO, MPI_Comm comm), (in, count, type, out, out_count, out_type, comm))
AMONG_NEIGHBOURS(Neighbor_alltoallv, (VECTORS, MPI_Comm comm),
                 (in, counts, places, type, out, out_counts, out_places, out_type, comm))
MAKES_COMM(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),
           (comm, nodes, index, edges, reorder, made))
MAKES_COMM(Dist_graph_create_adjacent,
           (MPI_Comm comm, int sources, const int from[], const int from_weights[], int targets, const int to[],
            const int to_weights[], MPI_Info info, int reorder, MPI_Comm *made),
           (comm, sources, from, from_weights, targets, to, to_weights, info, reorder, made))

// -- messages

#define MESSAGE void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm

#define SEND(name)                                                                                                     \
    int MPI_##name(const MESSAGE)                                                                                      \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next(data, count, type, peer, tag, comm);                                                   \
        const int64_t exit = now();                                                                                    \
        if (is_tracing && peer >= 0)                                                                                   \
            finish_message(make_message(#name, SENT, comm, peer, tag, BYTES, enter), find_group(comm), NULL);          \
        add_call(#name, enter, exit);                                                                                  \
        return result;                                                                                                 \
    }
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)

#define REQUESTED(name, qualifier, kind_, is_made_once)                                                                \
    int MPI_##name(qualifier MESSAGE, MPI_Request *request)                                                            \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next(data, count, type, peer, tag, comm, request);                                          \
        struct request model = {.kind = kind_, .is_persistent = is_made_once, .is_active = !is_made_once};             \
        model.group = find_group(comm);                                                                                \
        model.message = make_message(#name, kind_, comm, peer, tag, BYTES, enter);                                     \
        if (is_tracing && peer != MPI_PROC_NULL) keep_request(request, &model);                                        \
        add_call(#name, enter, now());                                                                                 \
        return result;                                                                                                 \
    }
REQUESTED(Isend, const, SENT, 0)
REQUESTED(Issend, const, SENT, 0)
REQUESTED(Irsend, const, SENT, 0)
REQUESTED(Ibsend, const, SENT, 0)
REQUESTED(Irecv, , RECEIVED, 0)
REQUESTED(Send_init, const, SENT, 1)
REQUESTED(Ssend_init, const, SENT, 1)
REQUESTED(Recv_init, , RECEIVED, 1)

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define PARTS int parts, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Info info
#define PARTITIONED(name, qualifier, kind_)                                                                            \
    int MPI_##name(qualifier void *data, PARTS, MPI_Request *request)                                                  \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        const int64_t enter = now();                                                                                   \
        const int result = next(data, parts, count, type, peer, tag, comm, info, request);                             \
        struct request model = {.kind = kind_, .is_persistent = 1, .group = find_group(comm)};                         \
        model.message = make_message(#name, kind_, comm, peer, -2 - tag, parts * BYTES, enter);                        \
        if (is_tracing && peer != MPI_PROC_NULL) keep_request(request, &model);                                        \
        add_call(#name, enter, now());                                                                                 \
        return result;                                                                                                 \
    }
PARTITIONED(Psend_init, const, SENT)
PARTITIONED(Precv_init, , RECEIVED)

int MPI_Allreduce_init(REDUCED, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    NEXT(Allreduce_init);
    const int64_t enter = now();
    const int result = next(in, out, count, type, op, comm, info, request);
    struct request model = {.kind = COLLECTIVE, .is_persistent = 1, .group = find_group(comm)};
    model.instance = make_instance("Allreduce_init", model.group, -1, BYTES, enter);
    if (is_tracing) keep_request(request, &model);
    add_call("Allreduce_init", enter, now());
    return result;
}

// A partitioned send starts with its last partition.
int MPI_Pready(int part, MPI_Request request)
{
    NEXT(Pready);
    const int64_t enter = now();
    struct request *found = *find_request(handle_of(&request));
    if (found) found->message.post = enter;
    const int result = next(part, request);
    add_call("Pready", enter, now());
    return result;
}
#endif

static void start_request(uint64_t handle, int64_t at)
{
    struct request *found = *find_request(handle);
    if (!found) return;
    found->is_active = 1;
    if (found->kind == COLLECTIVE)
        found->instance.start = at, found->instance.number += 1LL << 32;
    else
        found->message.post = at, found->message.order = ++posted;
}

int MPI_Start(MPI_Request *request)
{
    NEXT(Start);
    const int64_t enter = now();
    start_request(handle_of(request), enter);
    const int result = next(request);
    add_call("Start", enter, now());
    return result;
}

int MPI_Startall(int count, MPI_Request all[])
{
    NEXT(Startall);
    const int64_t enter = now();
    for (int each = 0; each < count; ++each) start_request(handle_of(&all[each]), enter);
    const int result = next(count, all);
    add_call("Startall", enter, now());
    return result;
}

int MPI_Recv(MESSAGE, MPI_Status *status)
{
    NEXT(Recv);
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    const int64_t enter = now();
    struct message message = make_message("Recv", RECEIVED, comm, peer, tag, 0, enter);
    const int result = next(data, count, type, peer, tag, comm, used);
    const int64_t exit = now();
    if (is_tracing && peer != MPI_PROC_NULL) finish_message(message, find_group(comm), used);
    add_call("Recv", enter, exit);
    return result;
}

int MPI_Probe(int peer, int tag, MPI_Comm comm, MPI_Status *status)
{
    NEXT(Probe);
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    const int64_t enter = now();
    const int result = next(peer, tag, comm, used);
    const int64_t exit = now();
    if (is_tracing && peer != MPI_PROC_NULL) {
        struct message message = make_message("Probe", RECEIVED, comm, peer, tag, 0, enter);
        finish_message(message, find_group(comm), used);
        if (find_group(comm)->id) ((struct message *)(void *)messages.items)[messages.used - 1].side = PROBED;
    }
    add_call("Probe", enter, exit);
    return result;
}

// A matched probe counts as the receive of the message, since the later receive does not wait.
int MPI_Mprobe(int peer, int tag, MPI_Comm comm, MPI_Message *taken, MPI_Status *status)
{
    NEXT(Mprobe);
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    const int64_t enter = now();
    struct message message = make_message("Mprobe", RECEIVED, comm, peer, tag, 0, enter);
    const int result = next(peer, tag, comm, taken, used);
    const int64_t exit = now();
    if (is_tracing && peer != MPI_PROC_NULL) finish_message(message, find_group(comm), used);
    add_call("Mprobe", enter, exit);
    return result;
}

TIMED(Mrecv, (void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
      (data, count, type, message, status))

#define EXCHANGE(name, parameters, arguments)                                                                          \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;                                           \
        const int64_t enter = now();                                                                                   \
        struct message sent = make_message(#name, SENT, comm, to, tag, BYTES, enter);                                  \
        struct message received = make_message(#name, RECEIVED, comm, from, from_tag, 0, enter);                       \
        const int result = next arguments;                                                                             \
        const int64_t exit = now();                                                                                    \
        if (is_tracing && to != MPI_PROC_NULL) finish_message(sent, find_group(comm), NULL);                           \
        if (is_tracing && from != MPI_PROC_NULL) finish_message(received, find_group(comm), used);                     \
        add_call(#name, enter, exit);                                                                                  \
        return result;                                                                                                 \
    }
EXCHANGE(Sendrecv,
         (const void *in, int count, MPI_Datatype type, int to, int tag, void *out, int out_count,
          MPI_Datatype out_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status),
         (in, count, type, to, tag, out, out_count, out_type, from, from_tag, comm, used))
EXCHANGE(Sendrecv_replace,
         (void *data, int count, MPI_Datatype type, int to, int tag, int from, int from_tag, MPI_Comm comm,
          MPI_Status *status),
         (data, count, type, to, tag, from, from_tag, comm, used))

// Handles and statuses of calls that complete several requests: MPI takes complete ones away.
static uint64_t *copy_handles(int count, const MPI_Request all[], MPI_Status **statuses, int is_ignored)
{
    uint64_t *handles = malloc(sizeof *handles * (size_t)(count + 1));
    for (int each = 0; each < count; ++each) handles[each] = handle_of(&all[each]);
    if (is_ignored) *statuses = malloc(sizeof **statuses * (size_t)(count + 1));
    return handles;
}

#define FINISHING(name, parameters, arguments, count, requests, statuses, is_ignored, finish)                          \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        MPI_Status *used = statuses;                                                                                   \
        const int were_ignored = is_ignored;                                                                           \
        uint64_t *handles = copy_handles(count, requests, &used, were_ignored);                                        \
        const int64_t enter = now();                                                                                   \
        const int result = next arguments;                                                                             \
        const int64_t exit = now();                                                                                    \
        if (is_tracing) {                                                                                              \
            finish;                                                                                                    \
        }                                                                                                              \
        add_call(#name, enter, exit);                                                                                  \
        if (were_ignored) free(used);                                                                                  \
        free(handles);                                                                                                 \
        return result;                                                                                                 \
    }
#define ALL(count)                                                                                                     \
    for (int each = 0; each < (count); ++each) finish_request(handles[each], &used[each])
#define SOME                                                                                                           \
    for (int each = 0; *done != MPI_UNDEFINED && each < *done; ++each) finish_request(handles[which[each]], &used[each])
#define ONE status == MPI_STATUS_IGNORE
#define EACH status == MPI_STATUSES_IGNORE
#define ANY *which != MPI_UNDEFINED
FINISHING(Wait, (MPI_Request * all, MPI_Status *status), (all, used), 1, all, status, ONE, ALL(1))
FINISHING(Test, (MPI_Request * all, int *flag, MPI_Status *status), (all, flag, used), 1, all, status, ONE,
          if (*flag) ALL(1))
FINISHING(Waitall, (int count, MPI_Request all[], MPI_Status status[]), (count, all, used), count, all, status, EACH,
          ALL(count))
FINISHING(Testall, (int count, MPI_Request all[], int *flag, MPI_Status status[]), (count, all, flag, used), count, all,
          status, EACH, if (*flag) ALL(count))
FINISHING(Waitany, (int count, MPI_Request all[], int *which, MPI_Status *status), (count, all, which, used), count,
          all, status, ONE, if (ANY) finish_request(handles[*which], used))
FINISHING(Testany, (int count, MPI_Request all[], int *which, int *flag, MPI_Status *status),
          (count, all, which, flag, used), count, all, status, ONE,
          if (*flag && ANY) finish_request(handles[*which], used))
FINISHING(Waitsome, (int count, MPI_Request all[], int *done, int which[], MPI_Status status[]),
          (count, all, done, which, used), count, all, status, EACH, SOME)
FINISHING(Testsome, (int count, MPI_Request all[], int *done, int which[], MPI_Status status[]),
          (count, all, done, which, used), count, all, status, EACH, SOME)
TIMED(Iprobe, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (peer, tag, comm, flag, status))

int MPI_Request_free(MPI_Request *request)
{
    NEXT(Request_free);
    struct request **at = find_request(handle_of(request)), *found = *at;
    if (found) *at = found->next, free(found);
    return next(request);
}

// -- beginning and end

static void begin(void)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    make_group(MPI_COMM_WORLD, MPI_COMM_WORLD, 1);
    is_tracing = 1;
}

int MPI_Init(int *argc, char ***argv)
{
    NEXT(Init);
    const int result = next(argc, argv);
    begin();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    NEXT(Init_thread);
    const int result = next(argc, argv, required, provided);
    begin();
    return result;
}

static void write_array(FILE *file, const struct array *array)
{
    const uint64_t head[2] = {array->used, array->item};
    fwrite(head, sizeof head, 1, file);
    fwrite(array->items, array->item, array->used, file);
}

int MPI_Finalize(void)
{
    NEXT(Finalize);
    const int64_t enter = now();
    char path[4096], machine[256] = "";
    const char *folder = getenv("TRACER_OUTPUT");
    is_tracing = 0;
    snprintf(path, sizeof path, "%s/trace.%d", folder ? folder : ".", world_rank);
    FILE *file = fopen(path, "wb");
    if (!file) abort();
    const uint64_t head[2] = {(uint64_t)world_size, (uint64_t)enter};
    fwrite(head, sizeof head, 1, file);
    FILE *name = fopen("/proc/sys/kernel/hostname", "r");
    if (name) {
        if (!fgets(machine, sizeof machine, name)) machine[0] = 0;
        fclose(name);
    }
    machine[strcspn(machine, "\n")] = 0;
    fwrite(machine, sizeof machine, 1, file);
    write_array(file, &calls);
    write_array(file, &instances);
    write_array(file, &messages);
    if (fclose(file)) abort();
    return next();
}
