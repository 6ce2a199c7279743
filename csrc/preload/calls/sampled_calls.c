/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/sampled_calls.h"
#include "calls/sampled_messages.h"
#include "counting/counters.h"
#include "counting/origins.h"
#include "counting/wrapped_calls.h"
#include "libmpi/communicators.h"
#include "libmpi/datatypes.h"
#include "libmpi/grids.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "recording/process_state.h"

/* -- collectives --------------------------------------------------------------------------------------------------- */

/* Return whether an operation is collective: all members of a communicator, group or window call the operation, in the
 * same order. */
static bool is_collective(unsigned operation)
{
    switch (ibp_wrapped_calls[operation].kind) {
    case IBP_CALL_COLLECTIVE:
    case IBP_CALL_NONBLOCKING:
    case IBP_CALL_DUPLICATING:
    case IBP_CALL_PERSISTENT:
    case IBP_CALL_MAKING:
    case IBP_CALL_WINDOW:
        return ibp_wrapped_calls[operation].communicator != IBP_NO_COMMUNICATOR;
    default:
        return operation == IBP_OPERATION_Comm_create_group || operation == IBP_OPERATION_Win_fence ||
               operation == IBP_OPERATION_Win_free;
    }
}

static ibp_handle read_handle(long address)
{
    if (!address) return 0;
    return ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)address : *(const ibp_handle *)address;
}

static ibp_handle called_on(const struct ibp_called *called)
{
    if (called->operation == IBP_OPERATION_Win_free) return read_handle(called->arguments[0]);
    return called->operation == IBP_OPERATION_Win_fence ? IBP_HANDLE(called->arguments[1]) : called->communicator;
}

/* Return the position of the argument that points to the new communicator; -1 if the operation creates no
 * communicator. */
static int place_of_made(unsigned operation, unsigned count)
{
    switch (operation) {
    case IBP_OPERATION_Comm_spawn:
    case IBP_OPERATION_Comm_spawn_multiple:
    case IBP_OPERATION_Comm_idup:
    case IBP_OPERATION_Comm_idup_with_info:
        return (int)count - 2;
    case IBP_OPERATION_File_open:
        return -1;
    case IBP_OPERATION_Comm_create_group:
        return (int)count - 1;
    default:
        return ibp_wrapped_calls[operation].kind == IBP_CALL_MAKING ? (int)count - 1 : -1;
    }
}

static bool is_rooted(const struct ibp_demanding *call)
{
    return call->shape == IBP_DEMAND_TREE || call->shape == IBP_DEMAND_LEAF;
}

/* Return the size class of a collective, in powers of 16 bytes; 0 if members may pass different sizes. */
static uint64_t size_class(const struct ibp_demanding *call)
{
    const int64_t items = call->is_large ? call->items : (int)call->items;

    if (call->shape != IBP_DEMAND_TREE && call->shape != IBP_DEMAND_GROUP) return 0;
    if (items <= 0 || ibp_mpi.is_behind_layer) return 1;
    return 2 + ibp_size_bin(ibp_mpi_bytes((uint64_t)items, IBP_HANDLE(call->type))) / 4;
}

bool ibp_is_blocking_collective(unsigned operation)
{
    const unsigned kind = ibp_wrapped_calls[operation].kind;

    return kind == IBP_CALL_COLLECTIVE || kind == IBP_CALL_MAKING || kind == IBP_CALL_WINDOW ||
           operation == IBP_OPERATION_Comm_create_group || operation == IBP_OPERATION_Win_fence ||
           operation == IBP_OPERATION_Win_free;
}

static bool is_wanted(unsigned operation)
{
    return ibp_counting && ibp_operation_wanted[operation];
}

/* Decide whether a collective is sampled. Set `stratum`, `keeps` and `stream_keeps`. */
static bool choose_collective(struct ibp_instance_known *known, unsigned operation, uint64_t class)
{
    const uint64_t hash = ibp_sample_hash(ibp_sample_hash(operation, class), ibp_size_bin(known->size_or_peer));

    known->stratum = (uint8_t)(hash % IBP_SAMPLE_STRATA);
    known->keeps = (uint8_t)ibp_sample_keeps(known->name, known->number);
    known->stream_keeps = UINT8_MAX;
    return known->keeps >= ibp_sample_level(IBP_INSTANCE_COLLECTIVE, known->stratum);
}

