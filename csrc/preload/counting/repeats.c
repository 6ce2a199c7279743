/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/repeats.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/process_state.h"

#define PLACES (2 * IBP_REPEATS)

_Static_assert(IBP_OPERATIONS < IBP_REPEATS, "no two operations are scattered alike");
_Static_assert(sizeof(struct ibp_repeat) == 128, "an address is a multiple of a place's size, divided by 8");

struct ibp_repeat ibp_no_repeats[PLACES], *ibp_repeats = ibp_no_repeats, *ibp_repeats_between = ibp_no_repeats;

/* The table of a thread. `listed`: the entries that were used since ibp_repeats_take_back. */
struct table {
    struct ibp_repeat places[PLACES];
    struct ibp_repeat *listed;
};

static bool is_recording, is_stale;
static uint32_t watched[IBP_WATCHED];

/* There is one table, or one table for each thread if several threads may be in MPI. The table of an ended thread is
 * not freed. */
#define TABLES_MAX 256
static struct table *tables[TABLES_MAX];
static uint32_t tables_count;

IBP_THREAD_LOCAL struct ibp_repeat *ibp_repeats_of_thread;
IBP_THREAD_LOCAL uint64_t ibp_repeats_generation_of_thread;
uint64_t ibp_repeats_generation = 3;

static struct table *table_of(struct ibp_repeat *places)
{
    return (struct table *)places;
}

/* Create a table. Return NULL if there are too many tables, or if memory is exhausted. */
static struct table *make_table(void)
{
    struct table *const made = tables_count < TABLES_MAX ? ibp_memory_map(sizeof *made) : NULL;

    if (made) tables[tables_count++] = made;
    return made;
}

/* -- conditions for granting calls --------------------------------------------------------------------------------- */

void ibp_repeats_choose(void)
{
    const bool is_watching = watched[IBP_WATCHED_REQUESTS] || watched[IBP_WATCHED_RECEIVES];

    if (ibp_threads_multiple) {
        if (is_recording && !is_watching && ibp_is_active() && ibp_counting)
            __atomic_and_fetch(&ibp_repeats_generation, ~UINT64_C(1), __ATOMIC_RELAXED);
        else
            __atomic_or_fetch(&ibp_repeats_generation, 1, __ATOMIC_RELAXED);
        return;
    }
    ibp_repeats_between =
        is_recording && ibp_between->is_outside && !is_watching && !is_stale ? tables[0]->places : ibp_no_repeats;
    if (ibp_get_here()->is_outside || ibp_get_here() == ibp_between) ibp_repeats = ibp_repeats_between;
}

void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count)
{
    watched[which] = count;
    ibp_repeats_choose();
}

void ibp_repeats_begin(void)
{
    if (!ibp_sites_recorded) return;
    is_recording = ibp_threads_multiple || tables_count || make_table();
    ibp_repeats_choose();
}

static void make_generation(void)
{
    __atomic_add_fetch(&ibp_repeats_generation, 2, __ATOMIC_RELEASE);
}

void ibp_repeats_forget_later(void)
{
    make_generation();
    __atomic_store_n(&is_stale, true, __ATOMIC_RELEASE);
    __atomic_store_n(&ibp_repeats_between, ibp_no_repeats, __ATOMIC_RELAXED);
    __atomic_store_n(&ibp_repeats, ibp_no_repeats, __ATOMIC_RELAXED);
}

/* -- taking back --------------------------------------------------------------------------------------------------- */

static int32_t left_of(const struct ibp_repeat *repeat)
{
    const int32_t left = __atomic_load_n(&repeat->left, __ATOMIC_RELAXED);

    return left > 0 ? left : 0;
}

static void take_back_messages(struct ibp_repeat *repeat)
{
    struct ibp_repeat **place = repeat->messages ? &repeat->messages->granted : NULL;

    if (!place) return;
    repeat->messages->left += left_of(repeat);
    while (*place != repeat) place = &(*place)->next;
    *place = repeat->next;
    repeat->messages = NULL;
}

static void take_back(struct ibp_repeat *repeat)
{
    if (!repeat->address) return;
    repeat->address = NULL;
    if (repeat->call->time_at_random == repeat->time) repeat->call->until_timed += left_of(repeat);
    repeat->time->calls += (uint64_t)(repeat->granted - left_of(repeat));
    take_back_messages(repeat);
}

static void take_back_table(struct table *table)
{
    for (struct ibp_repeat *place; (place = table->listed);) {
        take_back(place);
        place->is_listed = false;
        table->listed = place->next_listed;
    }
}

