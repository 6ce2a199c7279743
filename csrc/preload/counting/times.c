/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/times.h"
#include "counting/communicator_names.h"
#include "counting/counters.h"
#include "counting/envelopes.h"
#include "counting/origins.h"
#include "counting/repeats.h"
#include "counting/samples.h"
#include "counting/wrapped_calls.h"
#include "libmpi/lock.h"
#include "platform/text.h"
#include "recording/operations.h"
#include "recording/process_state.h"
#include "recording/recording.h"

#include <stddef.h>
#include <string.h>

/* The first FIRST_CALLS calls of a site are timed from entry to return, to detect sites whose calls are long, for
 * example because they copy large messages. ibprof ignores a long call among the first SETUP_CALLS calls, because this
 * call may have set up a connection. */
#define FIRST_CALLS 16
#define SETUP_CALLS 4

/* A call is long if it spends this number of ticks (about 1 us) or more outside of the progress loop. */
#define LONG_TICKS 3000

/* A call was interrupted if it spends this number of ticks (about 0.1 ms) or more outside of the progress loop. */
#define INTERRUPTED_TICKS (100 * LONG_TICKS)

/* Number of the site's next calls that are timed from entry to return after a long call, to detect frequent long calls.
 * If any of these calls is long, ibprof multiplies the number by 4, up to WATCHED_MOST; otherwise ibprof divides the
 * number by 4. */
#define WATCHED_CALLS 64
#define WATCHED_MOST (1 << 16)

/* Minimum number of ticks between two recorded readings of the clock. */
#define NOTE_TICKS (UINT64_C(1) << 28)

bool ibp_times_recorded, ibp_times_see_progress, ibp_times_see_sends, ibp_times_see_exits, ibp_times_large_requests;
bool ibp_times_see_thread_waits;
IBP_THREAD_LOCAL struct ibp_thread_waits ibp_thread_waits;
uint64_t ibp_times_waiting_since;
struct ibp_times_sum ibp_times_sum;

/* List of the `ibp_call` elements whose `time` is set. */
static struct ibp_call *timed;

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15), noted, first_ticks, first_ns;

bool ibp_times_are_wanted(void)
{
    return strcmp(ibp_environment("IBPROF_TIME"), "0") != 0;
}

/* -- the clock ----------------------------------------------------------------------------------------------------- */

static void note_clock(struct ibp_process *process, uint64_t ticks)
{
    noted = ticks;
    process->clock_ticks[1] = ticks;
    process->clock_ns[1] = ibp_clock_ns();
}

void ibp_times_prepare(void)
{
    if (!ibp_times_are_wanted() || !ibp_clock_cycles_step()) return;
    first_ticks = ibp_clock_cycles();
    first_ns = ibp_clock_ns();
}

/* -- begin and end of recording times ------------------------------------------------------------------------------ */

/* Choose at random which call in the next block of IBP_TIMES_WEIGHT calls is timed. */
void ibp_times_choose_next(struct ibp_call *call)
{
    int64_t place;

    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    place = (int64_t)(random_state >> 32) % IBP_TIMES_WEIGHT;
    call->until_timed = call->after_timed + place;
    call->after_timed = IBP_TIMES_WEIGHT - 1 - place;
}

/* Switch the random choice of timed calls on, or off if `time` is NULL. */
static void set_random_choice(struct ibp_call *call, struct ibp_time *time)
{
    if (time == call->time_at_random) return;
    if (!time) ibp_repeats_take_back();
    call->time_at_random = time;
    call->after_timed = 0;
    if (time) ibp_times_choose_next(call);
}

void ibp_times_begin(void)
{
    struct ibp_process *process = ibp_counters.process;

    if (!process || !first_ticks) return;
    /* If the waits of threads are not hooked, ibprof can only time each call from entry to return. These readings of
     * the clock are slow, so ibprof times calls only if IBPROF_TIME is set. */
    if (ibp_threads_multiple && !ibp_times_see_thread_waits && !*ibp_environment("IBPROF_TIME")) return;
    ibp_times_recorded = true;
    process->times_weight = IBP_TIMES_WEIGHT;
    process->clock_ticks[0] = first_ticks;
    process->clock_ns[0] = first_ns;
    note_clock(process, ibp_clock_cycles());
    random_state ^= first_ticks;
    ibp_repeats_begin();
    if (ibp_mpi.is_behind_layer) return; /* take no samples: the program's handles are not the MPI library's handles */
    ibp_names_begin();
    if (ibp_envelopes_begin()) ibp_samples_begin(process);
}

