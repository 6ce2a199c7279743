/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Time inside MPI calls. Reading the clock twice in each call would cost more than all other work of ibprof. Therefore:
 *
 *   - Calls wait in the progress loop of the MPI library. A hook of the loop measures the time from the first pass in a
 *     call to the last pass, or to the return. A call that does not wait reads no clock.
 *   - One in IBP_TIMES_WEIGHT calls, chosen at random, is timed from entry to return. The chosen call's time outside of
 *     the progress loop is an unbiased estimate for the other calls.
 *   - The first calls of a site are timed from entry to return. If a timed call is long, a number of the next calls are
 *     timed too. Each further long call increases this number.
 *   - Sends, receives and one-sided calls of large messages are timed from entry to return. MPI may copy the data
 *     outside of the progress loop. Derived datatypes of unknown size count as large.
 *   - Calls that poll, such as MPI_Test, are timed from entry to return, because the hook of the progress loop reads
 *     the clock in these calls anyway.
 *   - Collectives, and all calls if the progress loop is not hooked, are timed from entry to return.
 *   - If several threads may be in MPI, the function in which threads wait is hooked instead of the loop.
 *
 * Ticks are counts of the processor's cycle counter. Ticks of different processes are not compared.
 */
#ifndef IBPROF_COUNTING_TIMES_H
#define IBPROF_COUNTING_TIMES_H

#include "counting/calls.h"
#include "counting/context.h"
#include "libmpi/datatypes.h"
#include "platform/clock.h"
#include "platform/system.h"
#include "recording/operations.h"

#include "ibprof_recording.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_TIMES_WEIGHT 256

/* A message with at least this many items of a predefined datatype is large. */
#define IBP_TIMES_LARGE 1024

/* True if IBPROF_TIME is not 0, the processor has a cycle counter, and MPI calls are recorded. */
extern IBP_INTERNAL bool ibp_times_recorded;

/* True if the progress loop is hooked. The source sets the variable before ibp_times_begin. */
extern IBP_INTERNAL bool ibp_times_see_progress;

/* True if sends wait only in hooked functions: the progress loop or, with several threads in MPI, the function where
 * threads wait. */
extern IBP_INTERNAL bool ibp_times_see_sends;

/* True if the function in which threads wait is hooked. The source sets the variable before ibp_times_begin. */
extern IBP_INTERNAL bool ibp_times_see_thread_waits;

/* If several threads may be in MPI, the waits of this thread. `time`: the record to which waits are added; NULL while a
 * call of this thread is timed from entry to return. `ticks`: total of the waits. */
extern IBP_INTERNAL IBP_THREAD_LOCAL struct ibp_thread_waits {
    struct ibp_time *time;
    uint64_t ticks;
} ibp_thread_waits;

/* A hook calls these functions before and after a thread waits. ibp_times_thread_wait_begin returns 0 if the wait is
 * not counted. */
uint64_t ibp_times_thread_wait_begin(void);
void ibp_times_thread_wait_end(struct ibp_time *time, uint64_t begin);

/* True if MPI works on a call after the last pass of the progress loop: ibprof then reads the clock also when a waiting
 * call returns. */
extern IBP_INTERNAL bool ibp_times_see_exits;

/* True if persistent requests of large messages exist. The starts of these requests are then timed from entry to
 * return. */
extern IBP_INTERNAL bool ibp_times_large_requests;

/* Ticks at which the present call began to wait, or ended its last pass of the progress loop; 0 before the first
 * pass. */
extern IBP_INTERNAL uint64_t ibp_times_waiting_since;

/* Sums over all records. */
struct ibp_times_sum {
    uint64_t ticks, sampled_ticks;
};
extern IBP_INTERNAL struct ibp_times_sum ibp_times_sum;

/* Return the present sums. If this thread is in a timed call that was not chosen at random, include the call's elapsed
 * time. */
struct ibp_times_sum ibp_times_so_far(void);

bool ibp_times_are_wanted(void);

/* Read the cycle counter and the time when MPI begins, to measure the rate of the counter. */
void ibp_times_prepare(void);

/* Begin recording times, if IBPROF_TIME asks for them; end recording times. */
void ibp_times_begin(void);
void ibp_times_end(void);

/* Add times to the records of another region from now on. */
void ibp_times_enter_region(void);

/* Move the times of region `from` to region `into`. */
void ibp_times_move(uint32_t from, uint32_t into);

/* Return whether a message of a derived datatype is known to be small. */
static inline bool ibp_is_small_of_derived(unsigned items, ibp_handle type)
{
    return ibp_datatype_size_offset && type && items * ibp_datatype_size_there(type) < 8 * IBP_TIMES_LARGE;
}

/* Return whether ibprof knows the size of a datatype's items without calling MPI. */
static inline bool ibp_items_are_known(ibp_handle type)
{
    return ibp_datatype_is_elementary(type) || (ibp_datatype_size_offset && type);
}

/* Return the smallest number of items that makes a message of a datatype large. Return 0 for a derived datatype,
 * because each message must be checked (ibp_is_small_of_derived). */
