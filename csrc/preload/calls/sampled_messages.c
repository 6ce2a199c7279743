/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/sampled_messages.h"
#include "counting/communicator_names.h"
#include "counting/counters.h"
#include "counting/origins.h"
#include "counting/samples.h"
#include "counting/times.h"
#include "counting/wrapped_calls.h"
#include "libmpi/communicators.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "recording/operations.h"
#include "recording/process_state.h"

/* Positions of a call's arguments; -1 if the call has no such argument. */
struct ibp_message_places {
    int8_t count, type, to, to_tag, from, from_tag, communicator, status, request;
    bool is_persistent;
};

/* `look` is for MPI_Probe, `probe` for MPI_Mprobe, and `poll` for MPI_Improbe. MPI_Mprobe and MPI_Improbe match a
 * message; a later MPI_Mrecv receives this message without waiting for the sender. MPI_Probe matches no message. */
static const struct ibp_message_places send = {1, 2, 3, 4, -1, -1, 5, -1, -1, false},
                                       start_send = {1, 2, 3, 4, -1, -1, 5, -1, 6, false},
                                       make_send = {1, 2, 3, 4, -1, -1, 5, -1, 6, true},
                                       receive = {1, 2, -1, -1, 3, 4, 5, 6, -1, false},
                                       start_receive = {1, 2, -1, -1, 3, 4, 5, -1, 6, false},
                                       make_receive = {1, 2, -1, -1, 3, 4, 5, -1, 6, true},
                                       exchange = {1, 2, 3, 4, 8, 9, 10, 11, -1, false},
                                       exchange_replace = {1, 2, 3, 4, 5, 6, 7, 8, -1, false},
                                       start_exchange = {1, 2, 3, 4, 8, 9, 10, -1, 11, false},
                                       start_replace = {1, 2, 3, 4, 5, 6, 7, -1, 8, false},
                                       look = {-1, -1, -1, -1, 0, 1, 2, 3, -1, false},
                                       probe = {-1, -1, -1, -1, 0, 1, 2, 4, -1, false},
                                       poll = {-1, -1, -1, -1, 0, 1, 2, 5, -1, false};

static const struct ibp_message_places *const places_of[IBP_OPERATIONS + 1] = {
    [IBP_OPERATION_Send] = &send,
    [IBP_OPERATION_Bsend] = &send,
    [IBP_OPERATION_Ssend] = &send,
    [IBP_OPERATION_Rsend] = &send,
    [IBP_OPERATION_Isend] = &start_send,
    [IBP_OPERATION_Ibsend] = &start_send,
    [IBP_OPERATION_Issend] = &start_send,
    [IBP_OPERATION_Irsend] = &start_send,
    [IBP_OPERATION_Send_init] = &make_send,
    [IBP_OPERATION_Bsend_init] = &make_send,
    [IBP_OPERATION_Ssend_init] = &make_send,
    [IBP_OPERATION_Rsend_init] = &make_send,
    [IBP_OPERATION_Recv] = &receive,
    [IBP_OPERATION_Irecv] = &start_receive,
    [IBP_OPERATION_Recv_init] = &make_receive,
    [IBP_OPERATION_Sendrecv] = &exchange,
    [IBP_OPERATION_Sendrecv_replace] = &exchange_replace,
    [IBP_OPERATION_Isendrecv] = &start_exchange,
    [IBP_OPERATION_Isendrecv_replace] = &start_replace,
    [IBP_OPERATION_Probe] = &look,
    [IBP_OPERATION_Mprobe] = &probe,
    [IBP_OPERATION_Improbe] = &poll,
};

/* -- constants of each ABI ----------------------------------------------------------------------------------------- */

static int any_source(void)
{
    return ibp_mpi.abi == IBP_ABI_MPICH ? -2 : -1;
}

static int any_tag(void)
{
    return ibp_mpi.abi == IBP_ABI_STANDARD ? -2 : -1;
}

/* Return the arguments of a receive. Replace wildcards with IBP_ANY, and the source MPI_PROC_NULL with a number below
 * IBP_ANY. */
