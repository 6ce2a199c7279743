/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Every one-sided call, on a window that one of four calls made.
 *
 *     onesided create|allocate|shared|dynamic
 *
 * The program notes the user's data that the origin sends and gets back.
 */
#include "tally.h"

#include <mpi.h>
#include <string.h>

#define BYTES (1 << 16)
#define ITEMS 512

static MPI_Comm reversed;
static MPI_Win window;
static MPI_Aint *bases; /* displacement of each rank's part, as this kind of window needs it */
static int me, ranks;
static int give[BYTES / sizeof(int)], get[BYTES / sizeof(int)];

static int world_rank(int target)
{
    return ranks - 1 - target;
}

static void sent(const char *operation, int target, long bytes)
{
    tally_add(operation, me, world_rank(target), bytes);
}

static void fetched(const char *operation, int target, long bytes)
{
    tally_add(operation, world_rank(target), me, bytes);
}

static void transfer(int target, int items)
{
    const long bytes = items * (long)sizeof(int);
    const MPI_Aint at = bases[target] + (MPI_Aint)(1024 * (size_t)world_rank(me));

    MPI_Put(give, items, MPI_INT, target, at, items, MPI_INT, window);
    sent("PUT", target, bytes);
    MPI_Get(get, items, MPI_INT, target, bases[target] + BYTES / 2, items, MPI_INT, window);
    fetched("GET", target, bytes);
    MPI_Put(give, items, MPI_INT, MPI_PROC_NULL, 0, items, MPI_INT, window);
}

static void accumulate(int target, int items)
{
    const long bytes = items * (long)sizeof(int);
    const MPI_Aint at = bases[target];

    MPI_Accumulate(give, items, MPI_INT, target, at, items, MPI_INT, MPI_SUM, window);
    sent("ACCUMULATE", target, bytes);
    MPI_Get_accumulate(give, items, MPI_INT, get, items, MPI_INT, target, at, items, MPI_INT, MPI_SUM, window);
    sent("GET_ACCUMULATE", target, bytes);
    fetched("GET_ACCUMULATE", target, bytes);
    MPI_Get_accumulate(NULL, 0, MPI_INT, get, items, MPI_INT, target, at, items, MPI_INT, MPI_NO_OP, window);
    fetched("GET_ACCUMULATE", target, bytes);
    MPI_Fetch_and_op(give, get, MPI_INT, target, at, MPI_SUM, window);
    sent("FETCH_AND_OP", target, sizeof(int));
    fetched("FETCH_AND_OP", target, sizeof(int));
    MPI_Compare_and_swap(give, give + 1, get, MPI_INT, target, at, window);
    sent("COMPARE_AND_SWAP", target, 2 * sizeof(int));
    fetched("COMPARE_AND_SWAP", target, sizeof(int));
}

static void with_requests(int target, int items)
{
    const long bytes = items * (long)sizeof(int);
    const MPI_Aint at = bases[target];
    MPI_Request request;

    MPI_Rput(give, items, MPI_INT, target, at, items, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sent("RPUT", target, bytes);
    MPI_Rget(get, items, MPI_INT, target, at, items, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fetched("RGET", target, bytes);
    MPI_Raccumulate(give, items, MPI_INT, target, at, items, MPI_INT, MPI_SUM, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sent("RACCUMULATE", target, bytes);
    MPI_Rget_accumulate(give, items, MPI_INT, get, items, MPI_INT, target, at, items, MPI_INT, MPI_SUM, window,
                        &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sent("RGET_ACCUMULATE", target, bytes);
    fetched("RGET_ACCUMULATE", target, bytes);
}

static void use_fences(void)
{
    MPI_Win_fence(0, window);
    for (int target = 0; target < ranks; target++) transfer(target, 10 + target);
    MPI_Win_fence(0, window);
    transfer((world_rank(me) + 1) % ranks, ITEMS);
    MPI_Win_fence(0, window);
}

static void use_locks(void)
{
    for (int target = 0; target < ranks; target++) {
        MPI_Win_lock(target % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, window);
        transfer(target, 20);
        MPI_Win_flush(target, window);
        accumulate(target, 30);
        MPI_Win_unlock(target, window);
    }
    MPI_Barrier(reversed);
    MPI_Win_lock_all(0, window);
    for (int target = 0; target < ranks; target++) with_requests(target, 40 + target);
    MPI_Win_flush_all(window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(reversed);
}

/* Post, start, complete and wait with the two neighbours in a ring. */
static void use_groups(void)
{
    const int here = world_rank(me);
    const int next = (here + 1) % ranks, previous = (here + ranks - 1) % ranks;
    MPI_Group all, targets, origins;

    MPI_Comm_group(reversed, &all);
    MPI_Group_incl(all, 1, &next, &targets);
    MPI_Group_incl(all, 1, &previous, &origins);
    MPI_Win_post(origins, 0, window);
    MPI_Win_start(targets, 0, window);
    transfer(next, 50);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Group_free(&targets);
    MPI_Group_free(&origins);
    MPI_Group_free(&all);
}

static void make_window(const char *kind)
{
    void *memory = NULL;
    MPI_Aint base = 0;

    if (!strcmp(kind, "create")) {
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, reversed, &window);
    } else if (!strcmp(kind, "allocate")) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, reversed, &memory, &window);
    } else if (!strcmp(kind, "shared")) {
        MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, reversed, &memory, &window);
    } else {
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
        MPI_Win_create_dynamic(MPI_INFO_NULL, reversed, &window);
        MPI_Win_attach(window, memory, BYTES);
        MPI_Get_address(memory, &base);
    }
    memset(memory, 0, BYTES);
    bases = calloc((size_t)ranks, sizeof *bases);
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, reversed);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    make_window(argc > 1 ? argv[1] : "create");
    use_fences();
    use_locks();
    use_groups();
    MPI_Win_free(&window);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
