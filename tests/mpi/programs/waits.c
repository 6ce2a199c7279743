// SPDX-License-Identifier: Apache-2.0
// Small programs whose ranks wait, or do not, in a known way: waits NAME MILLISECONDS BYTES ROUNDS.
// benchmarks/waits.py and tests/mpi/test_waits.py compare the waiting that ibprof finds with a tracer's.
#include <ibprof.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_PARTITIONS
#endif

static char *out, *in;
static int rank, ranks, bytes, rounds, slow = 1;
static double pause_s;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void rest(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left)) continue;
}

// For times too short for the kernel's timers.
static void spin(double seconds)
{
    const double until = now() + seconds;
    while (now() < until) continue;
}

// Return the same random number on all ranks.
static unsigned draw_together(unsigned below)
{
    static unsigned seed = 4711;
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
}

static double draw_alone(void)
{
    static uint64_t seed;
    seed = (seed ? seed : (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15U) * 6364136223846793005U + 1442695040888963407U;
    return (double)(seed >> 40) / (double)(1 << 24);
}

static void sum_up(void)
{
    double mine = rank, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void transpose(void)
{
    MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void late_rank(void)
{
    if (rank == slow) rest(pause_s);
    sum_up();
}

static void random_rank(void)
{
    if (rank == (int)draw_together((unsigned)ranks)) rest(pause_s);
    sum_up();
}

// A late rank and large blocks: waiting and transfer in one call.
static void late_transpose(void)
{
    if (rank == slow) rest(pause_s);
    transpose();
}

static void uneven_transpose(void)
{
    rest(pause_s * draw_alone());
    transpose();
}

static void noisy_sum(void)
{
    spin(pause_s * draw_alone());
    sum_up();
}

// The first rank is late; each passes its delay on.
static void pipeline(void)
{
    if (rank) MPI_Recv(in, bytes, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!rank) rest(pause_s);
    if (rank + 1 < ranks) MPI_Send(out, bytes, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
}

// Like `pipeline`, with MPI_Mprobe and MPI_Mrecv.
static void probe(void)
{
    MPI_Message message;
    MPI_Status status;
    if (rank) {
        MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, bytes, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    } else
        rest(pause_s);
    if (rank + 1 < ranks) MPI_Send(out, bytes, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
}

// Like `pipeline`, with MPI_Probe before MPI_Recv.
static void look(void)
{
    MPI_Status status;
    if (rank) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(in, bytes, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else
        rest(pause_s);
    if (rank + 1 < ranks) MPI_Send(out, bytes, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
}

// One rank of a ring is slow. The delay reaches the next neighbours a round later.
static void grid(void)
{
    static MPI_Comm ring = MPI_COMM_NULL;
    const int periodic = 1;
    if (ring == MPI_COMM_NULL) MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    if (rank == slow) rest(pause_s);
    MPI_Neighbor_alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, ring);
}

// Each rank receives from the previous rank; a slow rank delays the ranks after it.
static void graph(void)
{
    static MPI_Comm chain = MPI_COMM_NULL;
    const int from = rank - 1, to = rank + 1;
    if (chain == MPI_COMM_NULL)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, !!rank, &from, MPI_UNWEIGHTED, rank + 1 < ranks, &to,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &chain);
    if (rank == slow) rest(pause_s);
    MPI_Neighbor_allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, chain);
}

// Each rank puts to the next rank. One rank posts late, another rank completes late.
static void epochs(void)
{
    static MPI_Win window = MPI_WIN_NULL;
    static MPI_Group all, before, after;
    static int done;
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    if (window == MPI_WIN_NULL) {
        MPI_Win_create(in, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &left, &before);
        MPI_Group_incl(all, 1, &right, &after);
    }
    if (rank == slow) rest(pause_s);
    MPI_Win_post(before, 0, window);
    MPI_Win_start(after, 0, window);
    MPI_Put(out, bytes, MPI_CHAR, right, 0, bytes, MPI_CHAR, window);
    if (rank == (slow + 2) % ranks) rest(pause_s);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    if (++done == rounds) MPI_Win_free(&window);
}

#ifdef HAS_PARTITIONS
// Each rank sends four partitions to the next rank; a slow rank is late with its last partition.
static void partitions(void)
{
    static MPI_Request all[2];
    static int done;
    enum { PARTS = 4 };
    if (!done) {
        MPI_Precv_init(in, PARTS, bytes / PARTS, MPI_CHAR, (rank + ranks - 1) % ranks, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &all[0]);
        MPI_Psend_init(out, PARTS, bytes / PARTS, MPI_CHAR, (rank + 1) % ranks, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &all[1]);
    }
    MPI_Startall(2, all);
    for (int part = 0; part < PARTS; ++part) {
        if (part == PARTS - 1 && rank == slow) rest(pause_s);
        MPI_Pready(part, all[1]);
    }
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    if (++done == rounds) MPI_Request_free(&all[0]), MPI_Request_free(&all[1]);
}

// A persistent collective is started in a region and completed outside of it.
static void persistent(void)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    static double mine, sum;
    static int done;
    if (!done) MPI_Allreduce_init(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank == slow) rest(pause_s);
    if (ibprof_region_begin) ibprof_region_begin("start");
    MPI_Start(&request);
    if (ibprof_region_end) ibprof_region_end();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (++done == rounds) MPI_Request_free(&request);
}
#endif

static void exchange(void)
{
    MPI_Request all[4];
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Irecv(in, bytes, MPI_CHAR, left, 2, MPI_COMM_WORLD, &all[0]);
    MPI_Irecv(in + bytes, bytes, MPI_CHAR, right, 3, MPI_COMM_WORLD, &all[1]);
    MPI_Isend(out, bytes, MPI_CHAR, right, 2, MPI_COMM_WORLD, &all[2]);
    MPI_Isend(out + bytes, bytes, MPI_CHAR, left, 3, MPI_COMM_WORLD, &all[3]);
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
}

static void halo(void)
{
    if (rank == slow) rest(pause_s);
    exchange();
}

static void exchange_uneven(void)
{
    rest(pause_s * draw_alone());
    exchange();
}

static void late_broadcast(void)
{
    if (!rank) rest(pause_s);
    MPI_Bcast(in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void early_reduce(void)
{
    if (rank) rest(pause_s);
    MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

// A collective of each half of the ranks, each half with a late rank; then a collective of all.
static void groups(void)
{
    static MPI_Comm half = MPI_COMM_NULL;
    if (half == MPI_COMM_NULL) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    double mine = rank, sum;
    if (rank < 2) rest(pause_s * (1 + rank));
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
    MPI_Alltoall(out, 64, MPI_CHAR, in, 64, MPI_CHAR, MPI_COMM_WORLD);
}

static void fence(void)
{
    static MPI_Win window = MPI_WIN_NULL;
    static int done;
    if (window == MPI_WIN_NULL) MPI_Win_create(in, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank == slow) rest(pause_s);
    MPI_Win_fence(0, window);
    MPI_Put(out, bytes, MPI_CHAR, (rank + 1) % ranks, 0, bytes, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    if (++done == rounds) MPI_Win_free(&window);
}

// Senders block until their receives are posted, which is late.
static void late_receiver(void)
{
    if (rank % 2) {
        rest(pause_s);
        MPI_Recv(in, bytes, MPI_CHAR, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank + 1 < ranks)
        MPI_Ssend(out, bytes, MPI_CHAR, rank + 1, 4, MPI_COMM_WORLD);
}

static void nonblocking(void)
{
    double mine = rank, sum;
    MPI_Request request;
    if (rank == slow) rest(pause_s);
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void server(void)
{
    if (rank == 0) {
        for (int asked = 1; asked < ranks; ++asked) {
            MPI_Status who;
            MPI_Recv(in, bytes, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &who);
            rest(pause_s);
            MPI_Send(out, bytes, MPI_CHAR, who.MPI_SOURCE, 6, MPI_COMM_WORLD);
        }
    } else {
        MPI_Send(out, bytes, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

// Rank 0 receives many messages from each other rank, by MPI_Waitall or MPI_Waitsome.
enum { GATHERED_TAGS = 24, GATHERED_MOST = 256 };

static int post_gathered(MPI_Request *all)
{
    int count = 0;
    for (int from = 1; from < ranks; ++from)
        for (int tag = 0; tag < GATHERED_TAGS && count < GATHERED_MOST; ++tag)
            MPI_Irecv(in + 8 * count, 8, MPI_CHAR, from, tag, MPI_COMM_WORLD, &all[count]), ++count;
    return count;
}

static void send_gathered(void)
{
    for (int tag = 0; tag < GATHERED_TAGS; ++tag) {
        if (tag % 8 == 0) rest(pause_s);
        MPI_Send(out, 8, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
    }
}

static void gather_all(void)
{
    MPI_Request all[GATHERED_MOST];
    if (rank)
        send_gathered();
    else
        MPI_Waitall(post_gathered(all), all, MPI_STATUSES_IGNORE);
}

static void gather_some(void)
{
    MPI_Request all[GATHERED_MOST];
    int indices[GATHERED_MOST], count, got;
    if (rank)
        send_gathered();
    else
        for (int left = count = post_gathered(all); left; left -= got)
            MPI_Waitsome(count, all, &got, indices, MPI_STATUSES_IGNORE);
}

// Neighbours in a chain exchange messages; the tag is the number of the round.
static void steps(void)
{
    static int round;
    MPI_Request all[4];
    const int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    if (++round % ranks == rank) rest(pause_s);
    MPI_Irecv(in, bytes, MPI_CHAR, left, round, MPI_COMM_WORLD, &all[0]);
    MPI_Irecv(in + bytes, bytes, MPI_CHAR, right, round, MPI_COMM_WORLD, &all[1]);
    MPI_Isend(out, bytes, MPI_CHAR, right, round, MPI_COMM_WORLD, &all[2]);
    MPI_Isend(out + bytes, bytes, MPI_CHAR, left, round, MPI_COMM_WORLD, &all[3]);
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
}

// One long delay among many short calls.
static void rare(void)
{
    static int round;
    if (++round == rounds / 2 && rank == slow) rest(pause_s);
    sum_up();
}

// Neighbours exchange short messages. A rank is late in one of 500 rounds.
static void seldom(void)
{
    static int round;
    if (++round % 500 == 250 && rank == round / 500 % ranks) rest(pause_s);
    exchange();
}

// One of 1,000 messages is long. Sends and waits of all other messages are short.
static void tail(void)
{
    static int round;
    const int size = ++round % 1000 == 500 ? bytes : 8;
    MPI_Request request;
    if (rank % 2) {
        MPI_Recv(in, size, MPI_CHAR, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(in, size, MPI_CHAR, rank - 1, 5, MPI_COMM_WORLD, &request);
    } else if (rank + 1 < ranks) {
        MPI_Send(out, size, MPI_CHAR, rank + 1, 4, MPI_COMM_WORLD);
        MPI_Isend(out, size, MPI_CHAR, rank + 1, 5, MPI_COMM_WORLD, &request);
    } else
        return;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    void (*round)(void);
} programs[] = {
    {"late", late_rank},
    {"random", random_rank},
    {"balanced", transpose},
    {"half", late_transpose},
    {"uneven", uneven_transpose},
    {"noise", noisy_sum},
    {"pipeline", pipeline},
    {"probe", probe},
    {"look", look},
    {"grid", grid},
    {"graph", graph},
    {"epochs", epochs},
#ifdef HAS_PARTITIONS
    {"partitions", partitions},
    {"persistent", persistent},
#endif
    {"halo", halo},
    {"exchange", exchange},
    {"uneven-exchange", exchange_uneven},
    {"broadcast", late_broadcast},
    {"reduce", early_reduce},
    {"groups", groups},
    {"fence", fence},
    {"receiver", late_receiver},
    {"nonblocking", nonblocking},
    {"server", server},
    {"gather-all", gather_all},
    {"gather-some", gather_some},
    {"steps", steps},
    {"rare", rare},
    {"seldom", seldom},
    {"tail", tail},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
    pause_s = atof(argv[2]) / 1000, bytes = atoi(argv[3]), rounds = atoi(argv[4]), slow %= ranks;
    // Write all pages now, so that no page is new in a round.
    const size_t room = (size_t)bytes * (size_t)(ranks < 4 ? 4 : ranks) + 4096;
    out = memset(malloc(room), 1, room), in = memset(malloc(room), 2, room);
    int found = 0;
    for (size_t each = 0; each < sizeof programs / sizeof *programs; ++each)
        for (int round = 0; !strcmp(programs[each].name, argv[1]) && round < rounds; ++round)
            programs[each].round(), found = 1;
    if (!found) fprintf(stderr, "waits: no program %s\n", argv[1]);
    MPI_Finalize();
    return !found;
}
