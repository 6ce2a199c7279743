/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * ibprof exports each wrapper as MPI_X and as PMPI_X. C programs call MPI_X. PMPI_X is called by Open MPI's Fortran
 * bindings, by tools loaded before ibprof, and by programs that define MPI functions. If wrappers are nested, messages
 * count for the operation of the outermost wrapper.
 *
 * Most calls take the short path. It requires that only one thread can be in MPI, that the call is not inside another
 * MPI call, and that ibprof has no other work. Each wrapper has a copy of the short path; the wrappers share all other
 * code.
 */
#include "platform/system.h"
#include "calls/arguments.h"
#include "calls/demands.h"
#include "calls/long_path.h"
#include "calls/wrapper.h"
#include "counting/calls.h"
#include "counting/current_call.h"
#include "counting/ledger.h"
#include "counting/envelopes.h"
#include "counting/message_order.h"
#include "counting/open_requests.h"
#include "counting/samples.h"
#include "counting/periodic.h"
#include "counting/repeats.h"
#include "counting/times.h"
#include "counting/wrapped_calls.h"
#include "recording/operations.h"
#include "sources/source.h"

#include <stdbool.h>

#define NO_COMMUNICATOR IBP_NO_COMMUNICATOR

/* Return whether a call may take the short path. The short path only sets and clears the current call. */
static inline bool is_short(unsigned operation, enum ibp_call_kind kind)
{
    return !(IBP_NEEDS_OF(operation, kind) & IBP_NEEDS_LONG_PATH) && IBP_LIKELY(ibp_get_here()->is_outside) &&
           IBP_LIKELY(!ibp_periodic) && IBP_LIKELY(!ibp_times_recorded) &&
           (!(IBP_NEEDS_OF(operation, kind) & IBP_IS_SENDRECV) || IBP_LIKELY(!ibp_source_unproved));
}

