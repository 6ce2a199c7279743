/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/long_path.h"
#include "calls/arguments.h"
#include "calls/demands.h"
#include "calls/sampled_calls.h"
#include "calls/sampled_epochs.h"
#include "calls/sampled_messages.h"
#include "calls/wrapper.h"
#include "counting/calls.h"
#include "counting/communicator_contexts.h"
#include "counting/count.h"
#include "counting/envelopes.h"
#include "counting/ledger.h"
#include "counting/periodic.h"
#include "counting/repeats.h"
#include "counting/requests.h"
#include "counting/samples.h"
#include "counting/times.h"
#include "counting/wrapped_calls.h"
#include "libmpi/datatypes.h"
#include "libmpi/grids.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

struct call_in_progress {
    const struct ibp_wrapped_call *wrapped;
    void *next;
    /* Copies of the arguments. ibp_message_begin and ibp_completion_begin may replace a status argument. */
    long *arguments;
    const void *caller;
    unsigned operation, form; /* enum ibp_form */
    /* `entered_ns`: time at which a blocking collective was entered; 0 for other calls, and while no samples are taken.
     * `entered_ticks`: ticks at which the call was entered; 0 if times are not recorded. Both clocks are read before
     * the search for the call site, because the search takes long at a new site. */
    uint64_t entered_ns, entered_ticks;
};

/* Return the argument at a position; 0 if the call has no such argument. */
static inline long argument(const struct call_in_progress *making, int place)
{
    return (unsigned)place < making->wrapped->arguments ? making->arguments[place] : 0;
}

static long last_argument(const struct call_in_progress *making)
{
    return making->arguments[making->wrapped->arguments - 1];
}

static int call_next(const struct call_in_progress *making)
{
    switch (making->wrapped->arguments) {
#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        return ((int (*)(PARAMETERS_##count))making->next)(ITEMS_##count(making->arguments));
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
    default:
        return IBP_MISSING_CALL;
    }
}

/* -- the next function --------------------------------------------------------------------------------------------- */

enum { FUNCTION_NAME = 64 };

/* For each wrapper: 1 if its next function was found. */
static char is_found[IBP_OPERATIONS * IBP_FORMS];

/* Write the name of a wrapper's MPI function. */
static void name_function(unsigned operation, unsigned form, char name[static FUNCTION_NAME])
{
    static const char *const prefixes[IBP_FORMS] = {"MPI_", "PMPI_", "MPI_", "MPIX_", "PMPIX_"};

    ibp_text_copy(name, FUNCTION_NAME, prefixes[form]);
    ibp_text_append(name, FUNCTION_NAME, ibp_operation_call(operation));
    if (form == IBP_FORM_LARGE) ibp_text_append(name, FUNCTION_NAME, "_c");
}

/* Find the next function of a wrapper and store it in next[0]. In a wrapper with IBP_HAS_CHOICES, store the next
 * function in next[1] too, unless ibp_choose has set next[1]. Return NULL if the MPI library lacks the function. */
static __attribute__((noinline)) void *set_next(unsigned wrapper, void **next)
{
    void *before = __atomic_load_n(&next[0], __ATOMIC_RELAXED), *found;
    char name[FUNCTION_NAME];

    name_function(wrapper / IBP_FORMS, wrapper % IBP_FORMS, name);
    found = ibp_mpi_next(name);
    if (!found) return NULL;
    if (ibp_wrapped_calls[wrapper / IBP_FORMS].needs & IBP_HAS_CHOICES)
        __atomic_compare_exchange_n(&next[1], &before, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    __atomic_store_n(&next[0], found, __ATOMIC_RELAXED);
    __atomic_store_n(&is_found[wrapper], 1, __ATOMIC_RELEASE);
    return found;
}

static inline void *next_function(unsigned wrapper, void **next)
{
    if (IBP_UNLIKELY(!__atomic_load_n(&is_found[wrapper], __ATOMIC_ACQUIRE))) return set_next(wrapper, next);
    return __atomic_load_n(&next[0], __ATOMIC_RELAXED);
}

/* -- arguments of calls -------------------------------------------------------------------------------------------- */

/* Return the handle at an address; 0 if the address is NULL. MPI reports an error for NULL. */
static ibp_handle handle_at(long address)
{
    if (!address) return 0;
    return ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)address : *(const ibp_handle *)address;
}

/* Forget the communicator or window whose handle is at an address, because MPI may reuse the handle. */
static void forget(long address)
{
    ibp_handle handle;

    if (ibp_mpi.is_behind_layer) return;
    handle = handle_at(address);
    if (ibp_source->forget_communicator) ibp_source->forget_communicator(handle);
    ibp_lock();
    ibp_context_forget(handle);
    ibp_envelopes_forget(handle);
    ibp_name_forget(handle);
    ibp_epochs_forget(handle);
    ibp_requests_forget_communicator(handle);
    ibp_unlock();
}

