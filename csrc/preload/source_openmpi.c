/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Open MPI's table of point-to-point calls, `mca_pml`: all that its collectives send goes through it too.
 *
 * The table is an exported struct of function pointers. Its layout differs between versions 4 and 5 by one entry; which one
 * this is, the names of the functions in it tell.
 */
#include "system.h"
#include "communicators.h"
#include "counters.h"
#include "current.h"
#include "lifecycle.h"
#include "openmpi_requests.h"
#include "openmpi_tags.h"
#include "requests.h"
#include "source.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* -- the table -------------------------------------------------------------------------------------------------------- */

#define SLOTS_MAX 24

static const char *const slots_of_4[SLOTS_MAX] = {"add_procs", "del_procs",  "enable", "progress", "add_comm",
                                                  "del_comm",  "irecv_init", "irecv",  "recv",     "isend_init",
                                                  "isend",     "send",       "iprobe", "probe",    "start",
                                                  "improbe",   "mprobe",     "imrecv", "mrecv",    "dump"};
static const char *const slots_of_5[SLOTS_MAX] = {
    "add_procs",  "del_procs", "enable",  "progress",   "add_comm", "del_comm", "revoke_comm",
    "irecv_init", "irecv",     "recv",    "isend_init", "isend",    "send",     "iprobe",
    "probe",      "start",     "improbe", "mprobe",     "imrecv",   "mrecv",    "dump"};

typedef int send_function(const void *, size_t, ibp_handle, int, int, int, ibp_handle);
typedef int isend_function(const void *, size_t, ibp_handle, int, int, int, ibp_handle, void **);
typedef int recv_function(void *, size_t, ibp_handle, int, int, ibp_handle, struct ibp_openmpi_status *);
typedef int irecv_function(void *, size_t, ibp_handle, int, int, ibp_handle, void **);
typedef int start_function(size_t, void **);
typedef int comm_function(ibp_handle);
typedef int mprobe_function(int, int, ibp_handle, void **, struct ibp_openmpi_status *);
typedef int improbe_function(int, int, ibp_handle, int *, void **, struct ibp_openmpi_status *);
typedef int mrecv_function(void *, size_t, ibp_handle, void **, struct ibp_openmpi_status *);
typedef int imrecv_function(void *, size_t, ibp_handle, void **, void **);

static struct {
    send_function *send;
    isend_function *isend, *isend_init;
    recv_function *recv;
    irecv_function *irecv, *irecv_init;
    start_function *start;
    comm_function *add_comm, *del_comm;
    mprobe_function *mprobe;
    improbe_function *improbe;
    mrecv_function *mrecv;
    imrecv_function *imrecv;
} original;

static void **table;

/* Whether the hooks of receives are in, and whether tags of nonblocking collectives are known. */
static bool receives_seen, tags_known;

/* Messages of the probe that passed through the hooks before recording began. */
static int probes_seen;

/* -- which operation, which peer -------------------------------------------------------------------------------------- */

/* Operations by mode of a send, which is synchronous, complete, buffered, ready or standard (mca_pml_base_send_mode_t). */
#define MODES 8
#define BY_MODE(standard, synchronous, buffered, ready)                                                                \
    {synchronous,                                                                                                      \
     standard,                                                                                                         \
     buffered,                                                                                                         \
     ready,                                                                                                            \
     standard,                                                                                                         \
     IBP_OPERATION_UNATTRIBUTED,                                                                                       \
     IBP_OPERATION_UNATTRIBUTED,                                                                                       \
     IBP_OPERATION_UNATTRIBUTED}
static const uint16_t blocking_operation[MODES] =
    BY_MODE(IBP_OPERATION_Send, IBP_OPERATION_Ssend, IBP_OPERATION_Bsend, IBP_OPERATION_Rsend);
static const uint16_t nonblocking_operation[MODES] =
    BY_MODE(IBP_OPERATION_Isend, IBP_OPERATION_Issend, IBP_OPERATION_Ibsend, IBP_OPERATION_Irsend);
static const uint16_t persistent_operation[MODES] =
    BY_MODE(IBP_OPERATION_Send_init, IBP_OPERATION_Ssend_init, IBP_OPERATION_Bsend_init, IBP_OPERATION_Rsend_init);