/* Assign a sequence number to a collective. The lock must be held. */
static void number_collective(struct ibp_sampled_collective *sampled, const struct ibp_called *called, uint64_t class)
{
    struct ibp_instance_known *const known = &sampled->known;
    struct ibp_named_communicator *const on = ibp_name_find(called_on(called));

    ibp_sample_count(IBP_INSTANCE_COLLECTIVE, 1);
    if (!on) {
        ibp_sample_refuse(IBP_INSTANCE_COLLECTIVE, ibp_names_are_full() ? IBP_UNSAMPLED_FULL : IBP_UNSAMPLED_NO_NAME);
        return;
    }
    known->name = on->name;
    /* MPI_Comm_create_group does not count as a collective call on the communicator, because not all members call
     * it. */
    known->number = called->operation == IBP_OPERATION_Comm_create_group ? on->calls : on->calls++;
    known->size_or_peer = on->size;
    known->member = on->member;
    if (is_rooted(called->demanding) && !on->has_two_groups) known->root_or_tag = (int32_t)called->demanding->root;
    if (ibp_wrapped_calls[called->operation].kind != IBP_CALL_PERSISTENT &&
        called->operation != IBP_OPERATION_Comm_create_group && is_wanted(called->operation))
        sampled->is_sampled = choose_collective(known, called->operation, class);
    sampled->is_timed = ibp_is_blocking_collective(called->operation) && is_wanted(called->operation);
    if (sampled->is_sampled) known->origin = ibp_call_origin_record(called->call);
}

static bool is_of_neighbours(unsigned operation)
{
    return (operation >= IBP_OPERATION_Neighbor_allgather && operation <= IBP_OPERATION_Neighbor_alltoallw) ||
           (operation >= IBP_OPERATION_Ineighbor_allgather && operation <= IBP_OPERATION_Ineighbor_alltoallw) ||
           (operation >= IBP_OPERATION_Neighbor_allgather_init && operation <= IBP_OPERATION_Neighbor_alltoallw_init);
}

/* Return a hash that identifies a persistent collective on all members. The hash also identifies the stream
 * (counting/samples.h) of all starts of this collective. */
static uint64_t name_of_persistent(const struct ibp_instance_known *known)
{
    return ibp_sample_hash(known->name, known->number + 1);
}

/* Record the processes that send to this process in neighbourhood collectives, and this process as the last source.
 * `name`: hash that identifies the communicator or the persistent collective. If ibp_graph_sources returns -1, or there
 * is no space for the records, count a collective as unsampled instead. */
static void note_sources(const struct ibp_called *called, uint64_t name)
{
    const ibp_handle communicator = called->communicator;
    int sources[IBP_SOURCES_MAX - 1];
    const int count = ibp_graph_sources(communicator, IBP_SOURCES_MAX - 1, sources);
    uint32_t peers[IBP_SOURCES_MAX];
    bool is_known = count >= 0;

    ibp_communicator_learn(communicator);
    ibp_lock();
    if (!is_known) ibp_sample_refuse(IBP_INSTANCE_COLLECTIVE, IBP_UNSAMPLED_FULL);
    for (int i = 0; i < count; i++) {
        peers[i] = ibp_communicator_peer(ibp_communicator_known(communicator), sources[i]);
        is_known = is_known && peers[i] != IBP_PEER_UNKNOWN;
    }
    if (is_known) {
        peers[count] = (uint32_t)ibp_mpi.rank;
        ibp_samples_add_sources(name, ibp_call_origin_record(called->call), peers, (uint32_t)count + 1);
    }
    ibp_unlock();
}