static struct ibp_posted_receive receive_of(const struct ibp_message_places *places, const long *arguments)
{
    const int source = (int)arguments[places->from], tag = (int)arguments[places->from_tag];

    return (struct ibp_posted_receive){
        .communicator = IBP_HANDLE(arguments[places->communicator]),
        .source = source == any_source() ? IBP_ANY
                  : source >= 0          ? source
                                         : IBP_ANY - 1,
        .tag = tag == any_tag() ? IBP_ANY : tag,
    };
}

bool ibp_status_is_ignored(long status)
{
    return status == 0 || status == 1;
}

static const char *status_at(const void *statuses, uint32_t index)
{
    const size_t bytes = ibp_mpi.abi == IBP_ABI_MPICH ? 20 : ibp_mpi.abi == IBP_ABI_STANDARD ? 32 : 24;

    return (const char *)statuses + index * bytes;
}

bool ibp_status_is_cancelled(const void *statuses, uint32_t index)
{
    int (*const test)(const void *, int *) = (int (*)(const void *, int *))ibp_mpi_symbol("PMPI_Test_cancelled");
    int flag = 0;

    return test && !test(status_at(statuses, index), &flag) && flag;
}

void ibp_status_read(const void *statuses, uint32_t index, int *source, int *tag)
{
    const int *const status =
        (const int *)(const void *)status_at(statuses, index) + (ibp_mpi.abi == IBP_ABI_MPICH ? 2 : 0);

    *source = status[0];
    *tag = status[1];
}

uintptr_t ibp_own_request(uintptr_t request)
{
    enum { HANDLES_OF_CONSTANTS = 4096 }; /* in the standard ABI */

    switch (ibp_mpi.abi) {
    case IBP_ABI_MPICH:
        return (uint32_t)request >> 31 ? request : 0;
    case IBP_ABI_OPENMPI:
        return request == (uintptr_t)ibp_mpi.null_request || request == (uintptr_t)ibp_mpi.empty_request ? 0 : request;
    default:
        return request < HANDLES_OF_CONSTANTS ? 0 : request;
    }
}

