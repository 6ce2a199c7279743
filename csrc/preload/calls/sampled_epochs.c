/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/sampled_epochs.h"
#include "calls/sampled_messages.h"
#include "counting/envelopes.h"
#include "counting/message_order.h"
#include "counting/samples.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "recording/operations.h"

#include <stdbool.h>
#include <string.h>

enum { WINDOWS = 64, PEERS_MAX = 256, POOL = 4096, TAG_OF_POSTS = 0, TAG_OF_COMPLETIONS = 1 };

/* The processes of an epoch in progress: their ranks in the window are `count` elements of `pool`, from index
 * `begin`. */
struct epoch {
    int count, begin;
};

static struct window {
    /* 0 if the entry is free. */
    ibp_handle handle;
    struct epoch access, exposure;
} windows[WINDOWS];

static int pool[POOL], pool_used;

/* True after ibprof could not record an epoch: its processes were unknown, or `windows` or `pool` was full. From then
 * on, the numbers of epochs are unknown. */
static bool is_lost;

static void end(struct epoch *epoch)
{
    const int count = epoch->count, after = epoch->begin + count;

    if (!count) return;
    memmove(pool + epoch->begin, pool + after, sizeof *pool * (size_t)(pool_used - after));
    pool_used -= count;
    for (unsigned i = 0; i < WINDOWS; i++) {
        if (windows[i].access.begin >= after) windows[i].access.begin -= count;
        if (windows[i].exposure.begin >= after) windows[i].exposure.begin -= count;
    }
    *epoch = (struct epoch){0};
}

static bool begin(struct epoch *epoch, int count, const int *peers)
{
    end(epoch);
    if (pool_used + count > POOL) return false;
    *epoch = (struct epoch){.count = count, .begin = pool_used};
    memcpy(pool + pool_used, peers, sizeof *pool * (size_t)count);
    pool_used += count;
    return true;
}

/* Return the entry of a window, created if needed; NULL if the table is full. */
static struct window *find(ibp_handle handle)
{
    struct window *free_place = NULL;

    for (unsigned i = 0; i < WINDOWS; i++) {
        if (windows[i].handle == handle) return &windows[i];
        if (!windows[i].handle && !free_place) free_place = &windows[i];
    }
    if (free_place) *free_place = (struct window){.handle = handle};
    return free_place;
}

void ibp_epochs_forget(ibp_handle window)
{
    for (unsigned i = 0; i < WINDOWS; i++) {
        if (windows[i].handle != window) continue;
        end(&windows[i].access);
        end(&windows[i].exposure);
        windows[i].handle = 0;
    }
}

/* Write each group member's rank in the window to `peers`. Return the number of members; -1 if MPI reports an error or
 * the group has more than PEERS_MAX members. The lock must be free. */
static int read_group(ibp_handle group, ibp_handle window, int *peers)
{
    ibp_handle all = 0;
    int ranks[PEERS_MAX], count = 0;
    bool is_read;

    if (ibp_mpi.group_size(group, &count) || count > PEERS_MAX) return -1;
    if (ibp_mpi.win_get_group(window, &all)) return -1;
    for (int i = 0; i < count; i++) ranks[i] = i;
    is_read = !ibp_mpi.group_translate_ranks(group, count, ranks, all, peers);
    ibp_mpi.group_free(&all);
    return is_read ? count : -1;
}

/* A call that begins or ends an epoch counts as one message to or from each process of the epoch. Assign sequence
 * numbers to these messages, and record their samples. */
static void keep(ibp_handle window, const struct epoch *epoch, int tag, enum ibp_side side, bool is_last,
                 struct ibp_instance_known *known, uint64_t exit_ns)
{
    const enum ibp_side of_end = side == IBP_SIDE_NOTIFIER ? IBP_SIDE_SENDER : IBP_SIDE_RECEIVER;

    for (int i = 0; i < epoch->count; i++) {
        const int peer = pool[epoch->begin + i];
        const struct ibp_numbered numbered =
            is_last ? ibp_envelope_number(window, peer, tag, of_end, 0) : ibp_envelope_peek(window, peer, tag, of_end);

        if (!numbered.is_sampled || !ibp_counting) continue;
        ibp_message_set_number(known, &numbered, tag);
        ibp_message_keep(known, side, &(struct ibp_completing){known->origin, 0, known->start_ns, exit_ns});
    }
}

static bool begins_epoch(unsigned operation)
{
    return operation == IBP_OPERATION_Win_post || operation == IBP_OPERATION_Win_start;
}

uint64_t ibp_epoch_begin(unsigned operation)
{
    const bool ends = operation == IBP_OPERATION_Win_complete || operation == IBP_OPERATION_Win_wait ||
                      operation == IBP_OPERATION_Win_test;

    return ibp_sampling && (ends || begins_epoch(operation)) ? ibp_clock_monotonic_ns() : 0;
}

void ibp_epoch_end(uint64_t enter_ns, const struct ibp_called *called)
{
    const unsigned operation = called->operation;
    const ibp_handle handle = IBP_HANDLE(called->arguments[begins_epoch(operation) ? 2 : 0]);
    const uint64_t exit_ns = ibp_clock_monotonic_ns();
    struct ibp_instance_known known = {.bytes = IBP_BYTES_UNKNOWN, .start_ns = enter_ns};
    struct window *window;
    int peers[PEERS_MAX], count;

    if (!ibp_sampling || is_lost) return;
    if (operation == IBP_OPERATION_Win_test && !*(const int *)called->arguments[1]) return;
    count = begins_epoch(operation) ? read_group(IBP_HANDLE(called->arguments[0]), handle, peers) : 0;
    ibp_lock();
    ibp_window_find(handle);
    window = count >= 0 ? find(handle) : NULL;
    if (!window || (begins_epoch(operation) &&
                    !begin(operation == IBP_OPERATION_Win_post ? &window->exposure : &window->access, count, peers)))
        is_lost = true;
    if (!is_lost) {
        known.origin = ibp_call_origin_record(called->call);
        switch (operation) {
        case IBP_OPERATION_Win_post:
            keep(handle, &window->exposure, TAG_OF_POSTS, IBP_SIDE_NOTIFIER, true, &known, exit_ns);
            break;
        case IBP_OPERATION_Win_start:
            keep(handle, &window->access, TAG_OF_POSTS, IBP_SIDE_WAITER, false, &known, exit_ns);
            break;
        case IBP_OPERATION_Win_complete:
            keep(handle, &window->access, TAG_OF_POSTS, IBP_SIDE_WAITER, true, &known, exit_ns);
            keep(handle, &window->access, TAG_OF_COMPLETIONS, IBP_SIDE_NOTIFIER, true, &known, exit_ns);
            end(&window->access);
            break;
        default:
            keep(handle, &window->exposure, TAG_OF_COMPLETIONS, IBP_SIDE_WAITER, true, &known, exit_ns);
            end(&window->exposure);
        }
    }
    ibp_unlock();
}