/* Call note_sources for a neighbourhood collective, unless the sources are recorded already. */
static void see_sources(const struct ibp_instance_known *known, const struct ibp_called *called)
{
    const bool is_persistent = ibp_wrapped_calls[called->operation].kind == IBP_CALL_PERSISTENT;
    struct ibp_named_communicator *on;
    bool is_seen = true;

    ibp_lock();
    on = ibp_name_find(called->communicator);
    if (on) {
        is_seen = !is_persistent && on->has_sources;
        if (!is_persistent) on->has_sources = true;
    }
    ibp_unlock();
    if (!is_seen) note_sources(called, is_persistent ? name_of_persistent(known) : known->name);
}

void ibp_collective_begin(struct ibp_sampled_collective *sampled, const struct ibp_called *called)
{
    uint64_t class;

    sampled->known.name = 0;
    sampled->is_sampled = sampled->is_timed = false;
    if (!ibp_sampling || !is_collective(called->operation)) return;
    sampled->known = (struct ibp_instance_known){.root_or_tag = (int32_t)IBP_NO_ROOT};
    class = size_class(called->demanding);
    ibp_lock();
    number_collective(sampled, called, class);
    ibp_unlock();
    if (IBP_UNLIKELY(is_of_neighbours(called->operation)) && sampled->known.name) see_sources(&sampled->known, called);
    if (called->entered_ns)
        sampled->known.start_ns = called->entered_ns;
    else if (sampled->is_sampled || sampled->is_timed)
        sampled->known.start_ns = ibp_clock_monotonic_ns();
}

static void fill(struct ibp_collective_sample *sample, const struct ibp_instance_known *known, uint32_t end_origin,
                 uint64_t enter_ns, uint64_t exit_ns)
{
    sample->number = known->number;
    sample->origin = known->origin;
    sample->end_origin = end_origin;
    sample->size = known->size_or_peer;
    sample->member = known->member;
    sample->root = (uint32_t)known->root_or_tag;
    sample->bytes = known->bytes;
    sample->start_ns = known->start_ns;
    sample->enter_ns = enter_ns;
    sample->exit_ns = exit_ns;
    __atomic_store_n(&sample->communicator, known->name, __ATOMIC_RELEASE);
    ibp_samples_note_clock(exit_ns);
}

/* Record the sample of a completed collective. `end_origin`: the origin of the call that completed the collective. The
 * lock must be held. */
static void keep_collective(const struct ibp_instance_known *known, uint32_t end_origin, uint64_t enter_ns,
                            uint64_t exit_ns, uint64_t score_ns)
{
    struct ibp_collective_sample *const sample =
        ibp_sample_take(IBP_INSTANCE_COLLECTIVE, known->stratum, known->keeps, known->stream_keeps);

    if (!sample) return;
    sample->score_ns = score_ns;
    fill(sample, known, end_origin, enter_ns, exit_ns);
}

/* Return the score of a blocking collective in ns: its duration or, if longer, the time from the previous collective's
 * entry to this entry. A long time between two entries may show that this process is late. */
static uint64_t score(const struct ibp_sampled_collective *sampled, uint64_t now_ns)
{
    static uint64_t last_start_ns;
    const uint64_t took_ns = now_ns - sampled->known.start_ns;
    const uint64_t before_ns = __atomic_exchange_n(&last_start_ns, sampled->known.start_ns, __ATOMIC_RELAXED);
    const int64_t late_ns = before_ns ? (int64_t)(sampled->known.start_ns - before_ns) : 0;

    return late_ns > (int64_t)took_ns ? (uint64_t)late_ns : took_ns;
}

/* Record the sample of a blocking collective, if the hash chooses the call, or if the score is one of the largest. The
 * lock must be held. */
static void keep_blocking(struct ibp_sampled_collective *sampled, const struct ibp_called *called, uint64_t now_ns,
                          uint64_t score_ns)
{
    struct ibp_instance_known *const known = &sampled->known;
    struct ibp_collective_sample *sample;

    if (sampled->is_sampled) {
        keep_collective(known, known->origin, known->start_ns, now_ns, score_ns);
        return;
    }
    known->origin = ibp_call_origin_record(called->call);
    sample = ibp_sample_take_long(IBP_INSTANCE_COLLECTIVE, score_ns);
    if (sample) fill(sample, known, known->origin, known->start_ns, now_ns);
}

