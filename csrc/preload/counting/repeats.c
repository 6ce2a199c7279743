/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/repeats.h"
#include "libmpi/lock.h"
#include "platform/memory.h"

#define PLACES (2 * IBP_REPEATS)

_Static_assert(IBP_OPERATIONS < IBP_REPEATS, "no two operations are scattered alike");

struct ibp_repeat ibp_no_repeats[PLACES], *ibp_repeats = ibp_no_repeats, *ibp_repeats_between = ibp_no_repeats;

static struct ibp_repeat *places;
static bool is_recording, is_stale;
static uint32_t used, watched[IBP_WATCHED];

void ibp_repeats_choose(void)
{
    const bool is_watching = watched[IBP_WATCHED_REQUESTS] || watched[IBP_WATCHED_RECEIVES];

    ibp_repeats_between =
        is_recording && ibp_between->is_outside && !is_watching && !is_stale ? places : ibp_no_repeats;
    if (ibp_get_here()->is_outside || ibp_get_here() == ibp_between) ibp_repeats = ibp_repeats_between;
}

void ibp_repeats_set_watched(enum ibp_watched which, uint32_t count)
{
    watched[which] = count;
    ibp_repeats_choose();
}

void ibp_repeats_begin(void)
{
    if (ibp_threads_multiple || !ibp_sites_recorded) return;
    if (!places) places = ibp_memory_map(PLACES * sizeof *places);
    is_recording = places;
    ibp_repeats_choose();
}

void ibp_repeats_end(void)
{
    ibp_repeats_take_back();
    is_recording = false;
    ibp_repeats_choose();
}

static void take_back(struct ibp_repeat *repeat)
{
    const int32_t left = repeat->left > 0 ? repeat->left : 0, made = repeat->granted - left;

    repeat->address = NULL;
    used--;
    repeat->call->until_timed -= made;
    repeat->call->time_at_random->calls += (uint64_t)made;
    if (!repeat->messages) return;
    repeat->messages->left += left;
    for (struct ibp_repeat **place = &repeat->messages->granted; *place; place = &(*place)->next)
        if (*place == repeat) {
            *place = repeat->next;
            break;
        }
}

void ibp_repeats_take_back(void)
{
    for (uint32_t i = 0; used && i < PLACES; i++)
        if (places[i].address) take_back(&places[i]);
}

void ibp_repeats_forget_later(void)
{
    __atomic_store_n(&is_stale, true, __ATOMIC_RELEASE);
    __atomic_store_n(&ibp_repeats_between, ibp_no_repeats, __ATOMIC_RELAXED);
    __atomic_store_n(&ibp_repeats, ibp_no_repeats, __ATOMIC_RELAXED);
}

void ibp_messages_take_back(struct ibp_messages_left *messages)
{
    while (messages->granted) take_back(messages->granted);
}

void ibp_repeat_grant(const void *address, const struct ibp_repeat *repeat)
{
    struct ibp_repeat *place;
    int64_t most = IBP_REPEATS_MOST;

    if (IBP_UNLIKELY(__atomic_load_n(&is_stale, __ATOMIC_ACQUIRE))) {
        is_stale = false;
        ibp_repeats_take_back();
        ibp_repeats_choose();
    }
    if (ibp_repeats == ibp_no_repeats) return;
    place = ibp_repeat_at(repeat->call->operation, address);
    if (place->address) take_back(place);
    if (repeat->call->until_timed < most) most = repeat->call->until_timed;
    /* Another place may use the same envelope. */
    if (repeat->messages && repeat->messages->left / 2 < most) most = repeat->messages->left / 2;
    if (most <= 0) return;
    *place = *repeat;
    place->address = address;
    place->left = place->granted = (int32_t)most;
    used++;
    if (!repeat->messages) return;
    repeat->messages->left -= most;
    place->next = repeat->messages->granted;
    repeat->messages->granted = place;
}
