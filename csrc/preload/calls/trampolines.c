/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each wrapper is exported under its MPI_ and its PMPI_ name. C programs, and tools loaded earlier, call the first.
 * Fortran bindings of Open MPI, and programs that define MPI functions themselves, call the second. The outermost call
 * sets the operation. Arguments are passed on without being read: in Linux calling conventions an integer or a pointer
 * takes one register or one slot of the stack.
 */
#include "platform/system.h"
#include "calls/demands.h"
#include "calls/trampolines.h"
#include "calls/wrapper.h"
#include "counting/calls.h"
#include "counting/communicator_contexts.h"
#include "counting/current_call.h"
#include "counting/ledger.h"
#include "counting/periodic.h"
#include "counting/requests.h"
#include "counting/times.h"
#include "libmpi/grids.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define NO_COMMUNICATOR (-1)

#define PARAMETERS_1 long a0
#define PARAMETERS_2 PARAMETERS_1, long a1
#define PARAMETERS_3 PARAMETERS_2, long a2
#define PARAMETERS_4 PARAMETERS_3, long a3
#define PARAMETERS_5 PARAMETERS_4, long a4
#define PARAMETERS_6 PARAMETERS_5, long a5
#define PARAMETERS_7 PARAMETERS_6, long a6
#define PARAMETERS_8 PARAMETERS_7, long a7
#define PARAMETERS_9 PARAMETERS_8, long a8
#define PARAMETERS_10 PARAMETERS_9, long a9
#define PARAMETERS_11 PARAMETERS_10, long a10
#define PARAMETERS_12 PARAMETERS_11, long a11

#define ARGUMENTS_1 a0
#define ARGUMENTS_2 ARGUMENTS_1, a1
#define ARGUMENTS_3 ARGUMENTS_2, a2
#define ARGUMENTS_4 ARGUMENTS_3, a3
#define ARGUMENTS_5 ARGUMENTS_4, a4
#define ARGUMENTS_6 ARGUMENTS_5, a5
#define ARGUMENTS_7 ARGUMENTS_6, a6
#define ARGUMENTS_8 ARGUMENTS_7, a7
#define ARGUMENTS_9 ARGUMENTS_8, a8
#define ARGUMENTS_10 ARGUMENTS_9, a9
#define ARGUMENTS_11 ARGUMENTS_10, a10
#define ARGUMENTS_12 ARGUMENTS_11, a11

/* Return whether calls of a kind take an internal tag: those that start something which sends after they return. */
static inline bool takes_tag(enum ibp_call_kind kind)
{
    return kind == IBP_CALL_NONBLOCKING || kind == IBP_CALL_DUPLICATING || kind == IBP_CALL_PERSISTENT;
}

/* Return the handle at an address; 0 where a program passes none, which MPI reports. */
static ibp_handle handle_at(long address)
{
    if (!address) return 0;
    return ibp_mpi.abi == IBP_ABI_MPICH ? *(const int *)address : *(const ibp_handle *)address;
}

/* Forget a communicator or window: its handle may be reused. */
static void forget(long address)
{
    ibp_handle handle;

    if (ibp_mpi.is_behind_layer) return;
    handle = handle_at(address);
    ibp_lock();
    ibp_context_forget(handle);
    ibp_unlock();
    if (ibp_source->forget_communicator) ibp_source->forget_communicator(handle);
}

/* Remember a persistent request, and what each of its starts asks for. */
static void keep_request(long request, const struct ibp_demanding *call)
{
    const bool is_demand = call->shape != IBP_DEMAND_NONE && !ibp_mpi.is_behind_layer;

    ibp_request_keep_operation(ibp_mpi_request((void **)request, 0), call->operation,
                               is_demand ? ibp_ledger_describe(call) : (struct ibp_demanded){0}, is_demand);
}

/* Return whether a call asks to move no items. The two counts are those at the places of MPI_Gather and MPI_Scatter, of
 * which a root may pass only one. */