/* Assign a sequence number to a call that only the members of a group make. Its stream is a hash of the operation and
 * of the new communicator's name (communicator_names.h). */
static void number_group(struct ibp_sampled_collective *sampled, const struct ibp_called *called, ibp_handle made)
{
    const struct ibp_named_communicator *of;

    ibp_lock();
    of = ibp_name_find(made);
    sampled->known.name = 0;
    if (of) {
        sampled->known.name = ibp_sample_hash(of->name, called->operation);
        sampled->known.number = 0;
        sampled->known.size_or_peer = of->size;
        sampled->known.member = of->member;
        sampled->is_sampled = is_wanted(called->operation) && choose_collective(&sampled->known, called->operation, 0);
        sampled->known.origin = ibp_call_origin_record(called->call);
    }
    ibp_unlock();
}

/* Compute the name (communicator_names.h) of the communicator that a call created. */
static void name_made(struct ibp_sampled_collective *sampled, const struct ibp_called *called)
{
    const int place = place_of_made(called->operation, called->count);
    const bool has_tag = called->operation == IBP_OPERATION_Comm_create_group;
    struct ibp_creation making = {
        .operation = called->operation,
        .parent = sampled->known.name,
        .number = sampled->known.number,
    };

    if (place < 0) return;
    if (ibp_wrapped_calls[called->operation].kind == IBP_CALL_DUPLICATING) making.duplicated = called->communicator;
    if (has_tag) making.tag = ibp_sample_hash(making.parent, (uint64_t)(int)called->arguments[2]);
    if (called->operation == IBP_OPERATION_Intercomm_create) making.tag = (uint64_t)(int)called->arguments[4];
    ibp_name_made(read_handle(called->arguments[place]), &making);
    if (has_tag && making.parent) number_group(sampled, called, read_handle(called->arguments[place]));
}

/* Return the request that a call created, from the call's last argument; 0 if the request is complete already. */
static uintptr_t made_request(const struct ibp_called *called)
{
    return ibp_own_request((uintptr_t)read_handle(called->arguments[called->count - 1]));
}

/* Add a request to the table of open requests. Return NULL if the request is 0 or the table is full. */
static struct ibp_open_request *open_request(uintptr_t request, enum ibp_open_role role, unsigned operation,
                                             const struct ibp_instance_known *known)
{
    struct ibp_open_request *const entry = ibp_open_request_add(request);

    if (!entry) return NULL;
    entry->role = (uint8_t)role;
    entry->operation = (uint16_t)operation;
    entry->known = *known;
    return entry;
}

/* Remember the request of a nonblocking collective. If the collective is complete already, record its sample. */
static void open_collective(struct ibp_sampled_collective *sampled, const struct ibp_called *called, uint64_t now_ns)
{
    const uintptr_t request = made_request(called);
    struct ibp_open_request *const entry =
        request ? open_request(request, IBP_OPEN_COLLECTIVE, called->operation, &sampled->known) : NULL;

    if (entry)
        ibp_open_request_start(entry, true);
    else if (!request)
        keep_collective(&sampled->known, sampled->known.origin, sampled->known.start_ns, now_ns, 0);
    else
        ibp_sample_refuse(IBP_INSTANCE_COLLECTIVE, IBP_UNSAMPLED_FULL);
}

/* Remember a persistent collective. Each persistent collective has a separate stream (counting/samples.h), because
 * members may start several persistent collectives in different orders. */
static void open_persistent(const struct ibp_sampled_collective *sampled, const struct ibp_called *called)
{
    struct ibp_instance_known known = sampled->known;
    struct ibp_open_request *entry;

    known.name = name_of_persistent(&known);
    known.number = 0;
    known.origin = ibp_call_origin_record(called->call);
    entry = open_request(made_request(called), IBP_OPEN_COLLECTIVE, called->operation, &known);
    if (entry) entry->is_persistent = true;
}

