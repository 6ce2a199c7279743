/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Nonblocking collectives that send after their call. `between`: the collectives are between two groups of different
 * sizes, which also send within the group. `freed`: the communicator is freed, and the next communicator may reuse the
 * handle. `persistent`, `freed-persistent`: persistent collectives start in between, on MPI_COMM_WORLD or on a freed
 * communicator. `made`: communicators, windows and files are created from the communicator. `failed`: other calls
 * fail. `neighbours`: neighbourhood collectives follow, after calls in which some ranks send nothing. `blocking`:
 * blocking collectives follow.
 *
 *     pending_collectives HOW all     all calls are pending at the same time
 *     pending_collectives HOW each    all calls, each waited for at once
 *     pending_collectives HOW CALL    one call alone, waited for at once
 *
 * HOW is between, freed, made, failed, neighbours, blocking, persistent or freed-persistent.
 */
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define NAME_INIT(name) MPIX_##name##_init
#else
#define NAME_INIT(name) MPI_##name##_init
#endif
#include <stdlib.h>
#include <string.h>

#define ITEMS 3000
#define CALLS 5 /* of start_all */

static MPI_Request requests[CALLS + 1];
static int started;
static const char *only;

static int is_all(void)
{
    return !strcmp(only, "all");
}

static int is_chosen(const char *call)
{
    return is_all() || !strcmp(only, "each") || !strcmp(only, call);
}

#define START(call, ...)                                                                                               \
    do {                                                                                                               \
        if (!is_chosen(#call)) break;                                                                                  \
        MPI_##call(__VA_ARGS__, &requests[started++]);                                                                 \
        if (!is_all()) MPI_Wait(&requests[--started], MPI_STATUS_IGNORE);                                              \
    } while (0)

/* Each group reduces ITEMS items of the other group, and scatters the result to its own ranks. */
static void start_all(MPI_Comm comm, int ranks, int root)
{
    const size_t most = (size_t)ranks * ITEMS;
    int *from = calloc(most, sizeof *from), *into = calloc(most * CALLS, sizeof *into), size;

    MPI_Comm_size(comm, &size);
    START(Iallreduce, from, into, ITEMS, MPI_INT, MPI_SUM, comm);
    START(Ibcast, into + most, ITEMS - 1, MPI_INT, root, comm);
    START(Iallgather, from, ITEMS / 4, MPI_INT, into + 2 * most, ITEMS / 4, MPI_INT, comm);
    START(Ireduce_scatter_block, from, into + 3 * most, ITEMS / size, MPI_INT, MPI_SUM, comm);
    START(Ialltoall, from, ITEMS / 8, MPI_INT, into + 4 * most, ITEMS / 8, MPI_INT, comm);
}

static void between(int me, int ranks)
{
    const int upper = me >= 1;
    MPI_Comm group, both, comm, another = MPI_COMM_NULL;

    MPI_Comm_split(MPI_COMM_WORLD, upper, upper ? -me : me, &group);
    /* Afterwards, MPICH's tags differ between the two groups. */
    if (upper) MPI_Comm_dup(group, &another);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, upper ? 0 : ranks - 1, 1, &both);
    MPI_Comm_dup(both, &comm);
    MPI_Comm_free(&both);
    start_all(comm, ranks, upper ? 0 : MPI_ROOT);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&group);
    if (upper) MPI_Comm_free(&another);
}

static void freed(int ranks)
{
    int from[ITEMS] = {0}, into[ITEMS];
    MPI_Comm comm, next;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    start_all(comm, ranks, 0);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    START(Iscan, from, into, ITEMS, MPI_INT, MPI_SUM, next);
    MPI_Comm_free(&next);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
}

/* Make an object of a communicator, and free it. */
static void make(int kind, MPI_Comm comm, int me, int ranks)
{
    const int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks, counts[] = {ranks, 1}, no[2] = {0};
    int upper = me >= 2;
    MPI_Comm made = MPI_COMM_NULL, other;
    MPI_Win window;
    MPI_File file;

    switch (kind) {
    case 0:
        MPI_Comm_dup(comm, &made);
        break;
    case 1:
        MPI_Comm_split(comm, upper ? 0 : MPI_UNDEFINED, me, &made);
        break;
    case 2:
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
        break;
    case 3:
        MPI_Cart_create(comm, 1, (int[]){ranks - 1}, no, 0, &made);
        break;
    case 4:
        MPI_Cart_create(comm, 2, counts, no, 0, &other);
        MPI_Cart_sub(other, (int[]){1, 0}, &made);
        MPI_Comm_free(&other);
        break;
    case 5:
        MPI_Dist_graph_create_adjacent(comm, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                       &made);
        break;
    case 6:
        MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &window), MPI_Win_free(&window);
        break;
    case 7:
        MPI_Comm_split(comm, upper, me, &other);
        MPI_Intercomm_create(other, 0, comm, upper ? 0 : 2, 1, &made);
        MPI_Comm_free(&other);
        other = made;
        MPI_Intercomm_merge(other, upper, &made);
        MPI_Comm_free(&other);
        break;
    case 8:
        MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        MPI_File_close(&file);
        break;
    default:
        break;
    }
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

