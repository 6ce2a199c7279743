// SPDX-License-Identifier: Apache-2.0
// Small programs that spend time as their names say, with random details: planted NAME MILLISECONDS BYTES ROUNDS SEED.
// On the rank that works, a round takes about MILLISECONDS. SEED chooses ranks and calls. For benchmarks/verdicts.py.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 64, LARGEST = 8 << 20 };

static char out[LARGEST], in[LARGEST];
static int rank, ranks, bytes, rounds;
static double pause_s;
static unsigned seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
}

static void work(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left));
}

// Call a random collective of few bytes, the same on all ranks.
static void agree(void)
{
    double mine = rank, all[MOST_RANKS], sum;
    switch (draw(4)) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Allgather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        break;
    default:
        MPI_Alltoall(out, 8, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD);
        break;
    }
}

static void exchange_ring(void)
{
    MPI_Request both[2];
    MPI_Irecv(in, bytes, MPI_CHAR, (rank + ranks - 1) % ranks, 3, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, bytes, MPI_CHAR, (rank + 1) % ranks, 3, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void solve_alone(void)
{
    work(pause_s);
    exchange_ring();
}

static void wait_for_one(void)
{
    static int slow = -1;
    if (slow < 0) slow = (int)draw((unsigned)ranks);
    if (rank == slow) work(pause_s);
    agree();
}

static void wait_for_any(void)
{
    static int next;
    if (next++ % ranks == rank) work(pause_s);
    agree();
}

static void divide_unevenly(void)
{
    work(pause_s * rank / (ranks - 1));
    agree();
}

// Items pass all ranks in turn; there are fewer items than ranks.
static void pass_on(void)
{
    if (rank) MPI_Recv(in, bytes, MPI_CHAR, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(pause_s);
    if (rank + 1 < ranks) MPI_Ssend(out, bytes, MPI_CHAR, rank + 1, 4, MPI_COMM_WORLD);
}

static void ask_a_server(void)
{
    if (rank == 0) {
        for (int asked = 1; asked < ranks; ++asked) {
            MPI_Status who;
            MPI_Recv(in, bytes, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &who);
            work(pause_s);
            MPI_Send(out, bytes, MPI_CHAR, who.MPI_SOURCE, 6, MPI_COMM_WORLD);
        }
    } else {
        MPI_Send(out, bytes, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void write_results_alone(void)
{
    static int round;
    exchange_ring();
    if (++round == rounds && rank == 0) work(pause_s * rounds);
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

static void spread(void)
{
    MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void add_fields(void)
{
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void checkpoint(void)
{
    static MPI_File file = MPI_FILE_NULL;
    static int round;
    if (!round) MPI_File_open(MPI_COMM_WORLD, "planted.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, (MPI_Offset)(round * ranks + rank) * bytes, out, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    if (++round == rounds) MPI_File_close(&file);
}

static const struct {
    const char *name;
    void (*round)(void);
} programs[] = {
    {"alone", solve_alone},       {"one", wait_for_one},   {"any", wait_for_any},
    {"uneven", divide_unevenly},  {"pipeline", pass_on},   {"asked", ask_a_server},
    {"end", write_results_alone}, {"ring", exchange_ring}, {"sum", sum_up},
    {"transpose", transpose},     {"spread", spread},      {"fields", add_fields},
    {"checkpoint", checkpoint},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 6) MPI_Abort(MPI_COMM_WORLD, 2);
    pause_s = atof(argv[2]) / 1000, bytes = atoi(argv[3]), rounds = atoi(argv[4]), seed = (unsigned)atoi(argv[5]);
    for (size_t each = 0; each < sizeof programs / sizeof *programs; ++each)
        for (int round = 0; !strcmp(programs[each].name, argv[1]) && round < rounds; ++round) programs[each].round();
    MPI_Finalize();
    return 0;
}
