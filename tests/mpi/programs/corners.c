/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Special states of a process after MPI_Init. In each state, the process sends messages and enters regions. Rank 0
 * prints the result for each state, so that two runs can be compared:
 *
 *     corners cancelled|seized|unlevelled|timed|elsewhere|jailed|filtered|bare|locked|forked|vforked|small ...
 */
#include "ibprof.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGIONS = 600 };
extern char **environ;
static int me, ranks;

static void exchange(void)
{
    static char from[10], into[10];

    MPI_Sendrecv(from, sizeof from, MPI_BYTE, (me + 1) % ranks, 0, into, sizeof into, MPI_BYTE,
                 (me + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The regions make the recording grow, so that ibprof opens files and allocates memory. */
static void enter_regions(const char *name, bool sending)
{
    for (int i = 0; i < REGIONS; i++) {
        char whole[48];

        snprintf(whole, sizeof whole, "%s %d", name, i);
        ibprof_region_begin(whole);
        if (sending && i % 50 == 0) exchange();
        ibprof_region_end();
    }
}

/* -- threads ---------------------------------------------------------------------------------------------------------- */

static volatile bool is_asked;

/* Calls no cancellation point. If ibprof called a cancellation point, the cancelled thread would end there. */
static void *go_on_until_the_end(void *unused)
{
    (void)unused;
    while (!is_asked) sched_yield();
    enter_regions("cancelled", false);
    return "went on";
}

static long cancelled(void)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, go_on_until_the_end, NULL);
    pthread_cancel(thread);
    is_asked = true;
    pthread_join(thread, &result);
    enter_regions("after it", true);
    return result != PTHREAD_CANCELED;
}

static void *enter_without_right(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        ibprof_region_begin("without right");
        ibprof_region_end();
        ibprof_region("without right");
    }
    return NULL;
}

/* Threads enter regions, as in OpenMP, although the thread level does not allow threads. */
static long unlevelled(void)
{
    pthread_t thread[4];

    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, enter_without_right, NULL);
    enter_regions("with right", true);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    return 1;
}

static void *enter_on_a_small_stack(void *unused)
{
    (void)unused;
    enter_regions("small", false);
    return "stood";
}

static long small(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = NULL;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384); /* smallest valid size */
    pthread_create(&thread, &attributes, enter_on_a_small_stack, NULL);
    pthread_join(thread, &result);
    return result != NULL;
}

/* -- descriptors and signals -------------------------------------------------------------------------------------------- */

/* The program opens files with the descriptors of the standard streams. ibprof must not write to these files. */
static long seized(void)
{
    const int output = dup2(STDOUT_FILENO, 200);
    char name[] = "/tmp/corners-XXXXXX";
    struct rlimit limit;
    struct stat status = {0};

    for (int file = 0; file < 3; file++) close(file);
    open("/dev/null", O_RDONLY);
    open("/dev/null", O_WRONLY);
    if (mkstemp(name) != STDERR_FILENO) return -1;
    unlink(name);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 8192;
    setrlimit(RLIMIT_FSIZE, &limit); /* so that there is something to report */
    enter_regions("seized", true);
    enter_regions("seized too", true);
    fstat(STDERR_FILENO, &status);
    dup2(output, STDOUT_FILENO);
    return status.st_size;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* A profiler's timer with a separate signal stack: system calls are interrupted all the time. */
static long timed(void)
{
    static char stack[1 << 16];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    stack_t kept;

    sigaltstack(&other, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    enter_regions("timed", true);
    while (!alarms) sched_yield();
    setitimer(ITIMER_REAL, &never, NULL);
    sigaltstack(NULL, &kept);
    return kept.ss_sp == stack;
}

/* -- processes that change their folder, root, rights, variables or limits ----------------------------------------------- */

static long elsewhere(void)
{
    char folder[] = "/tmp/corners-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder)) return -1;
    enter_regions("elsewhere", true);
    return rmdir(folder); /* no mapped file is in the folder */
}

static long jailed(void)
{
    char folder[] = "/tmp/corners-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder) || rmdir(folder) || chroot(".")) return -1;
    enter_regions("jailed", true);
    return 1;
}

static long filtered(void)
{
    static const int denied[] = {SYS_openat,    SYS_prlimit64, SYS_fallocate, SYS_mmap,
                                 SYS_ftruncate, SYS_pread64,   SYS_madvise,   SYS_fstat};
    struct sock_filter filter[2 * sizeof denied / sizeof *denied + 2];
    struct sock_fprog program = {.filter = filter};

    filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        filter[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied[i], 0, 1);
        filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    exchange();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return -1;
    enter_regions("filtered", true);
    return 1;
}

static long bare(void)
{
    clearenv();
    environ = NULL;
    enter_regions("bare", true);
    return 1;
}

static long locked(void)
{
    const struct rlimit none = {0, 0};
    long result;

    setrlimit(RLIMIT_NPROC, &none);
    result = mlockall(MCL_FUTURE);
    enter_regions("locked", true);
    munlockall();
    return result;
}

/* -- children --------------------------------------------------------------------------------------------------------- */

/* Children that go on like ranks, and end by exit, which calls all registered functions. */
static long forked(void)
{
    long sum = 0;
    int status;

    fflush(stdout);
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();

        if (!child) {
            int is_up = 0;

            ibprof_region("a child's");
            ibprof_region_begin("a child's");
            MPI_Initialized(&is_up);
            exit(is_up && MPI_Wtime() >= 0 ? i : 100);
        }
        if (waitpid(child, &status, 0) == child && WIFEXITED(status)) sum += WEXITSTATUS(status);
        exchange();
    }
    return sum;
}

static pid_t start_shell(void)
{
    const pid_t child = vfork();

    if (!child) {
        execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
        _exit(100);
    }
    return child;
}

static long vforked(void)
{
    long sum = 0;
    int status;

    for (int i = 0; i < 100; i++)
        if (waitpid(start_shell(), &status, 0) > 0 && WIFEXITED(status)) sum += WEXITSTATUS(status);
    exchange();
    return sum;
}

static const struct {
    const char *name;
    long (*run)(void);
} corners[] = {
    {"cancelled", cancelled}, {"seized", seized}, {"unlevelled", unlevelled}, {"timed", timed},
    {"elsewhere", elsewhere}, {"jailed", jailed}, {"filtered", filtered},     {"bare", bare},
    {"locked", locked},       {"forked", forked}, {"vforked", vforked},       {"small", small},
};

int main(int argc, char **argv)
{
    int level;

    MPI_Init_thread(&argc, &argv,
                    argc > 1 && !strcmp(argv[1], "unlevelled") ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++)
        for (size_t corner = 0; corner < sizeof corners / sizeof *corners; corner++)
            if (!strcmp(argv[i], corners[corner].name)) {
                const long result = corners[corner].run();

                if (!me) printf("%s %ld\n", argv[i], result);
                fflush(stdout);
            }
    MPI_Finalize();
    return 0;
}
