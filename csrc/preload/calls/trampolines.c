/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Each wrapper is exported under its MPI_ and its PMPI_ name. C programs, and tools loaded earlier, call the first.
 * Fortran bindings of Open MPI, and programs that define MPI functions themselves, call the second. The outermost call
 * sets the operation. Arguments are passed on without being read: in Linux calling conventions an integer or a pointer
 * takes one register or one slot of the stack.
 */
#include "platform/system.h"
#include "calls/trampolines.h"
#include "calls/wrapper.h"
#include "counting/current_call.h"
#include "counting/periodic.h"
#include "counting/requests.h"
#include "libmpi/communicators.h"
#include "libmpi/grids.h"
#include "libmpi/handles.h"
#include "libmpi/lock.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "sources/source.h"

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
    const ibp_handle handle = handle_at(address);

    ibp_lock();
    ibp_communicator_forget(handle);
    ibp_unlock();
    if (ibp_source->forget_communicator) ibp_source->forget_communicator(handle);
}

/* The following are not inline: repeated in four hundred wrappers they would be most of the library. */
static __attribute__((noinline)) void prepare(enum ibp_call_kind kind, long first_argument)
{
    if (takes_tag(kind)) ibp_source->before_tag();
    if (kind == IBP_CALL_FREEING) forget(first_argument);
}

static __attribute__((noinline)) void leave_with_request(int result, enum ibp_call_kind kind, long last_argument)
{
    const unsigned operation = ibp_current_call.operation;

    ibp_source->after_tag(result == 0);
    ibp_leave();
    if (kind == IBP_CALL_PERSISTENT && !result)
        ibp_request_keep_operation(ibp_mpi_request((void **)last_argument, 0), operation);
}

static inline __attribute__((always_inline)) void enter(unsigned operation, enum ibp_call_kind kind, long communicator,
                                                        long first_argument)
{
    ibp_enter((struct ibp_current_call){
        .operation = (uint16_t)operation,
        .kind = (uint8_t)kind,
        .communicator = communicator,
    });
    ibp_periodic_check();
    if (takes_tag(kind) || kind == IBP_CALL_FREEING) prepare(kind, first_argument);
}

static inline void leave(int result, unsigned operation, enum ibp_call_kind kind, long last_argument)
{
    if (operation == IBP_OPERATION_Cart_create && !result) ibp_grid_note(handle_at(last_argument));
    if (takes_tag(kind))
        leave_with_request(result, kind, last_argument);
    else
        ibp_leave();
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
           IBP_LIKELY(ibp_get_here() == &ibp_outside) && IBP_LIKELY(!ibp_periodic) &&
           (!is_sendrecv(operation) || IBP_LIKELY(!ibp_source_unproved));
}