static inline uint32_t ibp_items_that_are_large(ibp_handle type)
{
    return ibp_datatype_is_elementary(type) ? IBP_TIMES_LARGE : 0;
}

/* Return whether a call moves a large message. `items` and `type` are the second and third argument of the call. */
static inline bool ibp_is_large(unsigned operation, long items, ibp_handle type)
{
    switch (operation) {
    case IBP_OPERATION_Send:
    case IBP_OPERATION_Bsend:
    case IBP_OPERATION_Ssend:
    case IBP_OPERATION_Rsend:
    case IBP_OPERATION_Isend:
    case IBP_OPERATION_Ibsend:
    case IBP_OPERATION_Issend:
    case IBP_OPERATION_Irsend:
    case IBP_OPERATION_Recv:
    case IBP_OPERATION_Irecv:
    case IBP_OPERATION_Mrecv:
    case IBP_OPERATION_Imrecv:
    case IBP_OPERATION_Put:
    case IBP_OPERATION_Get:
    case IBP_OPERATION_Rput:
    case IBP_OPERATION_Rget:
    case IBP_OPERATION_Accumulate:
    case IBP_OPERATION_Raccumulate:
        return (unsigned)items >= IBP_TIMES_LARGE ||
               (!ibp_datatype_is_elementary(type) && !ibp_is_small_of_derived((unsigned)items, type));
    default:
        return false;
    }
}

/* Return whether a call posts a message and has the same first arguments as MPI_Send or MPI_Recv. */
static inline __attribute__((always_inline)) bool ibp_posts_message(unsigned operation)
{
    return ibp_is_large(operation, IBP_TIMES_LARGE, 0) && operation != IBP_OPERATION_Mrecv &&
           operation != IBP_OPERATION_Imrecv;
}

/* If only randomly chosen calls are timed and this call is not chosen, count the call and return true. Return false if
 * the call must be timed from entry to return. */
static inline __attribute__((always_inline)) bool ibp_time_at_random(struct ibp_call *call)
{
    if (IBP_UNLIKELY(!call->time_at_random) || IBP_UNLIKELY(--call->until_timed < 0)) return false;
    call->time_at_random->calls++;
    ibp_times_waiting_since = 0;
    return true;
}

/* The timing of a call from entry to return; `time` is NULL if the call is not timed. */
struct ibp_timing {
    struct ibp_call *call;
    struct ibp_time *time;
    bool is_sampled, is_large;
    uint64_t begin;
    /* The ticks of all waits before the call. */
    uint64_t before;
};
void ibp_timing_begin(struct ibp_timing *timing, struct ibp_call *call, bool is_large);
void ibp_timing_end(const struct ibp_timing *timing);

/* Move the beginning of a call's timing to the entry, if the entry was at least 0.1 ms earlier. Possible reasons for
 * the delay: the process had no core, or the file system was slow. While several threads may be in MPI, the function
 * does nothing. */
void ibp_timing_extend(struct ibp_timing *timing, uint64_t entered_ticks);

/* Return an address in the wrapper's stack frame if this thread is in a timed call; otherwise 0. */
uintptr_t ibp_timed_frame(void);

/* Time a randomly chosen call from entry to return. Call this only while at most one thread can be in MPI. */
void ibp_times_choose_next(struct ibp_call *call);
void ibp_timing_end_chosen(struct ibp_call *call, uint64_t begin, uint64_t before);
static inline uint64_t ibp_timing_begin_chosen(struct ibp_call *call, uint64_t *before)
{
    ibp_times_choose_next(call);
    call->time_at_random->calls++;
    ibp_times_waiting_since = 0;
    *before = call->time_at_random->ticks;
    return ibp_clock_cycles();
}

/* End the timing of this thread's call before the program leaves the call by a non-local exit. The wrapper's stack
 * frame must still exist. */
void ibp_timing_leave(void);

/* The hooks of a progress loop call these functions before and after a pass. ibp_times_progress_begin returns 0 outside
 * of calls that wait. */
static inline uint64_t ibp_times_progress_begin(void)
{
    if (!ibp_get_here()->waited) return 0;
    if (!ibp_times_waiting_since) ibp_times_waiting_since = ibp_clock_cycles();
    return ibp_times_waiting_since;
}

static inline void ibp_times_progress_end(uint64_t begin)
{
    struct ibp_time *const time = ibp_get_here()->waited;
    uint64_t now;

    /* If a callback of the program called MPI during this pass of the progress loop, ibp_times_waiting_since may have
     * changed. */
    if (IBP_UNLIKELY(!time) || IBP_UNLIKELY(begin != ibp_times_waiting_since)) return;
    now = ibp_clock_cycles();
    if (IBP_LIKELY(now > begin)) {
        time->ticks += now - begin;
        ibp_times_sum.ticks += now - begin;
    }
    ibp_times_waiting_since = now;
}

/* Before a call returns: add the time since the last pass of the progress loop, if ibp_times_see_exits is true. */
static inline void ibp_times_end_wait(void)
{
    if (IBP_UNLIKELY(ibp_times_waiting_since) && ibp_times_see_exits) ibp_times_progress_end(ibp_times_waiting_since);
}

#endif
