/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Time inside MPI calls. Two reads of a clock in each call would cost more than all else that ibprof does.
 *
 *   - Calls that wait do so in the progress loop of the MPI library. Where that is hooked, the clock is read there, from
 *     the first pass of a call to its last one. A call that finds all done at once reads no clock.
 *   - Of all calls, one in IBP_TIMES_WEIGHT, chosen at random, is timed as a whole. What the progress loop did not see
 *     of it stands for the calls that were not chosen. The estimate is unbiased, since what is chosen does not depend
 *     on the calls.
 *   - The first calls of a site are timed as a whole. So are some after one of these or a chosen one that was long, and all
 *     from then on if another one is long too.
 *   - So are sends, receives and one-sided calls of large messages, which MPI may copy outside of the progress loop. A
 *     derived datatype may be of any size, and counts as large.
 *   - So are calls that poll: they pass the progress loop each time, so that the clock is read anyway.
 *   - So are collectives, all calls where the progress loop is not hooked, and all while several threads are in MPI.
 *
 * Ticks are those of the processor's cycle counter. They are compared within a process only.
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

#define IBP_TIMES_WEIGHT 64

/* Items of a large message, of predefined datatypes. */
#define IBP_TIMES_LARGE 1024

/* Times are recorded: IBPROF_TIME is 1, there is a clock, and calls are recorded. */
extern IBP_INTERNAL bool ibp_times_recorded;

/* The progress loop is hooked, and reads the clock (below). Set by the source before times are begun. */
extern IBP_INTERNAL bool ibp_times_see_progress;

/* So do calls that send and wait. */
extern IBP_INTERNAL bool ibp_times_see_sends;

/* Persistent requests of large messages were made: their starts are timed as a whole. */
extern IBP_INTERNAL bool ibp_times_large_requests;

/* Number of calls until the next one is chosen. */
extern IBP_INTERNAL int64_t ibp_times_countdown;

/* When the present call began to wait, or when the last pass of the progress loop ended; 0 before. */
extern IBP_INTERNAL uint64_t ibp_times_waiting_since;

/* Sums over all records. */
struct ibp_times_sum {
    uint64_t ticks, sampled_ticks;
};
extern IBP_INTERNAL struct ibp_times_sum ibp_times_sum;

/* Return these sums at this moment: with what has passed of a call of this thread that is timed as a whole. */
struct ibp_times_sum ibp_times_so_far(void);

/* Return whether the user wants times: IBPROF_TIME. */
bool ibp_times_are_wanted(void);

/* Note the clock when MPI begins, to measure its rate. */
void ibp_times_prepare(void);

/* Begin and end recording times, if they are wanted. */
void ibp_times_begin(void);
void ibp_times_end(void);

/* Count times in another region from now on. */
void ibp_times_enter_region(void);

/* Move what was counted in one region to another. */
void ibp_times_move(uint32_t from, uint32_t into);

/* Return whether a call moves a large message, by the number of items and their datatype, which are its second and third
 * argument. */
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
        return (unsigned)items >= IBP_TIMES_LARGE || !ibp_datatype_is_object(type);
    default:
        return false;
    }
}

/* Enter a call that need not be timed as a whole. Return false for all others. */
static inline __attribute__((always_inline)) bool ibp_time_at_random(const struct ibp_call *call)
{
    if (IBP_UNLIKELY(!call->time_at_random) || IBP_UNLIKELY(--ibp_times_countdown < 0)) return false;
    call->time_at_random->calls++;
    ibp_times_waiting_since = 0;
    return true;
}

/* A call that is timed as a whole; `time` is NULL where it is not. */
struct ibp_timing {
    struct ibp_call *call;
    struct ibp_time *time;
    bool is_sampled, is_large;
    uint64_t begin;
    /* The record's ticks when the call began. */
    uint64_t before;
};
void ibp_timing_begin(struct ibp_timing *timing, struct ibp_call *call, bool is_large);
void ibp_timing_end(const struct ibp_timing *timing);

/* Return an address in the frame that times this thread's call as a whole; 0 outside of such a call. */
uintptr_t ibp_timed_frame(void);

/* End the timing of that call: the program leaves it without a return. Its frame must still be there. */
void ibp_timing_leave(void);

/* Called by the hooks of a progress loop: before and after a pass. The first returns 0 when the call is not one that
 * waits. */
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

    /* A callback of the program may have made calls meanwhile. */
    if (IBP_UNLIKELY(!time) || IBP_UNLIKELY(begin != ibp_times_waiting_since)) return;
    now = ibp_clock_cycles();
    if (IBP_LIKELY(now > begin)) {
        time->ticks += now - begin;
        ibp_times_sum.ticks += now - begin;
    }
    ibp_times_waiting_since = now;
}

#endif