static bool moves_nothing(const struct ibp_demanding *call, long first_count, long second_count)
{
    const bool is_leaf = call->shape == IBP_DEMAND_LEAF;
    const long counts = is_leaf ? first_count | second_count : call->items;

    if (!is_leaf && call->shape != IBP_DEMAND_GROUP && call->shape != IBP_DEMAND_TREE) return false;
    return call->is_large ? !counts : !(int)counts;
}

/* The following are not inline: repeated in four hundred wrappers they would be most of the library. */
static __attribute__((noinline)) void prepare(enum ibp_call_kind kind, long first_argument)
{
    if (takes_tag(kind)) ibp_source->before_tag();
    if (kind == IBP_CALL_FREEING) forget(first_argument);
}

static __attribute__((noinline)) void leave_with_request(int result, enum ibp_call_kind kind, long last_argument,
                                                         const struct ibp_demanding *call)
{
    ibp_source->after_tag(result == 0);
    ibp_leave();
    if (kind == IBP_CALL_PERSISTENT && !result && !ibp_mpi.is_behind_layer) keep_request(last_argument, call);
}

/* Enter a call in the ledger that has returned. */
static __attribute__((noinline)) void enter_in_ledger(int result, const struct ibp_demanding *call)
{
    if (result)
        ibp_ledger_add_failed(call->call);
    else
        ibp_ledger_add(call);
}

static inline __attribute__((always_inline)) void enter(struct ibp_call *call, enum ibp_call_kind kind,
                                                        long communicator, long first_argument, bool of_nothing)
{
    ibp_enter(call, (struct ibp_current_call){
                        .kind = (uint8_t)kind,
                        .moves_nothing = of_nothing,
                        .communicator = communicator,
                    });
    ibp_periodic_check();
    if (takes_tag(kind) || kind == IBP_CALL_FREEING) prepare(kind, first_argument);
}

static __attribute__((noinline)) void leave(int result, enum ibp_call_kind kind, long last_argument,
                                            const struct ibp_demanding *call)
{
    if (call->operation == IBP_OPERATION_Cart_create && !result && !ibp_mpi.is_behind_layer)
        ibp_grid_note(handle_at(last_argument));
    if (takes_tag(kind))
        leave_with_request(result, kind, last_argument, call);
    else
        ibp_leave();
    if (call->shape != IBP_DEMAND_NONE && kind != IBP_CALL_PERSISTENT) enter_in_ledger(result, call);
}

/* Compare a send with what the source sees. The count of items is an int, except in calls for large counts, which
 * are not compared. */
static __attribute__((noinline)) void expect(const char *function, long items, long datatype, long peer, long tag)
{
    if (function[strlen(function) - 1] != 'c')
        ibp_source->expect_message((uint64_t)(int)items, IBP_HANDLE(datatype), (int)peer, (int)tag);
}

/* Return whether a call has the same first arguments as calls that send. */
static inline bool is_sendrecv(unsigned operation)
{
    return operation == IBP_OPERATION_Sendrecv || operation == IBP_OPERATION_Sendrecv_replace ||
           operation == IBP_OPERATION_Isendrecv || operation == IBP_OPERATION_Isendrecv_replace;
}

/* Return whether a call takes the short path: nothing but entering and leaving it. */
static inline bool is_short(unsigned operation, enum ibp_call_kind kind)
{
    return !takes_tag(kind) && kind != IBP_CALL_FREEING && operation != IBP_OPERATION_Cart_create &&
           IBP_LIKELY(ibp_get_here()->is_outside) && IBP_LIKELY(!ibp_periodic) && IBP_LIKELY(!ibp_times_recorded) &&
           (!is_sendrecv(operation) || IBP_LIKELY(!ibp_source_unproved));
}

/* Return the call of an operation that is only passed on, and set it as the present one; NULL where it is part of
 * another call. */