static inline struct ibp_call *call_of(const struct call_in_progress *making)
{
    return IBP_LIKELY(!ibp_sites_recorded) ? &ibp_calls[making->operation]
                                           : ibp_call_find(making->operation, making->caller);
}

/* Describe the bytes that a call asks MPI to move. Sends are described only if the source cannot see which call sent a
 * message (ibp_labels_sends). */
static inline struct ibp_demanding describe(const struct call_in_progress *making, struct ibp_call *call)
{
    const struct ibp_demand_places *places = &ibp_demand_places[making->operation];
    struct ibp_demanding demanding = {.call = call, .operation = (uint16_t)making->operation, .shape = places->shape};

    if (demanding.shape == IBP_DEMAND_PEER && !ibp_labels_sends) demanding.shape = IBP_DEMAND_NONE;
    if (demanding.shape == IBP_DEMAND_NONE) return demanding;
    demanding.is_large = making->form == IBP_FORM_LARGE;
    demanding.communicator = argument(making, making->wrapped->communicator);
    demanding.items = argument(making, places->items);
    demanding.type = argument(making, places->type);
    demanding.root = argument(making, places->root);
    return demanding;
}

/* Remember a persistent request, and the bytes that each start of the request asks MPI to move. */
static void keep_request(const struct call_in_progress *making, const struct ibp_demanding *call)
{
    const bool is_demand = call->shape != IBP_DEMAND_NONE && !ibp_mpi.is_behind_layer;

    ibp_request_keep_call(
        ibp_mpi_request((void **)last_argument(making), 0), call->call,
        making->wrapped->kind == IBP_CALL_PERSISTENT ? IBP_HANDLE(argument(making, making->wrapped->communicator)) : 0,
        is_demand ? ibp_ledger_describe(call) : (struct ibp_demanded){0}, is_demand);
}

/* Return whether the counts of a nonblocking collective are 0. For MPI_Igather and MPI_Iscatter, check the counts of
 * sent and received items, because the root may set only one of the two counts. */
static bool moves_nothing(const struct call_in_progress *making, const struct ibp_demanding *call)
{
    const bool is_leaf = call->shape == IBP_DEMAND_LEAF;
    const long counts = is_leaf ? argument(making, 1) | argument(making, 4) : call->items;

    if (making->wrapped->kind != IBP_CALL_NONBLOCKING) return false;
    if (!is_leaf && call->shape != IBP_DEMAND_GROUP && call->shape != IBP_DEMAND_TREE) return false;
    return call->is_large ? !counts : !(int)counts;
}

/* Passed as the peer: the source then does not compare the call's arguments with the message. */
#define NOT_COMPARED (-1)

/* Let the source compare the arguments of a send with the message that the source sees. Calls with 64-bit counts are
 * not compared. */
static void expect(const struct call_in_progress *making)
{
    const bool is_large = making->form == IBP_FORM_LARGE;

    ibp_source->expect_message((uint64_t)(int)argument(making, 1), IBP_HANDLE(argument(making, 2)),
                               is_large ? NOT_COMPARED : (int)argument(making, 3), (int)argument(making, 4));
}

/* -- calls that become the current call ---------------------------------------------------------------------------- */

/* Do the work that the bits of ibp_call_needs require before a call. */
static __attribute__((noinline)) void prepare(const struct call_in_progress *making, const struct ibp_demanding *call)
{
    const unsigned needs = making->wrapped->needs;

    ibp_current_call.moves_nothing = moves_nothing(making, call);
    if (needs & IBP_TAKES_TAG) ibp_source->before_tag();
    if (needs & IBP_FREES) forget(making->arguments[0]);
}

/* Do the work that the bits of ibp_call_needs require after a call. */
static __attribute__((noinline)) void complete(int result, const struct call_in_progress *making,
                                               const struct ibp_demanding *call)
{
    if (result) return;
    if (making->wrapped->needs & IBP_KEEPS_REQUEST) keep_request(making, call);
    if (ibp_mpi.is_behind_layer) return;
    if (making->operation == IBP_OPERATION_Cart_create) ibp_grid_note(handle_at(last_argument(making)));
    if (making->wrapped->kind == IBP_CALL_WINDOW) ibp_counts_arguments = true;
    if (making->wrapped->needs & IBP_MAKES && ibp_source->made_object)
        ibp_source->made_object(IBP_HANDLE(argument(making, making->wrapped->communicator)));
    if (making->wrapped->kind == IBP_CALL_PERSISTENT) keep_request(making, call);
}

/* Return whether a call is entered in the ledger. A call that creates a persistent request is not entered, because each
 * start of the request is entered. */
