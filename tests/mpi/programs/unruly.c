/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Actions of programs that ibprof must not disturb. Each mode does an unusual action and then exchanges messages. Rank
 * 0 prints the result, so that two runs can be compared. The last mode may end the program, as in
 *
 *     unruly handlers forks regions end:return
 */
#include "ibprof.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 1000
#define REGIONS 4096

static int me, ranks;

/* -- results ---------------------------------------------------------------------------------------------------------- */

/* Let each rank send to all other ranks, then return a sum over all ranks. */
static long total(long mine)
{
    long from[64], into[64], sum = 0;

    for (int rank = 0; rank < ranks; rank++) from[rank] = mine + rank;
    MPI_Alltoall(from, 1, MPI_LONG, into, 1, MPI_LONG, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; rank++) sum += into[rank];
    MPI_Bcast(&sum, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return sum;
}

static void exchange(long bytes)
{
    static char from[1 << 16], into[1 << 16];

    MPI_Sendrecv(from, (int)bytes, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE, (me + ranks - 1) % ranks,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* -- signals ---------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught[65];
static char *forbidden, *beyond;
static int file_behind;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught[number]++;
    if (number == SIGSEGV && info->si_addr == forbidden) mprotect(forbidden, 4096, PROT_READ | PROT_WRITE);
    if (number == SIGBUS && info->si_addr == beyond && ftruncate(file_behind, 4096)) _exit(9);
}

/* Signal handlers that remove the cause of the signal. */
static long handlers(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGTERM, SIGXFSZ, SIGALRM, SIGPIPE};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, found;
    char name[] = "/tmp/unruly-XXXXXX";
    long kept = 0, sum;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
    forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    file_behind = mkstemp(name);
    unlink(name);
    beyond = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file_behind, 0);
    exchange(100);
    *forbidden = 1;
    *beyond = 1;
    raise(SIGTERM);
    exchange(200);
    close(file_behind);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &found);
        kept += found.sa_sigaction == on_signal;
    }
    sum = total(10000 * kept + 100 * caught[SIGSEGV] + 10 * caught[SIGBUS] + caught[SIGTERM]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_DFL);
    return sum;
}

/* -- descriptors ------------------------------------------------------------------------------------------------------ */

static long count_descriptors(void)
{
    long open = 0;

    for (int file = 0; file < 1024; file++) open += fcntl(file, F_GETFD) >= 0;
    return open;
}

/* Close descriptors like daemons, except those that the launcher uses. */
static void close_files(int first)
{
    const char *launchers = getenv("PMI_FD");

    for (int file = first; file < 1024; file++)
        if (!launchers || file != atoi(launchers)) close(file);
}

/* The program's files have the same descriptors as without ibprof. */
static long descriptors(void)
{
    const long before = count_descriptors();
    const int first = open("/dev/null", O_RDONLY);
    long after;

    for (int i = 0; i < 300; i++) {
        char name[32];

        snprintf(name, sizeof name, "with files %d", i);
        ibprof_region_begin(name);
        exchange(i);
        ibprof_region_end();
    }
    close(first);
    after = count_descriptors();
    return total(after - before);
}

/* -- children --------------------------------------------------------------------------------------------------------- */

static long forks(void)
{
    long ended = 0;
    int status;

    for (int i = 0; i < FORKS / ranks; i++) {
        const pid_t child = fork();

        if (!child) {
            ibprof_region_begin("in a child");
            ibprof_region_end();
            _exit(i % 7);
        }
        if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) ended += 1 + WEXITSTATUS(status);
        if (i % 100 == 0) exchange(i);
    }
    return total(ended);
}

/* Run the command in UNRULY_CHILD by system() and by popen(), and print output and status. */
static long shells(void)
{
    const char *command = getenv("UNRULY_CHILD");
    char line[256];
    long sum = 0;
    FILE *pipe;

    if (!command || me) return total(0);
    fflush(stdout);
    sum += system(command);
    pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof line, pipe))
        for (const char *letter = line; *letter; letter++) sum += *letter;
    if (pipe) sum += pclose(pipe);
    return total(sum);
}

static long spawns(void)
{
    char program[4096] = "";
    MPI_Comm child;
    int number = 42, sum = 0;

    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return -1;
    MPI_Comm_spawn(program, (char *[]){"child", NULL}, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                   MPI_ERRCODES_IGNORE);
    MPI_Bcast(&number, 1, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT, child);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, child);
    MPI_Comm_disconnect(&child);
    return total(sum);
}

static void be_spawned(MPI_Comm parent)
{
    int number = 0, sum = 0;

    MPI_Bcast(&number, 1, MPI_INT, 0, parent);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, parent);
    MPI_Comm_disconnect(&parent);
}

/* -- threads ---------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 50, LETTER = 3000 };
static char sent[THREADS][LETTER], arrived[THREADS][LETTER];
static MPI_Request requests[THREADS];

/* Start a message, and end the thread before the message is sent. */
static void *send_and_exit(void *argument)
{
    const int thread = (int)(long)argument;

    memset(sent[thread], thread + 1, LETTER);
    ibprof_region_begin("in a thread");
    MPI_Isend(sent[thread], LETTER, MPI_BYTE, (me + 1) % ranks, 100 + thread, MPI_COMM_WORLD, &requests[thread]);
    ibprof_region_end();
    pthread_exit(NULL);
}