/* Expand to the argument at a position; 0 if the call has no such argument. */
#define ARGUMENT(count, place)                                                                                         \
    ((place) < 0 || (place) >= (count) ? 0 : (long[]){ARGUMENTS_##count}[(place) < 0 ? 0 : (place) % (count)])

/* Expand to the arguments that determine the bytes of a call. For a send, set the shape IBP_DEMAND_NONE if the source
 * can see which call sent a message (ibp_labels_sends is false). */
#define DEMANDING(at, form, name, count, position)                                                                     \
    ((struct ibp_demanding){                                                                                           \
        .call = (at),                                                                                                  \
        .operation = IBP_OPERATION_##name,                                                                             \
        .shape = ibp_demand_places[IBP_OPERATION_##name].shape != IBP_DEMAND_PEER || IBP_UNLIKELY(ibp_labels_sends)    \
                     ? ibp_demand_places[IBP_OPERATION_##name].shape                                                   \
                     : IBP_DEMAND_NONE,                                                                                \
        .is_large = (form) == IBP_FORM_LARGE,                                                                          \
        .communicator = ARGUMENT(count, position),                                                                     \
        .items = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].items),                                       \
        .type = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].type),                                         \
        .root = ARGUMENT(count, ibp_demand_places[IBP_OPERATION_##name].root),                                         \
    })

/* `next`: the next function of the wrapper; before this function is found, a function that takes the long path. With
 * `HAS_CHOICES`, the wrapper calls `chosen` instead of `next`. */
#define HAS_CHOICES(count) int (*chosen)(PARAMETERS_##count);
#define HAS_NONE(count)
#define LONG_PATH(function, name, form, count, choices)                                                                \
    static __attribute__((noinline)) int slowly_##function(PARAMETERS_##count);                                        \
    static struct {                                                                                                    \
        int (*next)(PARAMETERS_##count);                                                                               \
        choices(count)                                                                                                 \
    } of_##function = CALLS_##choices(slowly_##function);                                                              \
    static __attribute__((noinline)) int slowly_##function(PARAMETERS_##count)                                         \
    {                                                                                                                  \
        return ibp_long_path(IBP_WRAPPER(IBP_OPERATION_##name, form), &of_##function,                                  \
                             (const long[]){ARGUMENTS_##count}, __builtin_return_address(0));                          \
    }
#define CALLS_HAS_CHOICES(function) {function, function}
#define CALLS_HAS_NONE(function) {function}

/* -- calls that become the current call ---------------------------------------------------------------------------- */

#define WRAPPER(define, function, form, name, count, call_kind, position)                                              \
    LONG_PATH(function, name, form, count, HAS_NONE)                                                                   \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (!is_short(IBP_OPERATION_##name, IBP_CALL_##call_kind) || IBP_UNLIKELY(!call) ||                            \
            !ibp_ledger_add_known(DEMANDING(call, form, name, count, position)))                                       \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_enter(call, (struct ibp_current_call){                                                                     \
                            .kind = IBP_CALL_##call_kind,                                                              \
                            .communicator = ARGUMENT(count, position),                                                 \
                        });                                                                                            \
        result = of_##function.next(ARGUMENTS_##count);                                                                \
        ibp_leave();                                                                                                   \
        if (ibp_demand_places[IBP_OPERATION_##name].shape != IBP_DEMAND_NONE && IBP_UNLIKELY(result))                  \
            ibp_ledger_add_failed(call);                                                                               \
        return result;                                                                                                 \
    }

/* -- calls with a choice of functions (struct ibp_choices) --------------------------------------------------------- */

/* Return whether the MPI call needs no sample. While samples are taken, set `envelope` to the envelope of the posted
 * message. The caller must subtract 1 from the envelope's `messages.left`. */
static inline __attribute__((always_inline)) bool is_unsampled(unsigned operation, long peer, long tag,
                                                               long communicator, struct ibp_envelope **envelope)
{
    enum ibp_side side = IBP_SIDE_SENDER;

    if (IBP_UNLIKELY(!ibp_sampling)) return true;
    switch (operation) {
    case IBP_OPERATION_Recv:
    case IBP_OPERATION_Irecv:
        if (IBP_UNLIKELY(ibp_waiting_receives)) return false;
        side = IBP_SIDE_RECEIVER;
        break;
    case IBP_OPERATION_Send:
    case IBP_OPERATION_Bsend:
    case IBP_OPERATION_Ssend:
    case IBP_OPERATION_Rsend:
    case IBP_OPERATION_Isend:
    case IBP_OPERATION_Ibsend:
    case IBP_OPERATION_Issend:
    case IBP_OPERATION_Irsend:
        break;
    case IBP_OPERATION_Send_init:
    case IBP_OPERATION_Bsend_init:
    case IBP_OPERATION_Ssend_init:
    case IBP_OPERATION_Rsend_init:
    case IBP_OPERATION_Recv_init:
    case IBP_OPERATION_Probe:
    case IBP_OPERATION_Mprobe:
        return false;
    default:
        return IBP_LIKELY(!ibp_open_requests);
    }
    *envelope = ibp_envelope_unsampled(IBP_HANDLE(communicator), (int)peer, (int)tag, side);
    return *envelope;
}

/* Grant repetitions of a call (counting/repeats.h), if the site's previous call posted a message with the same
 * envelope, or if neither call posts a message. */
static __attribute__((noinline)) void repeat(const void *address, struct ibp_call *call, bool is_message, long type,
                                             long peer, long tag, long communicator, struct ibp_envelope *envelope)
{
    if (is_message && !ibp_items_are_known(type)) return;
    if (is_message && !envelope) envelope = &ibp_envelope_of_none;
    if (envelope == call->last_envelope)
        ibp_repeat_grant(address, &(struct ibp_repeat){
                                      .call = call,
                                      .communicator = communicator,
                                      .type = type,
                                      .peer = (int)peer,
                                      .tag = (int)tag,
                                      .large = ibp_items_that_are_large(type),
                                      .messages = envelope ? &envelope->messages : NULL,
                                  });
    call->last_envelope = envelope;
}

/* If this call is a granted repetition (counting/repeats.h), use up one repetition and return true; otherwise return
 * false. */
static inline __attribute__((always_inline)) bool repeats(unsigned operation, struct ibp_repeat *last,
                                                          const void *address, long items, long type, long peer,
                                                          long tag, long communicator)
{
    if (IBP_UNLIKELY(last->address != address)) return false;
    if (ibp_posts_message(operation) &&
        (IBP_UNLIKELY((unsigned)items >= last->large &&
                      (last->large || !ibp_is_small_of_derived((unsigned)items, type))) ||
         IBP_UNLIKELY(last->type != type) || IBP_UNLIKELY(last->communicator != communicator) ||
         IBP_UNLIKELY(last->peer != (int)peer) || IBP_UNLIKELY(last->tag != (int)tag)))
        return false;
    return IBP_LIKELY(--last->left >= 0);
}

/* Used while times are recorded. `medium_...`: for calls that are no granted repetitions (counting/repeats.h). If
 * `medium_...` chooses a call at random, it calls `chosen_...`. */
#define MEDIUM(function, name, count)                                                                                  \
    static __attribute__((noinline)) int chosen_##function(struct ibp_call *call, PARAMETERS_##count)                  \
    {                                                                                                                  \
        uint64_t before;                                                                                               \
        const uint64_t begin = ibp_timing_begin_chosen(call, &before);                                                 \
        const int result = of_##function.next(ARGUMENTS_##count);                                                      \
                                                                                                                       \
        ibp_timing_end_chosen(call, begin, before);                                                                    \
        return result;                                                                                                 \
    }                                                                                                                  \
    static __attribute__((noinline)) int medium_##function(PARAMETERS_##count)                                         \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        struct ibp_envelope *envelope = NULL;                                                                          \
        bool is_chosen;                                                                                                \
        int result;                                                                                                    \
                                                                                                                       \
        if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call) ||                                        \
            IBP_UNLIKELY(ibp_is_large(IBP_OPERATION_##name, ARGUMENT(count, 1), ARGUMENT(count, 2))) ||                \
            !is_unsampled(IBP_OPERATION_##name, ARGUMENT(count, 3), ARGUMENT(count, 4), ARGUMENT(count, 5),            \
                          &envelope) ||                                                                                \
            IBP_UNLIKELY(!call->time_at_random))                                                                       \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        is_chosen = !ibp_time_at_random(call);                                                                         \
        if (envelope) envelope->messages.left--;                                                                       \
        if (ibp_sites_recorded)                                                                                        \
            repeat(__builtin_return_address(0), call, ibp_posts_message(IBP_OPERATION_##name), ARGUMENT(count, 2),     \
                   ARGUMENT(count, 3), ARGUMENT(count, 4), ARGUMENT(count, 5), envelope);                              \
        ibp_set_here(&call->context);                                                                                  \
        if (IBP_UNLIKELY(is_chosen)) return chosen_##function(call, ARGUMENTS_##count);                                \
        result = of_##function.next(ARGUMENTS_##count);                                                                \
        ibp_times_end_wait();                                                                                          \
        return result;                                                                                                 \
    }

/* Used while times and sites are recorded. For a granted repetition (counting/repeats.h), this function calls the next
 * function. For all other calls, it calls `medium_...`. */
#define TIMED(function, name, count)                                                                                   \
    MEDIUM(function, name, count)                                                                                      \
    static int timed_##function(PARAMETERS_##count)                                                                    \
    {                                                                                                                  \
        const void *const address = __builtin_return_address(0);                                                       \
        struct ibp_repeat *const last = ibp_repeat_in(ibp_repeats, IBP_OPERATION_##name, address);                     \
                                                                                                                       \
        if (!repeats(IBP_OPERATION_##name, last, address, ARGUMENT(count, 1), ARGUMENT(count, 2), ARGUMENT(count, 3),  \
                     ARGUMENT(count, 4), ARGUMENT(count, 5)))                                                          \
            return medium_##function(ARGUMENTS_##count);                                                               \
        ibp_times_waiting_since = 0;                                                                                   \
        ibp_set_here(&last->call->context);                                                                            \
        return of_##function.next(ARGUMENTS_##count);                                                                  \
    }

/* Like TIMED, but also count the time from the last pass of the progress loop to the return (ibp_times_see_exits). */
#define TIMED_TO_EXIT(function, name, count)                                                                           \
    static int to_exit_##function(PARAMETERS_##count)                                                                  \
    {                                                                                                                  \
        const void *const address = __builtin_return_address(0);                                                       \
        struct ibp_repeat *const last = ibp_repeat_in(ibp_repeats, IBP_OPERATION_##name, address);                     \
        int result;                                                                                                    \
                                                                                                                       \
        if (!repeats(IBP_OPERATION_##name, last, address, ARGUMENT(count, 1), ARGUMENT(count, 2), ARGUMENT(count, 3),  \
                     ARGUMENT(count, 4), ARGUMENT(count, 5)))                                                          \
            return medium_##function(ARGUMENTS_##count);                                                               \
        ibp_times_waiting_since = 0;                                                                                   \
        ibp_set_here(&last->call->context);                                                                            \
        result = of_##function.next(ARGUMENTS_##count);                                                                \
        ibp_times_end_wait();                                                                                          \
        return result;                                                                                                 \
    }

/* Like TIMED, for several threads in MPI, if the function in which threads wait is hooked. */
#define TIMED_AMONG_THREADS(function, name, count)                                                                     \
    static int shared_##function(PARAMETERS_##count)                                                                   \
    {                                                                                                                  \
        const void *const address = __builtin_return_address(0);                                                       \
        struct ibp_repeat *last;                                                                                       \
                                                                                                                       \
        if (IBP_UNLIKELY(ibp_repeats_generation_of_thread != ibp_repeats_now()) ||                                     \
            IBP_UNLIKELY(ibp_current_call.operation))                                                                  \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        last = ibp_repeat_in(ibp_repeats_of_thread, IBP_OPERATION_##name, address);                                    \
        if (!repeats(IBP_OPERATION_##name, last, address, ARGUMENT(count, 1), ARGUMENT(count, 2), ARGUMENT(count, 3),  \
                     ARGUMENT(count, 4), ARGUMENT(count, 5)))                                                          \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_current_call.call = last->call;                                                                            \
        ibp_thread_waits.time = last->time;                                                                            \
        return of_##function.next(ARGUMENTS_##count);                                                                  \
    }

/* Used for a send while times are recorded, if the source cannot distinguish MPI_Send from MPI_Ssend
 * (ibp_labels_sends). The wrapper sets the current call. */
#define TIMED_LABEL(function, form, name, count, position)                                                             \
    static int timed_label_##function(PARAMETERS_##count)                                                              \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        struct ibp_envelope *envelope = NULL;                                                                          \
        uint64_t begin = 0, before = 0;                                                                                \
        bool is_chosen;                                                                                                \
        int result;                                                                                                    \
                                                                                                                       \
        if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call) || IBP_UNLIKELY(ibp_source_unproved) ||   \
            IBP_UNLIKELY(ibp_is_large(IBP_OPERATION_##name, ARGUMENT(count, 1), ARGUMENT(count, 2))) ||                \
            !is_unsampled(IBP_OPERATION_##name, ARGUMENT(count, 3), ARGUMENT(count, 4), ARGUMENT(count, 5),            \
                          &envelope) ||                                                                                \
            IBP_UNLIKELY(!call->time_at_random) ||                                                                     \
            !ibp_ledger_add_known(DEMANDING(call, form, name, count, position)))                                       \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        is_chosen = !ibp_time_at_random(call);                                                                         \
        if (envelope) envelope->messages.left--;                                                                       \
        ibp_enter(call, (struct ibp_current_call){                                                                     \
                            .kind = IBP_CALL_SENDING,                                                                  \
                            .communicator = ARGUMENT(count, position),                                                 \
                        });                                                                                            \
        if (IBP_UNLIKELY(is_chosen)) begin = ibp_timing_begin_chosen(call, &before);                                   \
        result = of_##function.next(ARGUMENTS_##count);                                                                \
        if (IBP_UNLIKELY(begin))                                                                                       \
            ibp_timing_end_chosen(call, begin, before);                                                                \
        else                                                                                                           \
            ibp_times_end_wait();                                                                                      \
        ibp_leave();                                                                                                   \
        if (IBP_UNLIKELY(result)) ibp_ledger_add_failed(call);                                                         \
        return result;                                                                                                 \
    }

/* Used for a send while call sites are recorded and times are not, if the source can distinguish MPI_Send from
 * MPI_Ssend. */
#define SITE(function, name, count)                                                                                    \
    static int among_threads_##function(PARAMETERS_##count)                                                            \
    {                                                                                                                  \
        if (!ibp_set_call_among_threads(IBP_OPERATION_##name, __builtin_return_address(0)))                            \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        return of_##function.next(ARGUMENTS_##count);                                                                  \
    }                                                                                                                  \
    static int site_##function(PARAMETERS_##count)                                                                     \
    {                                                                                                                  \
        struct ibp_call *const call = ibp_call_cached(IBP_OPERATION_##name, __builtin_return_address(0));              \
                                                                                                                       \
        if (IBP_UNLIKELY(!ibp_get_here()->is_outside) || IBP_UNLIKELY(!call))                                          \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_set_here(&call->context);                                                                                  \
        return of_##function.next(ARGUMENTS_##count);                                                                  \
    }

/* Used for a send while no times are recorded, if the source cannot distinguish MPI_Send from MPI_Ssend
 * (ibp_labels_sends). The wrapper sets the current call, as WRAPPER does. */
#define LABEL(function, form, name, count, position)                                                                   \
    static int label_##function(PARAMETERS_##count)                                                                    \
    {                                                                                                                  \
        struct ibp_call *const call = IBP_CALL_HERE_CACHED(IBP_OPERATION_##name);                                      \
        int result;                                                                                                    \
                                                                                                                       \
        if (IBP_UNLIKELY(ibp_times_recorded) || IBP_UNLIKELY(!ibp_get_here()->is_outside) ||                           \
            IBP_UNLIKELY(ibp_source_unproved) || IBP_UNLIKELY(!call) ||                                                \
            !ibp_ledger_add_known(DEMANDING(call, form, name, count, position)))                                       \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_enter(call, (struct ibp_current_call){                                                                     \
                            .kind = IBP_CALL_SENDING,                                                                  \
                            .communicator = ARGUMENT(count, position),                                                 \
                        });                                                                                            \
        result = of_##function.next(ARGUMENTS_##count);                                                                \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }

/* The exported wrapper, which only calls the chosen function. */
#define CHOSEN(define, function, count)                                                                                \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        return of_##function.chosen(ARGUMENTS_##count);                                                                \
    }

#define SEND_WRAPPER(define, function, form, name, count, position)                                                    \
    LONG_PATH(function, name, form, count, HAS_CHOICES)                                                                \
    LABEL(function, form, name, count, position)                                                                       \
    TIMED_LABEL(function, form, name, count, position)                                                                 \
    SITE(function, name, count)                                                                                        \
    TIMED_WAITING(function, name, count)                                                                               \
    CHOSEN(define, function, count)

#define SEND_INIT_WRAPPER(define, function, form, name, count, position)                                               \
    LONG_PATH(function, name, form, count, HAS_CHOICES)                                                                \
    SITE(function, name, count)                                                                                        \
    MEDIUM(function, name, count)                                                                                      \
    CHOSEN(define, function, count)

/* Define the wrapper of a call that sends nothing. The call is wrapped only while times are recorded. */
#define TIMED_WRAPPER(define, function, form, name, count, duration)                                                   \
    LONG_PATH(function, name, form, count, HAS_CHOICES)                                                                \
    TIMED_##duration(function, name, count) CHOSEN(define, function, count)
#define TIMED_WAITING(function, name, count)                                                                           \
    TIMED(function, name, count) TIMED_TO_EXIT(function, name, count) TIMED_AMONG_THREADS(function, name, count)
#define TIMED_POLLING(function, name, count)
#define TIMED_LONG(function, name, count)

/* BOTH: define the wrappers MPI_X and PMPI_X. ALL_THREE: also define MPI_X_c, the form with 64-bit counts. */
#define BOTH(make, name, ...)                                                                                          \
    make(IBP_DEFINE, MPI_##name, IBP_FORM_MPI, name, __VA_ARGS__)                                                      \
        make(IBP_DEFINE, PMPI_##name, IBP_FORM_PMPI, name, __VA_ARGS__)
#define ALL_THREE(make, name, ...)                                                                                     \
    BOTH(make, name, __VA_ARGS__) make(IBP_DEFINE_LARGE, MPI_##name##_c, IBP_FORM_LARGE, name, __VA_ARGS__)
#define IBP_CALL(name, ...) BOTH(WRAPPER, name, __VA_ARGS__)
#define IBP_LARGE_CALL(name, ...) ALL_THREE(WRAPPER, name, __VA_ARGS__)
#define IBP_SEND(name, count, communicator) ALL_THREE(SEND_WRAPPER, name, count, communicator)
#define IBP_SEND_INIT(name, count, communicator) ALL_THREE(SEND_INIT_WRAPPER, name, count, communicator)
#define IBP_TIMED(name, count, duration) BOTH(TIMED_WRAPPER, name, count, duration)
#define IBP_LARGE_TIMED(name, count, duration) ALL_THREE(TIMED_WRAPPER, name, count, duration)
#define IBP_POINT_TO_POINT(name)
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT

/* In Open MPI 4, the persistent collectives of MPI-4 have the prefix MPIX_. */
#define KEEP_PERSISTENT(name, count, communicator)                                                                     \
    WRAPPER(IBP_DEFINE, MPIX_##name, IBP_FORM_MPIX, name, count, PERSISTENT, communicator)                             \
    WRAPPER(IBP_DEFINE, PMPIX_##name, IBP_FORM_PMPIX, name, count, PERSISTENT, communicator)
#define KEEP_COLLECTIVE(name, count, communicator)
#define KEEP_MAKING(name, count, communicator)
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

/* -- choosing ------------------------------------------------------------------------------------------------------ */

#define CHOOSE(function, form, name, timed_one, label_one, site_one, threads_one)                                      \
    ibp_choose(IBP_WRAPPER(IBP_OPERATION_##name, form), &of_##function,                                                \
               &(const struct ibp_choices){                                                                            \
                   .whole = (void *)slowly_##function,                                                                 \
                   .timed = (void *)(timed_one),                                                                       \
                   .label = (void *)(label_one),                                                                       \
                   .site = (void *)(site_one),                                                                         \
                   .among_threads = (void *)threads_one,                                                               \
               });
#define CHOICE_OF_WAITING(function)                                                                                    \
    (ibp_threads_multiple  ? shared_##function                                                                         \
     : !ibp_sites_recorded ? medium_##function                                                                         \
     : ibp_times_see_exits ? to_exit_##function                                                                        \
                           : timed_##function)
#define CHOOSE_SEND(define, function, form, name, count)                                                               \
    CHOOSE(function, form, name, CHOICE_OF_WAITING(function),                                                          \
           ibp_times_recorded ? timed_label_##function : label_##function, site_##function, among_threads_##function)
#define CHOOSE_SEND_INIT(define, function, form, name, count)                                                          \
    CHOOSE(function, form, name, medium_##function, slowly_##function, site_##function, among_threads_##function)
#define CHOOSE_TIMED(define, function, form, name, duration) CHOOSE_##duration(function, form, name)
#define CHOOSE_WAITING(function, form, name) CHOOSE(function, form, name, CHOICE_OF_WAITING(function), NULL, NULL, NULL)
#define CHOOSE_POLLING CHOOSE_LONG
#define CHOOSE_LONG(function, form, name) CHOOSE(function, form, name, slowly_##function, NULL, NULL, NULL)

void ibp_wrappers_choose(void)
{
#define IBP_CALL(name, count, kind, communicator)
#define IBP_POINT_TO_POINT(name)
#define IBP_SEND(name, count, communicator) ALL_THREE(CHOOSE_SEND, name, count)
#define IBP_SEND_INIT(name, count, communicator) ALL_THREE(CHOOSE_SEND_INIT, name, count)
#define IBP_TIMED(name, count, duration) BOTH(CHOOSE_TIMED, name, duration)
#define IBP_LARGE_TIMED(name, count, duration) ALL_THREE(CHOOSE_TIMED, name, duration)
#include "mpi.def"
}