/* After each call, two or more objects are created. */
static void made(int me, int ranks)
{
    static int from[ITEMS], into[CALLS][ITEMS];
    MPI_Comm comm;
    int kind = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    START(Iallreduce, from, into[0], ITEMS, MPI_INT, MPI_SUM, comm);
    while (kind < 2) make(kind++, comm, me, ranks);
    START(Ibcast, into[1], ITEMS - 1, MPI_INT, 0, comm);
    while (kind < 4) make(kind++, comm, me, ranks);
    START(Iscan, from, into[2], ITEMS, MPI_INT, MPI_SUM, comm);
    while (kind < 6) make(kind++, comm, me, ranks);
    START(Iallgather, from, ITEMS / ranks, MPI_INT, into[3], ITEMS / ranks, MPI_INT, comm);
    while (kind < 9) make(kind++, comm, me, ranks);
    START(Ialltoall, from, ITEMS / ranks, MPI_INT, into[4], ITEMS / ranks, MPI_INT, comm);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
}

/* Before each call, another call fails because of a wrong root or count. */
static void failed(void)
{
    static int from[ITEMS], into[CALLS][ITEMS];
    MPI_Request none;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Ibcast(from, ITEMS, MPI_INT, -8, comm, &none);
    START(Iallreduce, from, into[0], ITEMS, MPI_INT, MPI_SUM, comm);
    MPI_Iscan(from, into[1], -1, MPI_INT, MPI_SUM, comm, &none);
    START(Ibcast, into[1], ITEMS - 1, MPI_INT, 0, comm);
    MPI_Iallreduce(from, into[2], -1, MPI_INT, MPI_SUM, comm, &none);
    START(Iscan, from, into[2], ITEMS, MPI_INT, MPI_SUM, comm);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
}

/* Each communicator's first call allocates the same tag. */
static void neighbours(int ranks)
{
    static int from[ITEMS], into[3][2 * ITEMS];
    MPI_Comm comm, grid;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, (int[]){1}, 0, &grid);
    START(Iallreduce, from, into[0], ITEMS, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    START(Ibcast, into[1], ITEMS - 1, MPI_INT, 0, comm);
    if (is_chosen("Neighbor_allgather")) MPI_Neighbor_allgather(from, ITEMS, MPI_INT, into[2], ITEMS, MPI_INT, grid);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&comm);
}

#define BLOCK(call, ...)                                                                                               \
    if (is_chosen(#call)) MPI_##call(__VA_ARGS__)

static void blocking(int ranks)
{
    static int from[ITEMS], into[6][ITEMS];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    START(Iallreduce, from, into[0], ITEMS, MPI_INT, MPI_SUM, comm);
    BLOCK(Bcast, into[1], ITEMS, MPI_INT, 0, comm);
    BLOCK(Alltoall, from, ITEMS / ranks, MPI_INT, into[2], ITEMS / ranks, MPI_INT, comm);
    START(Ibcast, into[3], ITEMS - 1, MPI_INT, 1, comm);
    BLOCK(Allreduce, from, into[4], ITEMS, MPI_INT, MPI_SUM, comm);
    BLOCK(Allgather, from, ITEMS / ranks, MPI_INT, into[5], ITEMS / ranks, MPI_INT, comm);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
}

#define ROUNDS 10

/* Start persistent requests of a call; alone, wait for each. */
static void start(const char *call, int count, MPI_Request *persistent)
{
    if (!is_chosen(call)) return;
    MPI_Startall(count, persistent);
    if (!is_all()) MPI_Waitall(count, persistent, MPI_STATUSES_IGNORE);
}

/* Start persistent collectives of a communicator, which may be freed before, among nonblocking ones of the world. */
static void persistent(MPI_Comm comm, int is_freed)
{
    static int from[ITEMS], into[6][ITEMS];
    MPI_Request made[3];

    NAME_INIT(Bcast)(into[0], ITEMS - 1, MPI_INT, 0, comm, MPI_INFO_NULL, &made[0]);
    NAME_INIT(Bcast)(into[1], ITEMS / 2, MPI_INT, 1, comm, MPI_INFO_NULL, &made[1]);
    NAME_INIT(Allreduce)(from, into[2], ITEMS, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &made[2]);
    if (is_freed) MPI_Comm_free(&comm);
    for (int round = 0; round < ROUNDS; round++) {
        started = 0;
        START(Iallreduce, from, into[3], ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        start("Bcast_init", 2, made);
        START(Iscan, from, into[4], ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        start("Allreduce_init", 1, &made[2]);
        START(Ibcast, into[5], ITEMS, MPI_INT, 1, MPI_COMM_WORLD);
        MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
        if (is_all()) MPI_Waitall(3, made, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&made[i]);
}

int main(int argc, char **argv)
{
    int me, ranks, is_persistent;
    MPI_Comm copy;

    MPI_Init(&argc, &argv);
    if (argc < 3) return 2;
    is_persistent = strstr(argv[1], "persistent") != NULL;
    only = argv[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(argv[1], "persistent")) persistent(MPI_COMM_WORLD, 0);
    if (!strcmp(argv[1], "freed-persistent")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        persistent(copy, 1);
    }
    for (int round = 0; round < 2 && !is_persistent; round++) {
        started = 0;
        if (!strcmp(argv[1], "between"))
            between(me, ranks);
        else if (!strcmp(argv[1], "made"))
            made(me, ranks);
        else if (!strcmp(argv[1], "failed"))
            failed();
        else if (!strcmp(argv[1], "neighbours"))
            neighbours(ranks);
        else if (!strcmp(argv[1], "blocking"))
            blocking(ranks);
        else
            freed(ranks);
    }
    MPI_Finalize();
    return 0;
}