void ibp_collective_end(struct ibp_sampled_collective *sampled, const struct ibp_called *called, int result)
{
    const unsigned kind = ibp_wrapped_calls[called->operation].kind;
    const uint64_t now_ns = sampled->is_sampled || sampled->is_timed ? ibp_clock_monotonic_ns() : 0;
    uint64_t score_ns = 0;
    bool is_kept;

    if (!ibp_sampling || result || !is_collective(called->operation)) return;
    if (kind == IBP_CALL_MAKING || kind == IBP_CALL_DUPLICATING || kind == IBP_CALL_BLOCKING)
        name_made(sampled, called);
    if (kind == IBP_CALL_WINDOW && sampled->known.name)
        ibp_name_window(read_handle(called->arguments[called->count - 1]), called->communicator, sampled->known.number);
    if (!sampled->known.name) return;
    if (sampled->is_timed) score_ns = score(sampled, now_ns);
    is_kept = sampled->is_sampled || score_ns > ibp_long_ns[IBP_INSTANCE_COLLECTIVE];
    if (is_kept && called->demanding->shape != IBP_DEMAND_NONE && !ibp_mpi.is_behind_layer)
        sampled->known.bytes = ibp_ledger_describe(called->demanding).bytes;
    ibp_lock();
    if (kind == IBP_CALL_PERSISTENT)
        open_persistent(sampled, called);
    else if (sampled->is_sampled && (kind == IBP_CALL_NONBLOCKING || kind == IBP_CALL_DUPLICATING))
        open_collective(sampled, called, now_ns);
    else if (is_kept)
        keep_blocking(sampled, called, now_ns, score_ns);
    ibp_unlock();
}

/* -- completions --------------------------------------------------------------------------------------------------- */

/* Positions of the arguments of a call that completes requests; -1 if the call has no such argument. `count`: number of
 * requests. `completed`: number of completed requests. `indices`: indices of the completed requests. */
struct places {
    int8_t count, requests, completed, indices, flag, statuses;
};

static const struct places *places_of(unsigned operation)
{
    static const struct places wait = {-1, 0, -1, -1, -1, 1}, wait_all = {0, 1, -1, -1, -1, 2},
                               wait_any = {0, 1, -1, 2, -1, 3}, wait_some = {0, 1, 2, 3, -1, 4},
                               test = {-1, 0, -1, -1, 1, 2}, test_all = {0, 1, -1, -1, 2, 3},
                               test_any = {0, 1, -1, 2, 3, 4};

    switch (operation) {
    case IBP_OPERATION_Wait:
        return &wait;
    case IBP_OPERATION_Waitall:
        return &wait_all;
    case IBP_OPERATION_Waitany:
        return &wait_any;
    case IBP_OPERATION_Waitsome:
    case IBP_OPERATION_Testsome:
        return &wait_some;
    case IBP_OPERATION_Test:
        return &test;
    case IBP_OPERATION_Testall:
        return &test_all;
    case IBP_OPERATION_Testany:
        return &test_any;
    default:
        return NULL;
    }
}

/* If the program passes MPI_STATUSES_IGNORE, replace the argument with statuses of ibprof. Return false if memory is
 * exhausted. */
static bool need_statuses(struct ibp_sampled_completion *completion, const struct places *places, int count,
                          long *arguments)
{
    const bool is_one = places->count < 0 || places->completed < 0 ? places->indices >= 0 || places->count < 0 : false;
    const size_t bytes = (size_t)(is_one ? 1 : count) * IBP_STATUS_BYTES;

    if (!ibp_status_is_ignored(arguments[places->statuses])) return true;
    completion->statuses = bytes <= sizeof completion->few ? completion->few : ibp_memory_map(bytes);
    completion->status_bytes = bytes;
    if (!completion->statuses) return false;
    arguments[places->statuses] = (long)completion->statuses;
    return true;
}