static inline unsigned mode_operation(const uint16_t *operations, int mode)
{
    return operations[(unsigned)mode % MODES];
}

struct message {
    unsigned operation;
    enum ibp_kind kind;
    uint32_t peer;
};

/* The operation of a message that has no tag of its own; `otherwise` outside of any wrapped call. */
static unsigned untagged_operation(int tag, unsigned otherwise)
{
    const bool by_user = tag >= -1; /* MPI_ANY_TAG is -1 */

    return ibp_openmpi_starting_operation(ibp_current.operation ? ibp_current.operation
                                          : by_user             ? otherwise
                                                                : IBP_OPERATION_UNATTRIBUTED);
}

/* Finds out what a message is; `otherwise` is its operation outside of any wrapped call. */
static struct message classify(ibp_handle handle, int rank, int tag, unsigned otherwise)
{
    const bool counted = ibp_openmpi_tag_is_counted(tag);
    struct message message = {.kind = IBP_KIND_USER, .peer = (uint32_t)rank};
    struct ibp_communicator *communicator;

    if (handle == ibp_mpi.world && !counted) {
        message.operation = untagged_operation(tag, otherwise);
        return message;
    }
    ibp_lock();
    communicator = ibp_communicator_find(handle);
    message.peer = ibp_communicator_peer(communicator, rank);
    if (communicator && communicator->carries_windows) {
        message.kind = IBP_KIND_CONTROL;
        otherwise = IBP_OPERATION_UNATTRIBUTED;
    }
    message.operation =
        communicator && counted ? ibp_openmpi_tagged_operation(communicator, tag) : untagged_operation(tag, otherwise);
    ibp_unlock();
    return message;
}

/* A point-to-point call on MPI_COMM_WORLD: the common case. Outside of wrapped calls messages of nonblocking collectives are
 * sent as well, under tags of their own. */
static inline bool is_plain(ibp_handle communicator, int tag)
{
    return IBP_LIKELY(communicator == ibp_plain_world && tag >= -1);
}

/* Counts a plain message that has a counter of its own already. Small and without a call, because this is what a message
 * costs; false leaves all other cases to see_send. */
static inline bool see_plain_send(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                                  unsigned operation)
{
    struct ibp_slot *slot;
    uint64_t key, bytes;

    if (IBP_UNLIKELY(!is_plain(communicator, tag) || datatype != ibp_known_type.datatype)) return false;
    key = IBP_KEY_OF(operation, IBP_KIND_USER, IBP_DIRECTION_SENT) | ibp_counters.region_key | IBP_KEY_PEER(peer);
    slot = ibp_slot_of(key);
    if (IBP_UNLIKELY(slot->key != key)) return false;
    bytes = count * ibp_known_type.size;
    ibp_slot_add(slot, bytes);
    ibp_slot_add_size(slot, bytes);
    return true;
}

static void see_send(size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator, unsigned otherwise)
{
    struct message message;

    if (!ibp_is_active()) {
        probes_seen += communicator == ibp_mpi.self && tag == IBP_PROBE_TAG && count == IBP_PROBE_BYTES;
        return;
    }
    message = classify(communicator, peer, tag, otherwise);
    if (!ibp_operation_wanted[message.operation]) return;
    ibp_count(message.operation, message.kind, IBP_DIRECTION_SENT, message.peer, ibp_mpi_bytes(count, datatype));
}

/* What a posted receive is counted under when it completes; UNWANTED when it is not. */
static unsigned receive_operation(ibp_handle communicator, int tag)
{
    unsigned operation = IBP_OPERATION_UNWANTED;

    if (ibp_is_active()) operation = classify(communicator, 0, tag, IBP_OPERATION_Recv).operation;
    return ibp_operation_wanted[operation] ? operation : IBP_OPERATION_UNWANTED;
}