/* One of a call's arguments; 0 where it has none at that place. */
#define ARGUMENT(count, place)                                                                                         \
    ((place) < 0 || (place) >= (count) ? 0 : (long[]){ARGUMENTS_##count}[(place) < 0 ? 0 : (place) % (count)])

/* The next function of a wrapper's name; until the first call, one that finds it. */
#define NEXT(function, count)                                                                                          \
    static int find_##function(PARAMETERS_##count);                                                                    \
    static int (*next_##function)(PARAMETERS_##count) = find_##function;                                               \
    static int find_##function(PARAMETERS_##count)                                                                     \
    {                                                                                                                  \
        void *found = ibp_mpi_next(#function);                                                                         \
                                                                                                                       \
        if (!found) return IBP_MISSING_CALL;                                                                           \
        memcpy(&next_##function, &found, sizeof found);                                                                \
        return next_##function(ARGUMENTS_##count);                                                                     \
    }

/* Most calls take the short path: one thread is in MPI, in no other call, and no other work is due. */
#define WRAPPER(define, function, name, count, call_kind, position)                                                    \
    NEXT(function, count)                                                                                              \
    static __attribute__((noinline)) int slowly_##function(PARAMETERS_##count)                                         \
    {                                                                                                                  \
        int result;                                                                                                    \
                                                                                                                       \
        if (ibp_get_here() != &ibp_outside && (!ibp_is_active() || ibp_is_within_call()))                              \
            return next_##function(ARGUMENTS_##count);                                                                 \
        enter(IBP_OPERATION_##name, IBP_CALL_##call_kind, ARGUMENT(count, position), a0);                              \
        if (is_sendrecv(IBP_OPERATION_##name) && IBP_UNLIKELY(ibp_source_unproved))                                    \
            expect(#function, ARGUMENT(count, 1), ARGUMENT(count, 2), ARGUMENT(count, 3), ARGUMENT(count, 4));         \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        leave(result, IBP_OPERATION_##name, IBP_CALL_##call_kind, ARGUMENT(count, (count) - 1));                       \
        return result;                                                                                                 \
    }                                                                                                                  \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        int result;                                                                                                    \
                                                                                                                       \
        if (!is_short(IBP_OPERATION_##name, IBP_CALL_##call_kind)) return slowly_##function(ARGUMENTS_##count);        \
        ibp_enter((struct ibp_current_call){                                                                           \
            .operation = IBP_OPERATION_##name,                                                                         \
            .kind = IBP_CALL_##call_kind,                                                                              \
            .communicator = ARGUMENT(count, position),                                                                 \
        });                                                                                                            \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }

/* Ends in a tail call where the source sees the mode of a send. Where it does not, the short path applies as above. */
#define SEND_WRAPPER(define, function, name, count, position, keeps_request)                                           \
    NEXT(function, count)                                                                                              \
    static __attribute__((noinline)) int slowly_##function(PARAMETERS_##count)                                         \
    {                                                                                                                  \
        int result;                                                                                                    \
                                                                                                                       \
        if (ibp_is_within_call()) return next_##function(ARGUMENTS_##count);                                           \
        enter(IBP_OPERATION_##name, IBP_CALL_SENDING, ARGUMENT(count, position), 0);                                   \
        if (IBP_UNLIKELY(ibp_source_unproved) && !(keeps_request)) expect(#function, a1, a2, a3, a4);                  \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_leave();                                                                                                   \
        if ((keeps_request) && !result)                                                                                \
            ibp_request_keep_operation(ibp_mpi_request((void **)ARGUMENT(count, (count) - 1), 0),                      \
                                       IBP_OPERATION_##name);                                                          \
        return result;                                                                                                 \
    }                                                                                                                  \
    static __attribute__((noinline)) int label_##function(PARAMETERS_##count)                                          \
    {                                                                                                                  \
        int result;                                                                                                    \
                                                                                                                       \
        if ((keeps_request) || IBP_UNLIKELY(ibp_get_here() != &ibp_outside) || IBP_UNLIKELY(ibp_source_unproved))      \
            return slowly_##function(ARGUMENTS_##count);                                                               \
        ibp_enter((struct ibp_current_call){                                                                           \
            .operation = IBP_OPERATION_##name,                                                                         \
            .kind = IBP_CALL_SENDING,                                                                                  \
            .communicator = ARGUMENT(count, position),                                                                 \
        });                                                                                                            \
        result = next_##function(ARGUMENTS_##count);                                                                   \
        ibp_leave();                                                                                                   \
        return result;                                                                                                 \
    }                                                                                                                  \
    define(function, PARAMETERS_##count)                                                                               \
    {                                                                                                                  \
        if (IBP_LIKELY(!ibp_labels_sends)) return next_##function(ARGUMENTS_##count);                                  \
        return label_##function(ARGUMENTS_##count);                                                                    \
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
#define IBP_POINT_TO_POINT(name)
static const struct ibp_replacement large_calls[] = {
#include "mpi.def"
};

const struct ibp_replacements ibp_large_trampolines = {large_calls, sizeof large_calls / sizeof *large_calls};