void ibp_times_end(void)
{
    if (!ibp_times_recorded) return;
    ibp_times_recorded = false;
    ibp_repeats_end();
    if (ibp_sampling) ibp_envelopes_end();
    ibp_samples_end();
    note_clock(ibp_counters.process, ibp_clock_cycles());
    ibp_times_enter_region();
}

void ibp_times_enter_region(void)
{
    for (; timed; timed = timed->next_timed) {
        set_random_choice(timed, NULL);
        timed->time = NULL;
        timed->watched = 0;
        timed->context.waited = NULL;
    }
}

/* -- records ------------------------------------------------------------------------------------------------------- */

/* Return the time record of an origin, created if needed; NULL if the recording is full. */
static struct ibp_time *record_of(uint32_t origin)
{
    const uint32_t number = ibp_origin_record(origin);
    struct ibp_time *time;

    if (number == UINT32_MAX) return NULL;
    time = ibp_origin_time(origin);
    if (time) return time;
    time = ibp_recording_reserve(IBP_SEGMENT_TIMES);
    if (!time) return NULL;
    time->origin = number;
    ibp_recording_publish(IBP_SEGMENT_TIMES);
    ibp_origin_set_time(origin, time);
    return time;
}

/* Set the time record of a call, and decide how the call is timed. The lock must be held. */
static void find_record(struct ibp_call *call)
{
    const unsigned needs = ibp_wrapped_calls[call->operation].needs;
    const bool is_send = (needs & (IBP_SENDS | IBP_KEEPS_REQUEST)) == IBP_SENDS;
    const bool is_probe = call->operation == IBP_OPERATION_Probe || call->operation == IBP_OPERATION_Mprobe;
    const bool is_seen = ibp_threads_multiple ? ibp_times_see_thread_waits && !is_probe : ibp_times_see_progress;
    const bool is_long = !(needs & IBP_WAITS_IN_PROGRESS) || !is_seen || (is_send && !ibp_times_see_sends);

    call->time = record_of(ibp_context_origin(&call->context, &call->context.send));
    if (!call->time) return;
    call->next_timed = timed;
    timed = call;
    if (is_long)
        call->is_timed = true;
    else
        call->context.waited = call->time;
    if (!call->is_timed && call->time->timed >= FIRST_CALLS) set_random_choice(call, call->time);
}