/* -- sends ------------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) int send_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                int tag, int mode, ibp_handle communicator)
{
    see_send(count, datatype, peer, tag, communicator, mode_operation(blocking_operation, mode));
    return original.send(buffer, count, datatype, peer, tag, mode, communicator);
}

static int hook_send(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                     ibp_handle communicator)
{
    if (see_plain_send(count, datatype, peer, tag, communicator, mode_operation(blocking_operation, mode)))
        return original.send(buffer, count, datatype, peer, tag, mode, communicator);
    return send_other(buffer, count, datatype, peer, tag, mode, communicator);
}

static __attribute__((noinline)) int isend_other(const void *buffer, size_t count, ibp_handle datatype, int peer,
                                                 int tag, int mode, ibp_handle communicator, void **request)
{
    see_send(count, datatype, peer, tag, communicator, mode_operation(nonblocking_operation, mode));
    return original.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
}

static int hook_isend(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                      ibp_handle communicator, void **request)
{
    if (see_plain_send(count, datatype, peer, tag, communicator, mode_operation(nonblocking_operation, mode)))
        return original.isend(buffer, count, datatype, peer, tag, mode, communicator, request);
    return isend_other(buffer, count, datatype, peer, tag, mode, communicator, request);
}

static int hook_isend_init(const void *buffer, size_t count, ibp_handle datatype, int peer, int tag, int mode,
                           ibp_handle communicator, void **request)
{
    const int result = original.isend_init(buffer, count, datatype, peer, tag, mode, communicator, request);

    if (!result && ibp_is_active()) {
        const struct message message = classify(communicator, peer, tag, mode_operation(persistent_operation, mode));

        ibp_lock();
        ibp_request_remember(&(struct ibp_request){
            .address = *request,
            .role = IBP_REQUEST_SEND,
            .operation = (uint16_t)(ibp_counting ? message.operation : mode_operation(persistent_operation, mode)),
            .kind = (uint8_t)message.kind,
            .peer = message.peer,
            .bytes = ibp_mpi_bytes(count, datatype),
        });
        ibp_unlock();
    }
    return result;
}

/* -- receives --------------------------------------------------------------------------------------------------------- */

static int hook_recv(void *buffer, size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                     struct ibp_openmpi_status *status)
{
    const unsigned operation = receive_operation(communicator, tag);
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    result = original.recv(buffer, count, datatype, peer, tag, communicator, status);
    if (!result && operation != IBP_OPERATION_UNWANTED) ibp_openmpi_count_received(communicator, status, operation);
    return result;
}

static __attribute__((noinline)) int irecv_other(void *buffer, size_t count, ibp_handle datatype, int peer, int tag,
                                                 ibp_handle communicator, void **request)
{
    const unsigned operation = receive_operation(communicator, tag);
    const int result = original.irecv(buffer, count, datatype, peer, tag, communicator, request);

    if (!result && operation != IBP_OPERATION_UNWANTED)
        ibp_openmpi_request_watch(*request, IBP_WATCH(communicator, operation));
    return result;
}

static int hook_irecv(void *buffer, size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                      void **request)
{
    int result;

    if (!is_plain(communicator, tag) || !ibp_operation_wanted[IBP_OPERATION_Recv])
        return irecv_other(buffer, count, datatype, peer, tag, communicator, request);
    result = original.irecv(buffer, count, datatype, peer, tag, communicator, request);
    if (IBP_UNLIKELY(result)) return result;
    ibp_openmpi_request_watch_alone(*request, IBP_WATCH(ibp_mpi.world, IBP_OPERATION_Recv));
    return 0;
}

static int hook_irecv_init(void *buffer, size_t count, ibp_handle datatype, int peer, int tag, ibp_handle communicator,
                           void **request)
{
    const int result = original.irecv_init(buffer, count, datatype, peer, tag, communicator, request);

    if (!result && ibp_is_active()) {
        ibp_lock();
        ibp_communicator_find(communicator);
        ibp_request_remember(&(struct ibp_request){
            .address = *request,
            .role = IBP_REQUEST_RECEIVE,
            .operation = ibp_current.operation ? ibp_current.operation : IBP_OPERATION_Recv_init,
            .communicator = communicator,
        });
        ibp_unlock();
    }
    return result;
}