static __attribute__((noinline)) struct ibp_call *pass_on(unsigned operation, const void *address)
{
    struct ibp_call *call;

    if (!ibp_is_active() || ibp_is_within_call()) return NULL;
    call = ibp_call_find(operation, address);
    if (ibp_threads_multiple)
        ibp_current_call.call = call;
    else if (ibp_get_here()->is_outside)
        ibp_set_here(&call->context);
    return call;
}

/* Return whether another tool wraps a call too: its wrapper calls ibprof's of the other name. */
static bool is_wrapped_by_tool(const char *name)
{
    void *next = ibp_mpi_next(name);
    Dl_info object;

    return next && dladdr && dladdr(next, &object) && !ibp_is_mpi_library(object.dli_fname);
}

/* One of a call's arguments; 0 where it has none at that place. */
#define ARGUMENT(count, place)                                                                                         \
    ((place) < 0 || (place) >= (count) ? 0 : (long[]){ARGUMENTS_##count}[(place) < 0 ? 0 : (place) % (count)])

/* What a call asks for; a send only where wrappers label it. */
#define DEMANDING(at, function, name, count, position)                                                                 \
    ((struct ibp_demanding){                                                                                           \
        .call = (at),                                                                                                  \
        .operation = IBP_OPERATION_##name,                                                                             \
        .shape = ibp_demand_places[IBP_OPERATION_##name].shape != IBP_DEMAND_PEER || IBP_UNLIKELY(ibp_labels_sends)    \
                     ? ibp_demand_places[IBP_OPERATION_##name].shape                                                   \
                     : IBP_DEMAND_NONE,                                                                                \
        .is_large = IBP_IS_LARGE(function),                                                                            \
        .communicator = ARGUMENT(count, position),                                                                     \
        .items = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].items),                                       \
        .type = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].type),                                         \
        .root = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].root),                                         \
    })