void ibp_completion_begin(struct ibp_sampled_completion *completion, unsigned operation, long *arguments)
{
    const struct places *const places = places_of(operation);
    bool has_wildcards = false;
    void **requests;
    int count;

    completion->enter_ns = 0;
    completion->found = completion->requests = 0;
    completion->statuses = NULL;
    if (!ibp_sampling || !places) return;
    requests = (void **)arguments[places->requests];
    count = places->count < 0 ? 1 : (int)arguments[places->count];
    if (!requests) return;
    ibp_lock();
    for (int i = 0; i < count; i++) {
        const uintptr_t request = ibp_own_request((uintptr_t)ibp_mpi_request(requests, (size_t)i));
        struct ibp_open_request *const entry = ibp_open_request_find(request);

        if (request) completion->requests++;
        if (!entry || !entry->is_started || completion->found == IBP_OPEN_REQUESTS_MAX) continue;
        has_wildcards = has_wildcards || entry->order;
        entry->is_completing = true;
        completion->request[completion->found].serial = entry->serial;
        completion->request[completion->found].order = entry->order;
        completion->request[completion->found].index = (uint32_t)i;
        completion->request[completion->found++].request = request;
    }
    if (has_wildcards && !need_statuses(completion, places, count, arguments)) ibp_receives_disorder(0);
    ibp_unlock();
    if (completion->found) completion->enter_ns = ibp_clock_monotonic_ns();
}

/* Return the index of a request's status in the array of statuses; -1 if the call did not complete the request. */
static int status_of(const struct places *places, const long *arguments, uint32_t index)
{
    const int *const indices = places->indices < 0 ? NULL : (const int *)arguments[places->indices];

    if (places->flag >= 0 && !*(const int *)arguments[places->flag]) return -1;
    if (!indices) return (int)index;
    if (places->completed < 0) return *indices == (int)index ? 0 : -1;
    for (int i = 0; i < *(const int *)arguments[places->completed]; i++)
        if (indices[i] == (int)index) return i;
    return -1;
}

/* Return the number of requests that a call completed. If the call's array contains inactive persistent requests, this
 * number is an upper bound. */
static uint32_t count_completed(const struct ibp_sampled_completion *completion, const struct places *places,
                                const long *arguments)
{
    if (places->completed >= 0) return *(const uint32_t *)arguments[places->completed];
    return places->indices >= 0 ? 1 : completion->requests;
}

/* Record the sample of a completed request. Forget the request, unless it is persistent. The lock must be held. */
static void complete(struct ibp_open_request *entry, const struct ibp_completing *completing)
{
    if (entry->order)
        ;
    else if (entry->role == IBP_OPEN_COLLECTIVE)
        keep_collective(&entry->known, completing->origin, completing->enter_ns, completing->exit_ns, 0);
    else
        ibp_message_keep(&entry->known, entry->role == IBP_OPEN_SEND ? IBP_SIDE_SENDER : IBP_SIDE_RECEIVER, completing);
    entry->order = 0;
    if (entry->is_persistent)
        ibp_open_request_start(entry, false);
    else
        ibp_open_request_remove(entry);
}

/* Complete a receive in the list of waiting receives (counting/message_order.h), unless the receive is no longer in the
 * list. A cancelled receive has no message. */
static void complete_waiting(unsigned order, const void *statuses, int status, const struct ibp_completing *completing)
{
    int source, tag;

    if (ibp_receive_is_cancelling(order) && ibp_status_is_cancelled(statuses, (uint32_t)status)) {
        ibp_receive_cancel(order);
        return;
    }
    ibp_status_read(statuses, (uint32_t)status, &source, &tag);
    ibp_receive_complete(order, source, tag, completing);
}

void ibp_completion_end(struct ibp_sampled_completion *completion, unsigned operation, struct ibp_call *call,
                        const long *arguments, int result)
{
    struct ibp_completing completing = {.enter_ns = completion->enter_ns,
                                        .exit_ns = completion->enter_ns ? ibp_clock_monotonic_ns() : 0};
    const struct places *const places = places_of(operation);

    if (completion->enter_ns && ibp_sampling) {
        ibp_lock();
        completing.origin = ibp_call_origin_record(call);
        if (!result) completing.messages = count_completed(completion, places, arguments);
        for (uint32_t i = 0; i < completion->found; i++) {
            struct ibp_open_request *const found = ibp_open_request_find(completion->request[i].request);
            struct ibp_open_request *const entry =
                found && found->is_started && found->serial == completion->request[i].serial ? found : NULL;
            const int status = result ? -1 : status_of(places, arguments, completion->request[i].index);

            if (entry) entry->is_completing = false;
            if (result && entry) ibp_sampled_request_lost(entry->request);
            if (status < 0) continue;
            if (entry) complete(entry, &completing);
            if (completion->request[i].order)
                complete_waiting(completion->request[i].order, (const void *)arguments[places->statuses], status,
                                 &completing);
        }
        ibp_unlock();
    }
    if (completion->statuses && completion->statuses != (void *)completion->few)
        ibp_memory_unmap(completion->statuses, completion->status_bytes);
}