static bool is_in_ledger(const struct call_in_progress *making, const struct ibp_demanding *call)
{
    return call->shape != IBP_DEMAND_NONE && making->wrapped->kind != IBP_CALL_PERSISTENT &&
           !(making->wrapped->needs & IBP_KEEPS_REQUEST);
}

static bool is_expected(const struct call_in_progress *making)
{
    return IBP_UNLIKELY(ibp_source_unproved) && making->wrapped->needs & (IBP_SENDS | IBP_IS_SENDRECV) &&
           !(making->wrapped->needs & IBP_KEEPS_REQUEST);
}

static struct ibp_called called_as(const struct call_in_progress *making, struct ibp_call *call,
                                   const struct ibp_demanding *demanding)
{
    return (struct ibp_called){
        .operation = making->operation,
        .call = call,
        .arguments = making->arguments,
        .count = making->wrapped->arguments,
        .communicator =
            making->wrapped->communicator < 0 ? 0 : IBP_HANDLE(argument(making, making->wrapped->communicator)),
        .demanding = demanding,
        .entered_ns = making->entered_ns,
    };
}

/* Make an outermost call the current call of this thread, and call the next function. Enter the call in the ledger:
 * before the call of the next function if ibp_ledger_add_known permits this, otherwise after the function has
 * returned. */
static __attribute__((noinline)) int enter_and_call(const struct call_in_progress *making)
{
    struct ibp_call *const of_operation = call_of(making);
    const struct ibp_demanding call = describe(making, of_operation);
    const unsigned needs = making->wrapped->needs;
    const bool is_asking = is_in_ledger(making, &call);
    const bool is_known = is_asking && ibp_get_here()->is_outside && ibp_ledger_add_known(call);
    const struct ibp_called called = called_as(making, of_operation, &call);
    struct ibp_sampled_collective sampled;
    struct ibp_sampled_message message;
    struct ibp_timing timing;
    uint64_t epoch_ns;
    int result;

    ibp_enter(of_operation, (struct ibp_current_call){
                                .kind = making->wrapped->kind,
                                .communicator = argument(making, making->wrapped->communicator),
                            });
    ibp_periodic_check();
    ibp_collective_begin(&sampled, &called);
    if (needs) prepare(making, &call);
    ibp_message_begin(&message, making->operation, of_operation, making->arguments);
    epoch_ns = ibp_epoch_begin(making->operation);
    ibp_timing_begin(&timing, of_operation, ibp_is_large(making->operation, argument(making, 1), argument(making, 2)));
    ibp_timing_extend(&timing, making->entered_ticks);
    if (is_expected(making)) expect(making);
    result = call_next(making);
    ibp_timing_end(&timing);
    ibp_collective_end(&sampled, &called, result);
    ibp_message_end(&message, making->operation, making->form == IBP_FORM_LARGE, making->arguments, result);
    if (epoch_ns && !result) ibp_epoch_end(epoch_ns, &called);
    if (needs & IBP_TAKES_TAG) ibp_source->after_tag(result);
    ibp_leave();
    if (needs) complete(result, making, &call);
    if (is_asking && IBP_UNLIKELY(result)) ibp_ledger_add_failed(of_operation);
    if (is_asking && !is_known && !result) ibp_ledger_add(&call);
    return result;
}

/* -- calls that are only passed on --------------------------------------------------------------------------------- */

/* After a call that is neither sampled nor timed, grant repetitions of the call (counting/repeats.h). Used with several
 * threads in MPI. */
static void let_repeat(const struct call_in_progress *making, struct ibp_call *call,
                       const struct ibp_sampled_message *message, uint64_t generation)
{
    const bool is_message = ibp_posts_message(making->operation);
    struct ibp_envelope *envelope = NULL;

    if (ibp_call_cached_among_threads(making->operation, making->caller) != call) return;
    if (is_message) {
        if (!ibp_items_are_known(argument(making, 2))) return;
        envelope = ibp_sampling ? message->envelope : &ibp_envelope_of_none;
        if (!envelope) return;
    } else if (!(making->wrapped->needs & IBP_IS_ONLY_TIMED) || message->places) {
        return;
    }
    ibp_repeat_grant_among_threads(making->caller,
                                   &(struct ibp_repeat){
                                       .call = call,
                                       .communicator = argument(making, 5),
                                       .type = argument(making, 2),
                                       .peer = (int)argument(making, 3),
                                       .tag = (int)argument(making, 4),
                                       .large = ibp_items_that_are_large(argument(making, 2)),
                                       .messages = envelope ? &envelope->messages : NULL,
                                   },
                                   generation);
}