/* A matched message keeps its communicator to itself, so it is remembered from the probe that matched it. */
static void remember_message(void *message, ibp_handle communicator)
{
    if (!ibp_is_active()) return;
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = message,
        .role = IBP_REQUEST_MESSAGE,
        .communicator = communicator,
    });
    ibp_unlock();
}

static int hook_mprobe(int peer, int tag, ibp_handle communicator, void **message, struct ibp_openmpi_status *status)
{
    const int result = original.mprobe(peer, tag, communicator, message, status);

    if (!result) remember_message(*message, communicator);
    return result;
}

static int hook_improbe(int peer, int tag, ibp_handle communicator, int *matched, void **message,
                        struct ibp_openmpi_status *status)
{
    const int result = original.improbe(peer, tag, communicator, matched, message, status);

    if (!result && *matched) remember_message(*message, communicator);
    return result;
}

/* The communicator of a matched message that is about to be received; 0 when it is not known. */
static ibp_handle take_message(void *message)
{
    const struct ibp_request *matched;
    ibp_handle communicator = 0;

    if (!ibp_is_active()) return 0;
    ibp_lock();
    matched = ibp_request_find(message);
    if (matched && matched->role == IBP_REQUEST_MESSAGE) communicator = matched->communicator;
    ibp_request_forget(message);
    ibp_unlock();
    return communicator;
}

static int hook_mrecv(void *buffer, size_t count, ibp_handle datatype, void **message,
                      struct ibp_openmpi_status *status)
{
    const ibp_handle communicator = take_message(*message);
    const unsigned operation = communicator ? receive_operation(communicator, 0) : IBP_OPERATION_UNWANTED;
    struct ibp_openmpi_status own = {0};
    int result;

    if (!status) status = &own;
    result = original.mrecv(buffer, count, datatype, message, status);
    if (!result && operation != IBP_OPERATION_UNWANTED) ibp_openmpi_count_received(communicator, status, operation);
    return result;
}

static int hook_imrecv(void *buffer, size_t count, ibp_handle datatype, void **message, void **request)
{
    const ibp_handle communicator = take_message(*message);
    const unsigned operation = communicator ? receive_operation(communicator, 0) : IBP_OPERATION_UNWANTED;
    const int result = original.imrecv(buffer, count, datatype, message, request);

    if (!result && operation != IBP_OPERATION_UNWANTED)
        ibp_openmpi_request_watch(*request, IBP_WATCH(communicator, operation));
    return result;
}

/* -- persistent requests ---------------------------------------------------------------------------------------------- */

/* Counts a persistent request that is about to be started: what it sends now, what it receives when it is complete. */
static void count_start(void *address)
{
    const struct ibp_request *known;
    struct ibp_request request = {0};
    unsigned operation;

    ibp_lock();
    known = ibp_request_find(address);
    if (known) request = *known;
    ibp_unlock();
    if (request.role != IBP_REQUEST_SEND && request.role != IBP_REQUEST_RECEIVE) return;
    operation = ibp_openmpi_starting_operation(ibp_current.operation ? ibp_current.operation : request.operation);
    if (!ibp_operation_wanted[operation]) return;
    if (request.role == IBP_REQUEST_SEND)
        ibp_count(operation, (enum ibp_kind)request.kind, IBP_DIRECTION_SENT, request.peer, request.bytes);
    else
        ibp_openmpi_request_watch_next(address, IBP_WATCH(request.communicator, operation));
}

static void before_start(size_t count, void **requests)
{
    for (size_t i = 0; i < count; i++) count_start(requests[i]);
}

/* Open MPI puts another request in the place of one that it is not done with. */
static void after_start(size_t count, void **requests, void *const *before)
{
    for (size_t i = 0; i < count; i++) {
        const struct ibp_request *known;
        struct ibp_request request;

        if (requests[i] == before[i]) continue;
        ibp_lock();
        known = ibp_request_find(before[i]);
        if (known) {
            request = *known;
            request.address = requests[i];
            ibp_request_forget(before[i]);
            ibp_request_remember(&request);
        }
        ibp_unlock();
    }
}