void ibp_sampled_request_lost(uintptr_t request)
{
    struct ibp_open_request *entry = ibp_open_request_find(request);

    if (!entry) return;
    if (entry->order) {
        ibp_receives_disorder(entry->communicator);
        entry = ibp_open_request_find(request);
        if (!entry) return;
    }
    if (entry->is_started)
        ibp_sample_refuse(entry->role == IBP_OPEN_COLLECTIVE ? IBP_INSTANCE_COLLECTIVE : IBP_INSTANCE_MESSAGE,
                          IBP_UNSAMPLED_UNSEEN);
    ibp_open_request_remove(entry);
}

void ibp_sampled_request_freed(uintptr_t request)
{
    if (!ibp_sampling) return;
    ibp_lock();
    ibp_sampled_request_lost(request);
    ibp_unlock();
}

void ibp_sampled_request_cancelled(uintptr_t request)
{
    const struct ibp_open_request *entry;

    if (!ibp_sampling) return;
    ibp_lock();
    entry = ibp_open_request_find(request);
    if (entry && entry->role == IBP_OPEN_RECEIVE && entry->order && ibp_mpi.abi == IBP_ABI_OPENMPI)
        ibp_receive_try_cancel(entry->order);
    else if (entry && entry->role == IBP_OPEN_RECEIVE)
        ibp_receives_disorder(entry->communicator);
    else
        ibp_envelopes_stop();
    ibp_unlock();
}

/* -- starts -------------------------------------------------------------------------------------------------------- */

/* Assign a sequence number to the start of a persistent collective. A sample of the start contains the origin of the
 * call that created the request, because this origin shows the operation. The lock must be held. */
static void start_collective(struct ibp_open_request *entry)
{
    ibp_sample_count(IBP_INSTANCE_COLLECTIVE, 1);
    entry->known.number = entry->starts++;
    if (!is_wanted(entry->operation) || !choose_collective(&entry->known, entry->operation, 0)) return;
    entry->known.start_ns = ibp_clock_monotonic_ns();
    ibp_open_request_start(entry, true);
}

static inline struct ibp_envelope *envelope_of(void *const *requests, int i)
{
    return ibp_open_request_envelope((uintptr_t)ibp_mpi_request(requests, (size_t)i));
}

bool ibp_starts_are_unsampled(void *const *requests, int count)
{
    int i;

    if (!ibp_sampling) return true;
    if (ibp_waiting_receives || !ibp_open_request_places) return false;
    for (i = 0; i < count; i++) {
        struct ibp_envelope *const envelope = envelope_of(requests, i);

        if (!envelope || envelope->messages.left <= 0) break;
        envelope->messages.left--;
    }
    if (IBP_LIKELY(i == count)) return true;
    while (i--) envelope_of(requests, i)->messages.left++;
    return false;
}

void ibp_sampled_starts(void *const *requests, int count, struct ibp_call *call)
{
    if (!ibp_sampling || !requests) return;
    ibp_lock();
    for (int i = 0; i < count; i++) {
        struct ibp_open_request *const entry = ibp_open_request_find((uintptr_t)ibp_mpi_request(requests, (size_t)i));

        if (!entry || !entry->is_persistent) continue;
        if (entry->role == IBP_OPEN_COLLECTIVE)
            start_collective(entry);
        else
            ibp_message_start(entry, call);
    }
    ibp_unlock();
}