/* If a call marks partitions of a send as ready (MPI_Pready), store the time for the sample of the send. */
static void note_ready(const struct call_in_progress *making)
{
    const unsigned operation = making->operation;

    if (operation == IBP_OPERATION_Pready || operation == IBP_OPERATION_Pready_range ||
        operation == IBP_OPERATION_Pready_list)
        ibp_partitions_ready((uintptr_t)IBP_HANDLE(last_argument(making)));
}

/* For each operation: true if another tool wraps the operation too. */
static bool is_wrapped[IBP_OPERATIONS];

/* Return whether another tool's wrapper makes this call, during a call of the program that ibprof times from entry to
 * return. */
static bool is_part_of_wrapped(unsigned operation)
{
    return IBP_UNLIKELY(is_wrapped[operation]) && ibp_stack_end < ibp_timed_frame();
}

/* Pass a call on without ibp_enter. Set only the context of the call or, if several threads may be in MPI,
 * ibp_current_call.call. */
static __attribute__((noinline)) int pass_on(const struct call_in_progress *making)
{
    struct ibp_call *const call = call_of(making);
    const bool completes = __atomic_load_n(&ibp_open_requests, __ATOMIC_RELAXED);
    const uint64_t generation = ibp_repeats_now();
    struct ibp_sampled_completion completion;
    struct ibp_sampled_message message;
    struct ibp_timing timing;
    int result;

    IBP_NAMES_PERSONALITY;
    if (IBP_UNLIKELY(completes)) note_ready(making);
    if (IBP_UNLIKELY(completes)) ibp_completion_begin(&completion, making->operation, making->arguments);
    ibp_message_begin(&message, making->operation, call, making->arguments);
    if (ibp_threads_multiple)
        ibp_current_call.call = call;
    else if (ibp_get_here()->is_outside)
        ibp_set_here(&call->context);
    ibp_timing_begin(&timing, call,
                     is_wrapped[making->operation] ||
                         ibp_is_large(making->operation, argument(making, 1), argument(making, 2)));
    ibp_timing_extend(&timing, making->entered_ticks);
    if (ibp_threads_multiple && !timing.time) let_repeat(making, call, &message, generation);
    result = call_next(making);
    ibp_timing_end(&timing);
    ibp_message_end(&message, making->operation, making->form == IBP_FORM_LARGE, making->arguments, result);
    if (IBP_UNLIKELY(completes)) ibp_completion_end(&completion, making->operation, call, making->arguments, result);
    return result;
}

/* -- all calls ----------------------------------------------------------------------------------------------------- */

int ibp_long_path(unsigned wrapper, void *next, const long *arguments, const void *caller)
{
    long copies[12];
    const uint64_t entered_ns =
        ibp_sampling && ibp_is_blocking_collective(wrapper / IBP_FORMS) ? ibp_clock_monotonic_ns() : 0;
    const struct call_in_progress making = {
        .wrapped = &ibp_wrapped_calls[wrapper / IBP_FORMS],
        .next = next_function(wrapper, next),
        .arguments = copies,
        .caller = caller,
        .operation = wrapper / IBP_FORMS,
        .form = wrapper % IBP_FORMS,
        .entered_ns = entered_ns,
        .entered_ticks = ibp_times_recorded ? ibp_clock_cycles() : 0,
    };
    const unsigned needs = making.wrapped->needs;

    for (unsigned i = 0; i < making.wrapped->arguments; i++) copies[i] = arguments[i];
    if (IBP_UNLIKELY(!making.next)) return IBP_MISSING_CALL;
    if (!ibp_is_active() || ibp_is_within_call() || is_part_of_wrapped(making.operation)) return call_next(&making);
    if (needs & IBP_IS_ONLY_TIMED || (needs & IBP_SENDS && !ibp_labels_sends)) return pass_on(&making);
    return enter_and_call(&making);
}

/* -- choosing ------------------------------------------------------------------------------------------------------ */

/* Return whether another tool wraps an operation too. A tool's wrapper of MPI_X calls ibprof's wrapper of PMPI_X. */
static bool is_wrapped_by_tool(unsigned operation)
{
    char name[FUNCTION_NAME];

    name_function(operation, IBP_FORM_MPI, name);
    return ibp_mpi_is_wrapped(name);
}

void ibp_choose(unsigned wrapper, void *next, const struct ibp_choices *choices)
{
    const unsigned operation = wrapper / IBP_FORMS;
    void *choice = next_function(wrapper, next);

    if (!choice) return;
    if (ibp_labels_sends && choices->label)
        choice = choices->label;
    else if (ibp_times_recorded && (ibp_operation_wanted[operation] || ibp_sampling))
        choice = (is_wrapped[operation] = is_wrapped_by_tool(operation)) ? choices->whole : choices->timed;
    else if (ibp_sites_recorded && choices->site)
        choice = ibp_threads_multiple ? choices->among_threads : choices->site;
    __atomic_store_n((void **)next + 1, choice, __ATOMIC_RELAXED);
}