/* The collectives' way to start requests; the application's MPI_Start comes by mpi_requests.c. */
static int hook_start(size_t count, void **requests)
{
    enum { AT_ONCE = 64 };
    int result = 0;

    if (!ibp_is_active() || ibp_current.starts_request) return original.start(count, requests);
    for (size_t done = 0; done < count && !result; done += AT_ONCE) {
        const size_t some = count - done < AT_ONCE ? count - done : AT_ONCE;
        void *before[AT_ONCE];

        memcpy(before, requests + done, some * sizeof *before);
        before_start(some, requests + done);
        result = original.start(some, requests + done);
        if (!result) after_start(some, requests + done, before);
    }
    return result;
}

static void forget_request(void *request)
{
    ibp_lock();
    ibp_request_forget(request);
    ibp_unlock();
}

static void remember_send(void *request, ibp_handle communicator, int peer, uint64_t bytes, unsigned operation)
{
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = request,
        .role = IBP_REQUEST_SEND,
        .operation = (uint16_t)operation,
        .kind = IBP_KIND_USER,
        .peer = ibp_communicator_peer(ibp_communicator_find(communicator), peer),
        .bytes = bytes,
    });
    ibp_unlock();
}

static void remember_operation(void *request, unsigned operation)
{
    ibp_lock();
    ibp_request_remember(&(struct ibp_request){
        .address = request,
        .role = IBP_REQUEST_COLLECTIVE,
        .operation = (uint16_t)operation,
    });
    ibp_unlock();
}

static unsigned operation_of(void *request)
{
    const struct ibp_request *known;
    unsigned operation = IBP_OPERATION_NONE;

    ibp_lock();
    known = ibp_request_find(request);
    if (known && known->role == IBP_REQUEST_COLLECTIVE) operation = known->operation;
    ibp_unlock();
    return operation;
}

/* -- communicators ---------------------------------------------------------------------------------------------------- */

static int hook_add_comm(ibp_handle communicator)
{
    ibp_lock();
    ibp_communicator_forget(communicator);
    if (ibp_current.operation && ibp_current.kind == IBP_CALL_WINDOW) ibp_communicator_note_carrier(communicator);
    ibp_unlock();
    return original.add_comm(communicator);
}

static int hook_del_comm(ibp_handle communicator)
{
    ibp_lock();
    ibp_communicator_forget(communicator);
    ibp_unlock();
    return original.del_comm(communicator);
}

/* -- hooking in ------------------------------------------------------------------------------------------------------- */

static const struct hook {
    const char *slot;
    void *function;
    void *into;
    bool receives; /* it needs the layout of requests */
} hooks[] = {
    {"send", (void *)hook_send, &original.send, false},
    {"isend", (void *)hook_isend, &original.isend, false},
    {"isend_init", (void *)hook_isend_init, &original.isend_init, false},
    {"start", (void *)hook_start, &original.start, false},
    {"add_comm", (void *)hook_add_comm, &original.add_comm, false},
    {"del_comm", (void *)hook_del_comm, &original.del_comm, false},
    {"recv", (void *)hook_recv, &original.recv, true},
    {"irecv", (void *)hook_irecv, &original.irecv, true},
    {"irecv_init", (void *)hook_irecv_init, &original.irecv_init, true},
    {"mprobe", (void *)hook_mprobe, &original.mprobe, true},
    {"improbe", (void *)hook_improbe, &original.improbe, true},
    {"mrecv", (void *)hook_mrecv, &original.mrecv, true},
    {"imrecv", (void *)hook_imrecv, &original.imrecv, true},
};
#define HOOKS (sizeof hooks / sizeof *hooks)

/* Which slot a function's name ends with, as in mca_pml_ob1_isend; NULL for none. */
static const char *slot_named(const char *symbol)
{
    for (size_t i = 0; i < SLOTS_MAX && slots_of_5[i]; i++) {
        const size_t name = strlen(slots_of_5[i]), length = strlen(symbol);

        if (length > name && symbol[length - name - 1] == '_' && !strcmp(symbol + length - name, slots_of_5[i]))
            return slots_of_5[i];
    }
    return NULL;
}