static long threads(void)
{
    MPI_Request receives[THREADS];
    pthread_t thread[THREADS];
    long sum = 0;
    int level;

    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) return -1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++) {
            MPI_Irecv(arrived[i], LETTER, MPI_BYTE, (me + ranks - 1) % ranks, 100 + i, MPI_COMM_WORLD, &receives[i]);
            pthread_create(&thread[i], NULL, send_and_exit, (void *)(long)i);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
            sum += arrived[i][LETTER - 1];
        }
    }
    return total(sum);
}

/* -- regions ---------------------------------------------------------------------------------------------------------- */

static long regions(void)
{
    for (int i = 0; i < REGIONS; i++) {
        char name[32];

        snprintf(name, sizeof name, "region %d", i);
        ibprof_region_begin(name);
        if (i % 8 == 0) exchange(i % 100);
        ibprof_region_end();
    }
    return total(1);
}

static long names(void)
{
    static const char *const odd[] = {"two\nlines",         "",     "\r\n\t", "\x1b[31mred",
                                      "\xff\xfe not UTF-8", "%s%n", "a,\"b\""};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        ibprof_region_begin(odd[i]);
        exchange(10);
        ibprof_region_end();
        ibprof_region(odd[i]);
    }
    return total(2);
}

/* -- limits that are set after MPI_Init ------------------------------------------------------------------------------------- */

static void limit(int resource, rlim_t most)
{
    struct rlimit now;

    getrlimit(resource, &now);
    now.rlim_cur = most;
    setrlimit(resource, &now);
}

/* Return the KiB in a line of /proc/self/status. */
static long status_of(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long size = 0;

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ":%ld", &size);
    if (status) fclose(status);
    return size;
}

/* UNRULY_SPARE_KIB: the size by which the address space may grow; by default 0. */
static long limits(void)
{
    const char *const spare = getenv("UNRULY_SPARE_KIB");
    struct rlimit files;
    long sum = total(0);

    getrlimit(RLIMIT_NOFILE, &files);
    limit(RLIMIT_FSIZE, 0);
    sum += regions();
    limit(RLIMIT_NOFILE, 3);
    sum += names();
    limit(RLIMIT_NOFILE, files.rlim_cur);
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    limit(RLIMIT_AS, (rlim_t)(status_of("VmSize") + (spare ? atol(spare) : 0)) << 10);
    for (int i = 0; i < 1000; i++) {
        char name[32];

        snprintf(name, sizeof name, "without memory %d", i);
        ibprof_region_begin(name);
        if (i % 100 == 0) exchange(i);
        ibprof_region_end();
    }
    limit(RLIMIT_AS, RLIM_INFINITY);
    return sum;
}

/* Return the largest size of the address space, from which tests compute a limit. */
static long size(void)
{
    return status_of("VmPeak");
}

/* Return the present size of the address space. */
static long addresses(void)
{
    return status_of("VmSize");
}

/* Sleep long enough for another run to start and end. */
static long wait_a_second(void)
{
    usleep(1000 * 1000);
    return total(0);
}

/* Change the user, like daemons that start as root. */
static long become_another_user(void)
{
    return total(setgid(65534) || setuid(65534));
}

/* -- ends ------------------------------------------------------------------------------------------------------------- */

static void say_at_exit(void)
{
    if (!me) puts("at exit");
}

static void finalize_at_exit(void)
{
    MPI_Finalize();
    if (!me) puts("finalized at exit");
}

static void close_all(void)
{
    fflush(stdout);
    close_files(0);
    for (int i = 0; i < 1000; i++) {
        char name[32];

        snprintf(name, sizeof name, "without files %d", i);
        ibprof_region_begin(name);
        ibprof_region_end();
    }
}

static int end(const char *how)
{
    if (!strcmp(how, "at-exit")) {
        atexit(finalize_at_exit);
        exit(5);
    }
    if (!strcmp(how, "close-leave")) {
        close_all();
        _exit(0);
    }
    if (!strcmp(how, "leave")) _exit(6);
    atexit(say_at_exit);
    MPI_Finalize();
    if (!strcmp(how, "finalize-close")) {
        close_all();
        _exit(0);
    }
    if (!strcmp(how, "finalize-leave")) {
        fflush(stdout);
        _exit(7);
    }
    return strcmp(how, "fail") ? 0 : 8;
}

/* -- MPI functions that the program defines ------------------------------------------------------------------------------ */

#ifdef OWN_FUNCTIONS
static long own_calls;

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    own_calls++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to, int tag, void *into, int room,
                 MPI_Datatype into_type, int source, int into_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;

    own_calls++;
    PMPI_Irecv(into, room, into_type, source, into_tag, comm, &request);
    PMPI_Send(from, count, type, to, tag, comm);
    return PMPI_Wait(&request, status);
}

int MPI_Finalize(void)
{
    if (!me) printf("%ld calls of its own\n", own_calls);
    return PMPI_Finalize();
}
#endif

static const struct {
    const char *name;
    long (*run)(void);
} modes[] = {
    {"handlers", handlers},
    {"descriptors", descriptors},
    {"forks", forks},
    {"shells", shells},
    {"spawns", spawns},
    {"threads", threads},
    {"regions", regions},
    {"names", names},
    {"limits", limits},
    {"size", size},
    {"addresses", addresses},
    {"wait", wait_a_second},
    {"user", become_another_user},
};

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int level;

    close_files(3);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        be_spawned(parent);
        return MPI_Finalize();
    }
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "end:", 4)) return end(argv[i] + 4);
        for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++)
            if (!strcmp(argv[i], modes[mode].name)) {
                const long result = modes[mode].run();

                if (!me) printf("%s %ld\n", argv[i], result);
                fflush(stdout);
            }
    }
    return end("return");
}