void ibp_repeats_take_back(void)
{
    if (ibp_threads_multiple) make_generation();
    for (uint32_t i = 0; i < tables_count; i++) {
        if (!ibp_threads_multiple || tables[i]->places == ibp_repeats_of_thread)
            take_back_table(tables[i]);
        else
            for (struct ibp_repeat *place = tables[i]->listed; place; place = place->next_listed)
                take_back_messages(place);
    }
}

void ibp_messages_take_back(struct ibp_messages_left *messages)
{
    const uintptr_t own = (uintptr_t)ibp_repeats_of_thread;

    while (messages->granted) {
        struct ibp_repeat *const place = messages->granted;

        if (!ibp_threads_multiple || (uintptr_t)place - own < sizeof(struct table)) {
            take_back(place);
        } else {
            make_generation();
            take_back_messages(place);
        }
    }
}

void ibp_repeats_move(const struct ibp_time *from, struct ibp_time *into)
{
    for (uint32_t i = 0; i < tables_count; i++)
        for (struct ibp_repeat *place = tables[i]->listed; place; place = place->next_listed)
            if (place->time == from) place->time = into;
}

/* Call this only while no other thread is in MPI. */
void ibp_repeats_end(void)
{
    for (uint32_t i = 0; i < tables_count; i++) take_back_table(tables[i]);
    is_recording = false;
    ibp_repeats_choose();
}

/* -- granting ------------------------------------------------------------------------------------------------------ */

static void grant(struct table *table, struct ibp_repeat *place, const void *address, const struct ibp_repeat *repeat)
{
    struct ibp_call *const call = repeat->call;
    int64_t most = IBP_REPEATS_MOST;

    if (call->until_timed < most) most = call->until_timed;
    /* Grant at most half of the messages that the envelope has left, because other entries may have the same
     * envelope. */
    if (repeat->messages && repeat->messages->left / 2 < most) most = repeat->messages->left / 2;
    if (most <= 0 || !call->time_at_random) return;
    call->until_timed -= most;
    place->call = call;
    place->communicator = repeat->communicator;
    place->type = repeat->type;
    place->peer = repeat->peer;
    place->tag = repeat->tag;
    place->large = repeat->large;
    place->messages = repeat->messages;
    place->time = call->time_at_random;
    place->left = place->granted = (int32_t)most;
    place->address = address;
    if (!place->is_listed) {
        place->is_listed = true;
        place->next_listed = table->listed;
        table->listed = place;
    }
    if (!repeat->messages) return;
    repeat->messages->left -= most;
    place->next = repeat->messages->granted;
    repeat->messages->granted = place;
}

void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat)
{
    struct ibp_repeat *place;

    if (IBP_UNLIKELY(__atomic_load_n(&is_stale, __ATOMIC_ACQUIRE))) {
        is_stale = false;
        ibp_repeats_take_back();
        ibp_repeats_choose();
    }
    if (ibp_repeats == ibp_no_repeats) return;
    place = ibp_repeat_in(ibp_repeats, repeat->call->operation, address);
    take_back(place);
    grant(table_of(ibp_repeats), place, address, repeat);
}

/* Return whether this thread has a table; create it if needed. */
static bool has_places(void)
{
    struct table *table;

    if (IBP_LIKELY(ibp_repeats_of_thread)) return true;
    ibp_lock_among_threads();
    table = make_table();
    ibp_unlock_among_threads();
    if (table) ibp_repeats_of_thread = table->places;
    return table;
}

void ibp_repeat_grant_among_threads(const void *address, const struct ibp_repeat *repeat, uint64_t generation)
{
    struct ibp_repeat *place;
    bool is_second;

    if (generation & 1 || !has_places()) return;
    place = ibp_repeat_in(ibp_repeats_of_thread, repeat->call->operation, address);
    is_second = place->last_address == address && place->last_messages == repeat->messages;
    place->last_address = address;
    place->last_messages = repeat->messages;
    if (!is_second && !place->address) return;
    ibp_lock_among_threads();
    if (generation == ibp_repeats_now()) {
        if (ibp_repeats_generation_of_thread != generation) take_back_table(table_of(ibp_repeats_of_thread));
        ibp_repeats_generation_of_thread = generation;
        take_back(place);
        if (is_second) grant(table_of(ibp_repeats_of_thread), place, address, repeat);
    }
    ibp_unlock_among_threads();
}