/* How many functions of the table have the names that a layout gives them; -1 when one has another slot's. */
static int confirm_layout(const char *const *slots)
{
    int confirmed = 0;

    for (size_t i = 0; i < SLOTS_MAX && slots[i]; i++) {
        const char *named;
        Dl_info function;

        if (!table[i] || !dladdr(table[i], &function) || !function.dli_sname || function.dli_saddr != table[i])
            continue;
        named = slot_named(function.dli_sname);
        if (!named) continue;
        if (strcmp(named, slots[i])) return -1;
        confirmed++;
    }
    return confirmed;
}

/* Some of Open MPI's modules keep most functions to themselves; then its version has to decide between the layouts. */
static const char *const *find_layout(void)
{
    const int as_4 = confirm_layout(slots_of_4), as_5 = confirm_layout(slots_of_5);

    ibp_log(3, "mca_pml: %d functions confirm the layout of Open MPI 4, %d that of 5", as_4, as_5);
    if (as_4 < 3 && as_5 < 3) return NULL;
    if (as_4 != as_5) return as_4 > as_5 ? slots_of_4 : slots_of_5;
    if (strstr(ibp_mpi.version, "v4.")) return slots_of_4;
    return strstr(ibp_mpi.version, "v5.") ? slots_of_5 : NULL;
}

static void hook_slots(const char *const *slots, bool receives)
{
    for (size_t i = 0; i < SLOTS_MAX && slots[i]; i++)
        for (size_t hook = 0; hook < HOOKS; hook++)
            if (table[i] && hooks[hook].receives == receives && !strcmp(slots[i], hooks[hook].slot)) {
                memcpy(hooks[hook].into, &table[i], sizeof table[i]);
                table[i] = hooks[hook].function;
            }
}

static void detach(void)
{
    for (size_t i = 0; table && i < SLOTS_MAX; i++)
        for (size_t hook = 0; hook < HOOKS; hook++)
            if (table[i] == hooks[hook].function) memcpy(&table[i], hooks[hook].into, sizeof table[i]);
}

static int attach(char *why, size_t why_bytes)
{
    const char *const *slots;

    table = ibp_mpi_symbol("mca_pml");
    if (!table) {
        snprintf(why, why_bytes, "this Open MPI (%s) does not show its table of point-to-point calls", ibp_mpi.version);
        return -1;
    }
    slots = find_layout();
    if (!slots) {
        snprintf(why, why_bytes, "the table of point-to-point calls of this Open MPI (%s) has an unknown layout",
                 ibp_mpi.version);
        return -1;
    }
    hook_slots(slots, false);
    probes_seen = 0;
    receives_seen = ibp_openmpi_requests_probe();
    if (probes_seen != IBP_PROBE_MESSAGES) {
        detach();
        snprintf(why, why_bytes, "a message to itself was seen %d times, not %d, in this Open MPI (%s)", probes_seen,
                 IBP_PROBE_MESSAGES, ibp_mpi.version);
        return -1;
    }
    if (receives_seen) hook_slots(slots, true);
    tags_known = ibp_openmpi_tags_probe();
    return 0;
}

static void describe_gaps(char *notes, size_t bytes)
{
    const uint64_t missed = ibp_openmpi_requests_missed();
    char note[128];

    if (!receives_seen) ibp_text_append(notes, bytes, "received bytes cannot be seen in this build of Open MPI\n");
    if (!tags_known)
        ibp_text_append(notes, bytes,
                        "operations of nonblocking collectives cannot be told in this build of Open MPI\n");
    if (missed) {
        snprintf(note, sizeof note, "%llu receives were not seen to end\n", (unsigned long long)missed);
        ibp_text_append(notes, bytes, note);
    }
}

const struct ibp_source_operations ibp_source_openmpi = {
    .source = IBP_SOURCE_OPENMPI,
    .name = "openmpi",
    .attach = attach,
    .detach = detach,
    .describe_gaps = describe_gaps,
    .before_tag = ibp_openmpi_before_tag,
    .after_tag = ibp_openmpi_after_tag,
    .before_start = before_start,
    .after_start = after_start,
    .forget_request = forget_request,
    .remember_send = remember_send,
    .remember_operation = remember_operation,
    .operation_of = operation_of,
};