/* The next function of a wrapper's name; until the first call, one that finds it. */
#define NEXT(function, count)                                                                                          \
    static __attribute__((cold)) int find_##function(PARAMETERS_##count);                                              \
    static int (*next_##function)(PARAMETERS_##count) = find_##function;                                               \
    static int find_##function(PARAMETERS_##count)                                                                     \
    {                                                                                                                  \
        void *found = ibp_mpi_next(#function);                                                                         \
                                                                                                                       \
        if (!found) return IBP_MISSING_CALL;                                                                           \
        memcpy(&next_##function, &found, sizeof found);                                                                \
        return next_##function(ARGUMENTS_##count);                                                                     \
    }

/* Calls that are only passed on, while times are recorded. Most end in a tail call. `whole_` times all of a call. */
#define PASSING_ON(function, name, count)                                                                              \
    static __attribute__((noinline, cold)) int whole_##function(PARAMETERS_##count)                                    \
    {                                                                                                                  \
        struct ibp_call *const call = pass_on(IBP_OPERATION_##name, __builtin_return_address(0));                      \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (!call) return next_##function(ARGUMENTS_##count);                                                          \
        ibp_timing_begin(&timing, call);                                                                               \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_timing_end(&timing);                                                                                       \
        return result;                                                                                                 \
    }                                                                                                                  \
    static int timed_##function(PARAMETERS_##count)                                                                    \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
                                                                                                                       \
        if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call) || !ibp_time_at_random(call))             \
            return whole_##function(ARGUMENTS_##count);                                                                \
        ibp_set_here(&call->context);                                                                                  \
        return next_##function(ARGUMENTS_##count);                                                                     \
    }

/* What a wrapper calls: the next function, or one that does something first. With a tool in between, each call is timed
 * as a whole, so that what it calls is known to be part of it. */
#define CHOICE(function, name, count, untimed, timed, whole)                                                           \
    static __attribute__((cold)) int first_##function(PARAMETERS_##count);                                             \
    static int (*chosen_##function)(PARAMETERS_##count) = first_##function;                                            \
    static __attribute__((cold)) void choose_##function(void)                                                          \
    {                                                                                                                  \
        int (*choice)(PARAMETERS_##count) = untimed;                                                                   \
        void *found = next_##function == find_##function ? ibp_mpi_next(#function) : NULL;                             \
                                                                                                                       \
        if (found) memcpy(&next_##function, &found, sizeof found);                                                     \
        if (ibp_times_recorded && ibp_operation_wanted[IBP_OPERATION_##name])                                          \
            choice = is_wrapped_by_tool("MPI_" #name) ? whole : timed;                                                 \
        __atomic_store_n(&chosen_##function, choice ? choice : next_##function, __ATOMIC_RELAXED);                     \
    }                                                                                                                  \
    static int first_##function(PARAMETERS_##count)                                                                    \
    {                                                                                                                  \
        choose_##function();                                                                                           \
        return chosen_##function(ARGUMENTS_##count);                                                                   \
    }

/* Most calls take the short path: one thread is in MPI, in no other call, and no other work is due. */
#define WRAPPER(define, function, name, count, call_kind, position)                                                    \
    NEXT(function, count)                                                                                              \
    static __attribute__((noinline, cold)) int slowly_##function(PARAMETERS_##count)                                   \
    {                                                                                                                  \
        struct ibp_demanding call;                                                                                     \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (!ibp_get_here()->is_outside && (!ibp_is_active() || ibp_is_within_call()))                                 \
            return next_##function(ARGUMENTS_##count);                                                                 \
        call = DEMANDING(IBP_CALL_HERE(IBP_OPERATION_##name), function, name, count, position);                        \
        enter(call.call, IBP_CALL_##call_kind, ARGUMENT(count, position), a0,                                          \
              IBP_CALL_##call_kind == IBP_CALL_NONBLOCKING &&                                                          \
                  moves_nothing(&call, ARGUMENT(count, 1), ARGUMENT(count, 4)));                                       \
        ibp_timing_begin(&timing, call.call);                                                                          \
        if (is_sendrecv(IBP_OPERATION_##name) && IBP_UNLIKELY(ibp_source_unproved))                                    \
            expect(#function, ARGUMENT(count, 1), ARGUMENT(count, 2), ARGUMENT(count, 3), ARGUMENT(count, 4));         \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_timing_end(&timing);                                                                                       \
        leave(result, IBP_CALL_##call_kind, ARGUMENT(count, (count) - 1), &call);                                      \
        return result;                                                                                                 \
    }                                                                                                                  \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (!is_short(IBP_OPERATION_##name, IBP_CALL_##call_kind) || IBP_UNLIKELY(!call) ||                            \
            !ibp_ledger_add_known(DEMANDING(call, function, name, count, position)))                                   \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_enter(call, (struct ibp_current_call){                                                                     \
                            .kind = IBP_CALL_##call_kind,                                                              \
                            .communicator = ARGUMENT(count, position),                                                 \
                        });                                                                                            \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_leave();                                                                                                   \
        if (ibp_demand_places[IBP_OPERATION_##name].shape != IBP_DEMAND_NONE && IBP_UNLIKELY(result))                  \
            ibp_ledger_add_failed(call);                                                                               \
        return result;                                                                                                 \
    }

/* Ends in a tail call where the source sees the mode of a send. Where it does not, the short path applies as above. */
#define SEND_WRAPPER(define, function, name, count, position, keeps_request)                                           \
    NEXT(function, count)                                                                                              \
    static __attribute__((noinline, cold)) int slowly_##function(PARAMETERS_##count)                                   \
    {                                                                                                                  \
        struct ibp_demanding call;                                                                                     \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (ibp_is_within_call()) return next_##function(ARGUMENTS_##count);                                           \
        call = DEMANDING(IBP_CALL_HERE(IBP_OPERATION_##name), function, name, count, position);                        \
        enter(call.call, IBP_CALL_SENDING, ARGUMENT(count, position), 0, false);                                       \
        ibp_timing_begin(&timing, call.call);                                                                          \
        if (IBP_UNLIKELY(ibp_source_unproved) && !(keeps_request)) expect(#function, a1, a2, a3, a4);                  \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_timing_end(&timing);                                                                                       \
        ibp_leave();                                                                                                   \
        if (!(keeps_request))                                                                                          \
            enter_in_ledger(result, &call);                                                                            \
        else if (!result)                                                                                              \
            keep_request(ARGUMENT(count, (count) - 1), &call);                                                         \
        return result;                                                                                                 \
    }                                                                                                                  \
    static __attribute__((noinline)) int label_##function(PARAMETERS_##count)                                          \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if ((keeps_request) || IBP_UNLIKELY(ibp_times_recorded) || IBP_UNLIKELY(!ibp_get_here()->is_outside) ||        \
            IBP_UNLIKELY(ibp_source_unproved) || IBP_UNLIKELY(!call) ||                                                \
            !ibp_ledger_add_known(DEMANDING(call, function, name, count, position)))                                   \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_enter(call, (struct ibp_current_call){                                                                     \
                            .kind = IBP_CALL_SENDING,                                                                  \
                            .communicator = ARGUMENT(count, position),                                                 \
                        });                                                                                            \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }                                                                                                                  \
    /* The source sees the mode of a send, and not its site. */                                                        \
    static __attribute__((noinline, cold)) int find_site_##function(PARAMETERS_##count)                                \
    {                                                                                                                  \
        (void)pass_on(IBP_OPERATION_##name, __builtin_return_address(0));                                              \
        return next_##function(ARGUMENTS_##count);                                                                     \
    }                                                                                                                  \
    static int site_##function(PARAMETERS_##count)                                                                     \
    {                                                                                                                  \
        struct ibp_call *const call = ibp_call_cached(IBP_OPERATION_##name, __builtin_return_address(0));              \
                                                                                                                       \
        if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call))                                          \
            return find_site_##function(ARGUMENTS_##count);                                                            \
        ibp_set_here(&call->context);                                                                                  \
        return next_##function(ARGUMENTS_##count);                                                                     \
    }                                                                                                                  \
    PASSING_ON(function, name, count)                                                                                  \
    CHOICE(function, name, count,                                                                                      \
           ibp_labels_sends     ? label_##function                                                                     \
           : ibp_sites_recorded ? site_##function                                                                      \
                                : NULL,                                                                                \
           ibp_labels_sends ? label_##function : timed_##function,                                                     \
           ibp_labels_sends ? label_##function : whole_##function)                                                     \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        return chosen_##function(ARGUMENTS_##count);                                                                   \
    }

/* Of a call that sends nothing and may wait. */
#define TIMED_WRAPPER(define, function, name, count, duration)                                                         \
    NEXT(function, count)                                                                                              \
    TIMED_##duration(function, name, count) CHOICE(function, name, count, NULL, timed_##function,                      \
                                                   WHOLE_##duration(function)) define(function, PARAMETERS_##count)    \
    {                                                                                                                  \
        return chosen_##function(ARGUMENTS_##count);                                                                   \
    }
#define WHOLE_WAITING(function) whole_##function
#define WHOLE_SHORT(function) whole_##function
#define WHOLE_LONG(function) timed_##function
#define TIMED_WAITING PASSING_ON
#define TIMED_SHORT PASSING_ON
#define TIMED_LONG(function, name, count)                                                                              \
    static int timed_##function(PARAMETERS_##count)                                                                    \
    {                                                                                                                  \
        struct ibp_timing timing;                                                                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (!ibp_is_active() || ibp_is_within_call()) return next_##function(ARGUMENTS_##count);                       \
        ibp_enter(IBP_CALL_HERE(IBP_OPERATION_##name), (struct ibp_current_call){.kind = IBP_CALL_BLOCKING});          \
        ibp_timing_begin(&timing, ibp_current_call.call);                                                              \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_timing_end(&timing);                                                                                       \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }

/* Each call has two names, with P and without; where it has a form for large counts, a third one. */
#define BOTH(make, name, ...)                                                                                          \
    make(IBP_DEFINE, MPI_##name, name, __VA_ARGS__) make(IBP_DEFINE, PMPI_##name, name, __VA_ARGS__)
#define ALL_THREE(make, name, ...)                                                                                     \
    BOTH(make, name, __VA_ARGS__) make(IBP_DEFINE_LARGE, MPI_##name##_c, name, __VA_ARGS__)
#define IBP_CALL(name, ...) BOTH(WRAPPER, name, __VA_ARGS__)
#define IBP_LARGE_CALL(name, ...) ALL_THREE(WRAPPER, name, __VA_ARGS__)
#define IBP_SEND(name, count, communicator) ALL_THREE(SEND_WRAPPER, name, count, communicator, false)
#define IBP_SEND_INIT(name, count, communicator) ALL_THREE(SEND_WRAPPER, name, count, communicator, true)
#define IBP_TIMED(name, count, duration) BOTH(TIMED_WRAPPER, name, count, duration)
#define IBP_LARGE_TIMED(name, count, duration) ALL_THREE(TIMED_WRAPPER, name, count, duration)
#define IBP_POINT_TO_POINT(name)
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT

/* Open MPI 4 has the persistent collectives of MPI-4 under the prefix MPIX_. */
#define KEEP_PERSISTENT(name, count, communicator)                                                                     \
    WRAPPER(IBP_DEFINE, MPIX_##name, name, count, PERSISTENT, communicator)                                            \
    WRAPPER(IBP_DEFINE, PMPIX_##name, name, count, PERSISTENT, communicator)
#define KEEP_COLLECTIVE(name, count, communicator)
#define KEEP_BLOCKING(name, count, communicator)
#define KEEP_NONBLOCKING(name, count, communicator)
#define KEEP_DUPLICATING(name, count, communicator)
#define KEEP_WINDOW(name, count, communicator)
#define KEEP_FREEING(name, count, communicator)
#define IBP_CALL(name, count, kind, communicator) KEEP_##kind(name, count, communicator)
#define IBP_POINT_TO_POINT(name)
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT

/* -- calls for large counts ---------------------------------------------------------------------------------------- */

#define ENTRY(name) {"MPI_" #name "_c", (void *)IBP_LARGE(MPI_##name##_c)},
#define IBP_CALL(name, count, kind, communicator)
#define IBP_LARGE_CALL(name, count, kind, communicator) ENTRY(name)
#define IBP_SEND(name, count, communicator) ENTRY(name)
#define IBP_SEND_INIT(name, count, communicator) ENTRY(name)
#define IBP_TIMED(name, count, duration)
#define IBP_LARGE_TIMED(name, count, duration) ENTRY(name)
#define IBP_POINT_TO_POINT(name)
static const struct ibp_replacement large_calls[] = {
#include "mpi.def"
};
#undef IBP_CALL
#undef IBP_POINT_TO_POINT

const struct ibp_replacements ibp_large_trampolines = {large_calls, sizeof large_calls / sizeof *large_calls};

/* -- what wrappers do ---------------------------------------------------------------------------------------------- */

void ibp_wrappers_choose(void)
{
#define CHOOSE(name)                                                                                                   \
    choose_MPI_##name();                                                                                               \
    choose_PMPI_##name();
#define CHOOSE_LARGE(name)                                                                                             \
    CHOOSE(name)                                                                                                       \
    choose_MPI_##name##_c();
#define IBP_CALL(name, count, kind, communicator)
#define IBP_POINT_TO_POINT(name)
#define IBP_SEND(name, count, communicator) CHOOSE_LARGE(name)
#define IBP_SEND_INIT(name, count, communicator) CHOOSE_LARGE(name)
#define IBP_TIMED(name, count, duration) CHOOSE(name)
#define IBP_LARGE_TIMED(name, count, duration) CHOOSE_LARGE(name)
#include "mpi.def"
}