void ibp_times_move(uint32_t from, uint32_t into)
{
    ibp_repeats_take_back();
    for (uint32_t origin = 1; ibp_times_recorded && origin <= ibp_origins_count(); origin++) {
        struct ibp_time *const old = ibp_origin_region(origin) == from ? ibp_origin_time(origin) : NULL, *time;

        if (!old || !old->calls) continue;
        time = record_of(ibp_origin_moved(origin, into));
        if (!time) continue;
        ibp_repeats_move(old, time);
        time->calls += old->calls;
        time->timed += old->timed;
        time->ticks += old->ticks;
        time->sampled += old->sampled;
        time->sampled_ticks += old->sampled_ticks;
        time->sampled_squares += old->sampled_squares;
        memset(&old->calls, 0, sizeof *old - offsetof(struct ibp_time, calls));
    }
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* The call of this thread that is timed from entry to return. */
static IBP_THREAD_LOCAL struct {
    /* Address of the call's `ibp_timing` in the wrapper's stack frame; 0 outside of timed calls. */
    uintptr_t frame;
    struct ibp_time *time;
    bool is_sampled;
    /* With several threads in MPI: true if this thread is inside a timed call. If the program leaves the call by a
     * non-local exit, `is_inside` remains true until the next call. */
    bool is_inside;
    uint64_t begin, before;
} timed_call;

/* State for several threads in MPI. `count`: threads inside timed calls. `changed`: ticks at which a thread last
 * entered or left a timed call. */
static struct {
    uint32_t count;
    uint64_t changed;
} inside;

/* Enter or leave a timed call, with several threads in MPI. The lock must be held. */
static void set_inside(bool is_inside, uint64_t now)
{
    if (inside.count && now > inside.changed) ibp_counters.process->busy_ticks += now - inside.changed;
    if (now > inside.changed) inside.changed = now;
    if (is_inside != timed_call.is_inside) inside.count += is_inside ? 1U : -1U;
    timed_call.is_inside = is_inside;
}

static void begin_timed(const struct ibp_timing *timing)
{
    timed_call.frame = (uintptr_t)timing;
    timed_call.time = timing->time;
    timed_call.is_sampled = timing->is_sampled;
    timed_call.begin = timing->begin;
    timed_call.before = timing->before;
}

/* Return a sum that grows during a call by the ticks of the call's waits: with several threads in MPI, the sum of the
 * thread's waits; otherwise `ticks` of the call's record. */
static uint64_t count_waits(const struct ibp_time *time)
{
    return ibp_threads_multiple ? ibp_thread_waits.ticks : time->ticks;
}

static uint64_t waited_since(const struct ibp_time *time, uint64_t before)
{
    return count_waits(time) - before;
}

uint64_t ibp_times_thread_wait_begin(void)
{
    const uint64_t now = ibp_thread_waits.time ? ibp_clock_cycles() : 0;

    if (!now) return 0;
    ibp_lock_among_threads();
    if (ibp_times_recorded) set_inside(true, now);
    ibp_unlock_among_threads();
    return now;
}

void ibp_times_thread_wait_end(struct ibp_time *time, uint64_t begin)
{
    const uint64_t now = ibp_clock_cycles(), ticks = now > begin ? now - begin : 0;

    ibp_lock_among_threads();
    if (ibp_times_recorded) {
        set_inside(false, now);
        time->ticks += ticks;
        ibp_times_sum.ticks += ticks;
        ibp_thread_waits.ticks += ticks;
    }
    ibp_unlock_among_threads();
    /* A callback of the program may have changed ibp_thread_waits by MPI calls during the wait. */
    ibp_thread_waits.time = time;
}

struct ibp_times_sum ibp_times_so_far(void)
{
    struct ibp_times_sum sum = ibp_times_sum;
    uint64_t now, waited;

    /* Add no time for a randomly chosen call. When this call returns, ibprof takes its time as an estimate for other
     * calls, unless the call was long. Long calls are rare. */
    if (!ibp_times_recorded || !timed_call.frame || timed_call.is_sampled) return sum;
    now = ibp_clock_cycles();
    waited = waited_since(timed_call.time, timed_call.before);
    if (now > timed_call.begin + waited) sum.ticks += now - timed_call.begin - waited;
    return sum;
}

/* Return whether a call is made inside a timed call. If the frame of the timed call no longer exists, the program has
 * left the timed call by a non-local exit. */
static bool is_nested(const struct ibp_timing *timing)
{
    return timed_call.frame && (uintptr_t)timing < timed_call.frame;
}

void ibp_timing_begin(struct ibp_timing *timing, struct ibp_call *call, bool is_large)
{
    timing->call = call;
    timing->time = NULL;
    timing->is_sampled = false;
    timing->is_large = is_large;
    ibp_thread_waits.time = NULL;
    if (!ibp_times_recorded || !ibp_counting || !ibp_is_active() || !ibp_operation_wanted[call->operation]) return;
    if (is_nested(timing)) return;
    ibp_lock();
    if (!call->time) find_record(call);
    if (call->time) {
        call->time->calls++;
        timing->is_sampled = call->time_at_random && !is_large && --call->until_timed < 0;
        if (!call->time_at_random || is_large || timing->is_sampled) timing->time = call->time;
    }
    if (timing->is_sampled) ibp_times_choose_next(call);
    if (timing->time) timing->before = count_waits(timing->time);
    ibp_times_waiting_since = 0;
    if (timing->time) timing->begin = ibp_clock_cycles();
    if (ibp_threads_multiple) ibp_thread_waits.time = call->time_at_random;
    if (timing->time && ibp_threads_multiple && !timing->is_sampled) {
        ibp_thread_waits.time = NULL;
        set_inside(true, timing->begin);
    }
    ibp_unlock();
    if (timing->time) begin_timed(timing);
}

void ibp_timing_extend(struct ibp_timing *timing, uint64_t entered_ticks)
{
    if (!timing->time || timing->is_sampled || ibp_threads_multiple || !entered_ticks) return;
    if ((int64_t)(timing->begin - entered_ticks) < INTERRUPTED_TICKS) return;
    timing->begin = timed_call.begin = entered_ticks;
}

static void add_to_estimate(struct ibp_time *time, uint64_t ticks)
{
    time->sampled_ticks += ticks;
    ibp_times_sum.sampled_ticks += ticks;
    time->sampled_squares += (double)ticks * (double)ticks;
}

/* After a long call, time each of the site's next calls from entry to return. `long_ticks`: ticks of the long call. If
 * another call of the site is long, `long_ticks` is an estimate for other calls. */
static void watch(struct ibp_call *call, uint64_t long_ticks)
{
    if (call->watch_span < WATCHED_CALLS) call->watch_span = WATCHED_CALLS;
    call->long_ticks = long_ticks;
    call->watched = call->watch_span;
}

static void end_sampled(const struct ibp_timing *timing, uint64_t ticks)
{
    struct ibp_time *const time = timing->time;
    struct ibp_call *const call = timing->call;
    const uint64_t waited = waited_since(time, timing->before), rest = ticks > waited ? ticks - waited : 0;

    time->sampled++;
    if (rest < LONG_TICKS) {
        add_to_estimate(time, rest);
        return;
    }
    /* The call's time is no estimate for other calls, because an interrupt or another process may have delayed the
     * call. To see whether calls of the site are often long, time the next calls from entry to return. */
    time->ticks += rest;
    ibp_times_sum.ticks += rest;
    set_random_choice(call, NULL);
    watch(call, rest);
}

/* A further call of the site is long, so long calls are frequent. Unless both long calls were interrupted, subtract the
 * shorter of their times from `time->ticks`, and use this shorter time as an estimate for other calls. */
static void watch_further(struct ibp_call *call, struct ibp_time *time, uint64_t rest)
{
    const uint64_t common = rest < call->long_ticks ? rest : call->long_ticks;

    if (rest < INTERRUPTED_TICKS && call->watch_span < WATCHED_MOST) call->watch_span *= 4;
    watch(call, 0);
    if (common >= INTERRUPTED_TICKS) return;
    time->ticks -= common;
    ibp_times_sum.ticks -= common;
    add_to_estimate(time, common);
}

static void end_whole(const struct ibp_timing *timing, uint64_t ticks)
{
    struct ibp_time *const time = timing->time;
    struct ibp_call *const call = timing->call;
    const uint64_t rest = ticks - waited_since(time, timing->before);

    time->timed++;
    time->ticks += rest;
    ibp_times_sum.ticks += rest;
    if (call->is_timed || timing->is_large || time != call->time) return;
    if (call->watched && rest >= LONG_TICKS) {
        watch_further(call, time, rest);
        return;
    }
    if (call->watched && !--call->watched)
        call->watch_span /= 4;
    else if (call->watched)
        return;
    else if (rest >= LONG_TICKS && time->timed > SETUP_CALLS)
        watch(call, 0);
    if (!call->watched && time->timed >= FIRST_CALLS) set_random_choice(call, time);
}

void ibp_timing_end(const struct ibp_timing *timing)
{
    const uint64_t now = timing->time ? ibp_clock_cycles() : 0;
    const uint64_t ticks = now > timing->begin ? now - timing->begin : 0;

    ibp_thread_waits.time = NULL;
    if (!timing->time) {
        if (ibp_times_recorded) ibp_times_end_wait();
        return;
    }
    timed_call.frame = 0;
    if (!ibp_times_recorded) return;
    ibp_lock();
    if (timing->is_sampled)
        end_sampled(timing, ticks);
    else
        end_whole(timing, ticks);
    if (ibp_threads_multiple && !timing->is_sampled) set_inside(false, now);
    if (now - noted > NOTE_TICKS) note_clock(ibp_counters.process, now);
    ibp_unlock();
}

void ibp_timing_end_chosen(struct ibp_call *call, uint64_t begin, uint64_t before)
{
    const uint64_t now = ibp_clock_cycles();
    const struct ibp_timing timing = {.call = call, .time = call->time_at_random, .before = before};

    /* `time` is NULL if a callback of the program has ended the recording or begun another region during the call. */
    if (timing.time) end_sampled(&timing, now > begin ? now - begin : 0);
    if (now - noted > NOTE_TICKS) note_clock(ibp_counters.process, now);
}

uintptr_t ibp_timed_frame(void)
{
    return timed_call.frame;
}

void ibp_timing_leave(void)
{
    const struct ibp_timing *const timing = (const struct ibp_timing *)timed_call.frame;

    if (!timing) return;
    timed_call.frame = 0;
    /* Give up if the lock is not free. The program may have left the call from a signal handler while this thread held
     * the lock. */
    if (ibp_threads_multiple) {
        if (!ibp_try_lock_among_threads()) return;
        ibp_unlock_among_threads();
    }
    ibp_timing_end(timing);
}