uint32_t ibp_call_origin_record(struct ibp_call *call)
{
    return ibp_origin_record(ibp_context_origin(&call->context, &call->context.send));
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static bool is_wanted(unsigned operation)
{
    return ibp_counting && ibp_operation_wanted[operation];
}

/* Return the size class of a message. The class is 0 for small messages (counting/times.h), and is incremented at each
 * power of 16 items. In the arguments, the datatype follows the count. */
static unsigned size_class(int place_of_count, const long *arguments)
{
    const ibp_handle type = place_of_count < 0 ? 0 : IBP_HANDLE(arguments[place_of_count + 1]);
    const unsigned items = place_of_count < 0 ? 0 : (unsigned)arguments[place_of_count];
    const bool is_small =
        items < IBP_TIMES_LARGE && (ibp_datatype_is_elementary(type) || ibp_is_small_of_derived(items, type));

    if (place_of_count < 0 || ibp_mpi.is_behind_layer || is_small) return 0;
    return 1 + ibp_size_bin(items) / 4;
}

static int place_of_received(const struct ibp_message_places *places)
{
    return places == &exchange || places == &start_exchange ? 6 : places->count;
}

static void number_send(struct ibp_sampled_message *sampled, unsigned operation, const long *arguments)
{
    const struct ibp_message_places *const places = sampled->places;
    const unsigned class = size_class(places->count, arguments);
    const int tag = (int)arguments[places->to_tag];
    const struct ibp_numbered numbered = ibp_envelope_number(IBP_HANDLE(arguments[places->communicator]),
                                                             (int)arguments[places->to], tag, IBP_SIDE_SENDER, class);

    if (!numbered.is_sampled) sampled->envelope = numbered.envelope;
    sampled->is_send_sampled = numbered.is_sampled && is_wanted(operation);
    if (sampled->is_send_sampled) ibp_message_set_number(&sampled->sent, &numbered, tag);
}

/* Assign a sequence number to a receive, or add the receive to the list of waiting receives. */
static void number_receive(struct ibp_sampled_message *sampled, unsigned operation, const long *arguments)
{
    const unsigned class = size_class(place_of_received(sampled->places), arguments);
    const struct ibp_posted_receive posted = receive_of(sampled->places, arguments);
    struct ibp_numbered numbered;

    if (posted.source < IBP_ANY && posted.tag < 0) return;
    if (posted.source >= IBP_ANY && ibp_receive_waits(&posted)) {
        sampled->received.bytes = IBP_BYTES_UNKNOWN;
        sampled->order = ibp_receive_enter(&posted, 0, &sampled->received);
        if (!sampled->order) ibp_receives_disorder(posted.communicator);
        return;
    }
    numbered = ibp_envelope_number(posted.communicator, posted.source, posted.tag, IBP_SIDE_RECEIVER, class);
    if (!numbered.is_sampled) sampled->envelope = numbered.envelope;
    sampled->is_receive_sampled = numbered.is_sampled && is_wanted(operation);
    if (sampled->is_receive_sampled) ibp_message_set_number(&sampled->received, &numbered, posted.tag);
    sampled->received.bytes = IBP_BYTES_UNKNOWN;
}

static bool is_probe(const struct ibp_message_places *places)
{
    return places == &look || places == &probe || places == &poll;
}

/* If the program passes MPI_STATUS_IGNORE, replace the argument with a status of ibprof. */
static void need_status(struct ibp_sampled_message *sampled, long *arguments)
{
    const int place = sampled->places->status;

    if (place >= 0 && ibp_status_is_ignored(arguments[place])) arguments[place] = (long)sampled->status;
}

static void note_post(struct ibp_sampled_message *sampled, const long *arguments)
{
    const struct ibp_message_places *const places = sampled->places;
    const bool is_send = places->to >= 0;
    const int peer = (int)arguments[is_send ? places->to : places->from];
    const int tag = (int)arguments[is_send ? places->to_tag : places->from_tag];

    ibp_message_post(&sampled->sent,
                     ibp_envelope_key(IBP_HANDLE(arguments[places->communicator]), peer, tag,
                                      is_send ? IBP_SIDE_SENDER : IBP_SIDE_RECEIVER),
                     sampled->enter_ns);
    sampled->received.start_ns = sampled->sent.start_ns;
    sampled->received.late_ns = sampled->sent.late_ns;
}

void ibp_message_begin(struct ibp_sampled_message *sampled, unsigned operation, struct ibp_call *call, long *arguments)
{
    const struct ibp_message_places *const places = places_of[operation];
    const ibp_handle communicator = places && ibp_sampling ? IBP_HANDLE(arguments[places->communicator]) : 0;

    sampled->places = NULL;
    if (!places || !ibp_sampling || ibp_mpi_is_null(communicator)) return;
    sampled->places = places;
    sampled->is_send_sampled = sampled->is_receive_sampled = false;
    sampled->envelope = NULL;
    sampled->order = 0;
    sampled->enter_ns = 0;
    ibp_communicator_learn(communicator);
    if (places->is_persistent) return;
    ibp_lock();
    if (places->to >= 0) number_send(sampled, operation, arguments);
    if (is_probe(places))
        need_status(sampled, arguments);
    else if (places->from >= 0)
        number_receive(sampled, operation, arguments);
    if (sampled->order) need_status(sampled, arguments);
    if (sampled->is_send_sampled || sampled->is_receive_sampled || sampled->order || is_probe(places)) {
        const uint32_t origin = ibp_call_origin_record(call);

        sampled->sent.origin = sampled->received.origin = origin;
        sampled->enter_ns = ibp_clock_monotonic_ns();
        note_post(sampled, arguments);
    }
    if (sampled->order) ibp_receive_set_known(sampled->order, &sampled->received);
    ibp_unlock();
}

/* -- ends ---------------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct ibp_message_places *places, const long *arguments, bool is_large)
{
    const int64_t items = is_large ? arguments[places->count] : (int)arguments[places->count];

    return items > 0 ? ibp_mpi_bytes((uint64_t)items, IBP_HANDLE(arguments[places->type])) : 0;
}

static uintptr_t request_of(const struct ibp_message_places *places, const long *arguments)
{
    return (uintptr_t)ibp_mpi_request((void *const *)arguments[places->request], 0);
}

/* Add the request of a message to the table of open requests. Return NULL if the table is full. */
static struct ibp_open_request *open_request(uintptr_t request, enum ibp_open_role role, unsigned operation,
                                             const struct ibp_instance_known *known)
{
    struct ibp_open_request *const former = ibp_open_request_find(request);
    struct ibp_open_request *entry;

    if (former && former->order && !former->is_completing) ibp_receives_disorder(0); /* ibprof missed its completion */
    entry = ibp_open_request_add(request);
    if (!entry) return NULL;
    entry->role = (uint8_t)role;
    entry->operation = (uint16_t)operation;
    entry->known = *known;
    return entry;
}

/* Remember the request of a nonblocking send. If the request is complete already, record the sample of the send. */
static void end_nonblocking_send(struct ibp_sampled_message *sampled, unsigned operation, uintptr_t request,
                                 uint64_t now_ns)
{
    struct ibp_open_request *entry;

    if (!ibp_own_request(request)) {
        ibp_message_keep(&sampled->sent, IBP_SIDE_SENDER,
                         &(struct ibp_completing){sampled->sent.origin, 1, sampled->enter_ns, now_ns});
        return;
    }
    entry = open_request(request, IBP_OPEN_SEND, operation, &sampled->sent);
    if (entry)
        ibp_open_request_start(entry, true);
    else
        ibp_sample_refuse(IBP_INSTANCE_MESSAGE, IBP_UNSAMPLED_FULL);
}

static void end_nonblocking_receive(struct ibp_sampled_message *sampled, unsigned operation, uintptr_t request,
                                    ibp_handle communicator)
{
    struct ibp_open_request *const entry =
        ibp_own_request(request) ? open_request(request, IBP_OPEN_RECEIVE, operation, &sampled->received) : NULL;

    if (entry) {
        entry->order = sampled->order;
        entry->communicator = communicator;
        ibp_open_request_start(entry, true);
        if (sampled->order) ibp_receive_set_request(sampled->order, request);
    } else if (sampled->order) {
        ibp_receives_disorder(communicator);
    } else {
        ibp_sample_refuse(IBP_INSTANCE_MESSAGE, IBP_UNSAMPLED_FULL);
    }
}

/* Remember the envelope of a persistent request's messages. */
static void keep_init(unsigned operation, bool is_send, struct ibp_posted_receive posted, uintptr_t request,
                      uint64_t bytes, unsigned class)
{
    const struct ibp_instance_known known = {.bytes = is_send ? bytes : IBP_BYTES_UNKNOWN};
    struct ibp_open_request *entry;

    if (posted.source < IBP_ANY || (is_send && posted.source < 0)) return;
    entry = open_request(request, is_send ? IBP_OPEN_SEND : IBP_OPEN_RECEIVE, operation, &known);
    if (entry) {
        entry->is_persistent = true;
        entry->communicator = posted.communicator;
        entry->source = posted.source;
        entry->tag = posted.tag;
        entry->class = (uint8_t)class;
    } else if (is_send) {
        ibp_envelope_stop(posted.communicator, posted.source, posted.tag, IBP_SIDE_SENDER);
    } else if (posted.source == IBP_ANY || posted.tag == IBP_ANY) {
        ibp_receives_disorder(posted.communicator);
    } else {
        ibp_envelope_stop(posted.communicator, posted.source, posted.tag, IBP_SIDE_RECEIVER);
    }
}

static void end_init(unsigned operation, const struct ibp_message_places *places, const long *arguments, uint64_t bytes)
{
    const bool is_send = places->to >= 0;
    const struct ibp_posted_receive posted =
        is_send ? (struct ibp_posted_receive){IBP_HANDLE(arguments[places->communicator]), (int)arguments[places->to],
                                              (int)arguments[places->to_tag]}
                : receive_of(places, arguments);

    keep_init(operation, is_send, posted, request_of(places, arguments), bytes, size_class(places->count, arguments));
}

void ibp_partitioned_init(unsigned operation, const struct ibp_posted_receive *posted, uintptr_t request,
                          uint64_t bytes)
{
    const bool is_send = operation == IBP_OPERATION_Psend_init;
    const enum ibp_open_role role = is_send ? IBP_OPEN_SEND : IBP_OPEN_RECEIVE;
    const struct ibp_posted_receive apart = {posted->communicator, posted->source, (int)(-2U - (unsigned)posted->tag)};
    bool is_alone;

    if (!ibp_sampling || ibp_mpi_is_null(posted->communicator)) return;
    /* Here, a negative source is MPI_PROC_NULL (-1 in MPICH, like IBP_ANY), because partitioned receives have no
     * wildcards. */
    if (posted->source < 0) return;
    ibp_communicator_learn(posted->communicator);
    ibp_lock();
    is_alone = !ibp_open_request_of(role, apart.communicator, apart.source, apart.tag);
    keep_init(operation, is_send, apart, request, bytes, 0);
    /* MPI matches partitioned requests with equal arguments in the order of their creation. A program may start
     * requests with equal arguments in another order, so ibprof stops sampling messages with these arguments. */
    if (!is_alone)
        ibp_envelope_stop(apart.communicator, apart.source, apart.tag, is_send ? IBP_SIDE_SENDER : IBP_SIDE_RECEIVER);
    ibp_unlock();
}

void ibp_partitions_ready(uintptr_t request)
{
    struct ibp_open_request *entry;

    ibp_lock();
    entry = ibp_open_request_find(request);
    if (entry && entry->is_started) entry->known.start_ns = ibp_clock_monotonic_ns();
    ibp_unlock();
}

/* Assign a sequence number to the message that a probe found. If the probe matched the message, record the sample of
 * the receive now: the later MPI_Mrecv does not wait for the sender. */
static void end_probe(struct ibp_sampled_message *sampled, unsigned operation, const long *arguments, uint64_t now_ns)
{
    const struct ibp_message_places *const places = sampled->places;
    struct ibp_posted_receive taken = receive_of(places, arguments);
    int source = taken.source, tag = taken.tag;
    const bool is_left = places == &look;
    struct ibp_numbered numbered;

    if (taken.source < IBP_ANY || (places == &poll && !*(const int *)arguments[3])) return;
    ibp_status_read((const void *)arguments[places->status], 0, &source, &tag);
    taken.source = source;
    taken.tag = tag;
    if (ibp_receive_waits(&taken)) {
        if (!is_left) ibp_receives_disorder(taken.communicator);
        return;
    }
    numbered = is_left ? ibp_envelope_peek(taken.communicator, source, tag, IBP_SIDE_RECEIVER)
                       : ibp_envelope_number(taken.communicator, source, tag, IBP_SIDE_RECEIVER, 0);
    if (!numbered.is_sampled || !is_wanted(operation)) return;
    ibp_message_set_number(&sampled->received, &numbered, tag);
    sampled->received.bytes = IBP_BYTES_UNKNOWN;
    ibp_message_keep(&sampled->received, is_left ? IBP_SIDE_WAITER : IBP_SIDE_RECEIVER,
                     &(struct ibp_completing){sampled->received.origin, 1, sampled->enter_ns, now_ns});
}

/* Record the sample of a blocking receive, or complete the receive in the list of waiting receives. */
static void end_receive(const struct ibp_sampled_message *sampled, const long *arguments,
                        const struct ibp_completing *completing)
{
    const struct ibp_message_places *const places = sampled->places;
    int source, tag;

    if (sampled->order) {
        ibp_status_read((const void *)arguments[places->status], 0, &source, &tag);
        ibp_receive_complete(sampled->order, source, tag, completing);
    } else if (sampled->is_receive_sampled) {
        ibp_message_keep(&sampled->received, IBP_SIDE_RECEIVER, completing);
    }
}

static void end_messages(struct ibp_sampled_message *sampled, unsigned operation, const long *arguments,
                         uint64_t now_ns)
{
    const struct ibp_message_places *const places = sampled->places;
    const uintptr_t request = places->request < 0 ? 0 : request_of(places, arguments);
    const bool is_sending = places->to >= 0 && (int)arguments[places->to] >= 0;
    /* If the call returned a request, the receive is not complete. */
    const bool is_receiving =
        places->from >= 0 && places->request < 0 && receive_of(places, arguments).source >= IBP_ANY;
    const struct ibp_completing completing = {
        .origin = sampled->sent.origin,
        .messages = (uint32_t)is_sending + is_receiving,
        .enter_ns = sampled->enter_ns,
        .exit_ns = now_ns,
    };

    /* MPI_Isendrecv returns one request for both messages. The completion time of the send is unknown, so record the
     * send's sample now. */
    if (sampled->is_send_sampled && places->request >= 0 && places->from < 0)
        end_nonblocking_send(sampled, operation, request, now_ns);
    else if (sampled->is_send_sampled)
        ibp_message_keep(&sampled->sent, IBP_SIDE_SENDER, &completing);
    if (places->from < 0) return;
    if (places->request < 0)
        end_receive(sampled, arguments, &completing);
    else if (sampled->order || sampled->is_receive_sampled)
        end_nonblocking_receive(sampled, operation, request, IBP_HANDLE(arguments[places->communicator]));
}

void ibp_message_end(struct ibp_sampled_message *sampled, unsigned operation, bool is_large, const long *arguments,
                     int result)
{
    const struct ibp_message_places *const places = sampled->places;
    const uint64_t now_ns = places && sampled->enter_ns ? ibp_clock_monotonic_ns() : 0;
    uint64_t bytes = 0;

    if (!places || !ibp_sampling) return;
    if (!result && (sampled->is_send_sampled || places == &make_send)) bytes = bytes_of(places, arguments, is_large);
    sampled->sent.bytes = bytes;
    ibp_lock();
    if (result && sampled->order)
        ibp_receives_disorder(IBP_HANDLE(arguments[places->communicator]));
    else if (!result && places->is_persistent)
        end_init(operation, places, arguments, bytes);
    else if (!result && is_probe(places))
        end_probe(sampled, operation, arguments, now_ns);
    else if (!result && sampled->enter_ns)
        end_messages(sampled, operation, arguments, now_ns);
    ibp_unlock();
}

void ibp_message_start(struct ibp_open_request *entry, struct ibp_call *call)
{
    const struct ibp_posted_receive posted = {entry->communicator, entry->source, entry->tag};
    const uint64_t bytes = entry->known.bytes;
    const uintptr_t request = entry->request;
    struct ibp_numbered numbered;

    /* Partitioned receives (here with tags below IBP_ANY) are numbered at once, because receives with wildcards never
     * match partitioned messages. */
    if (entry->role == IBP_OPEN_RECEIVE && entry->tag >= IBP_ANY && ibp_receive_waits(&posted)) {
        entry->known = (struct ibp_instance_known){.bytes = bytes, .origin = ibp_call_origin_record(call)};
        ibp_message_post(&entry->known, request, ibp_clock_monotonic_ns());
        entry->order = ibp_receive_enter(&posted, request, &entry->known);
        if (entry->order)
            ibp_open_request_start(entry, true);
        else
            ibp_receives_disorder(posted.communicator);
        return;
    }
    numbered = ibp_envelope_number(posted.communicator, posted.source, posted.tag,
                                   entry->role == IBP_OPEN_SEND ? IBP_SIDE_SENDER : IBP_SIDE_RECEIVER, entry->class);
    entry->envelope = entry->class ? NULL : numbered.envelope;
    if (!numbered.is_sampled || !is_wanted(entry->operation)) return;
    ibp_message_set_number(&entry->known, &numbered, posted.tag);
    entry->known.bytes = bytes;
    entry->known.origin = ibp_call_origin_record(call);
    ibp_message_post(&entry->known, request, ibp_clock_monotonic_ns());
    ibp_open_request_start(entry, true);
}
