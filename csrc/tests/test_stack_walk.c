/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A walk finds the same callers as the C library's backtrace(), which uses the compiler's unwinder.
 */
#include "platform/system.h"
#include "check.h"
#include "platform/stack_walk.h"

#include <alloca.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST 64
#define NEVER_INLINED __attribute__((noinline, noclone))
#if defined(__x86_64__)
#define WITHOUT_FRAME_POINTER NEVER_INLINED __attribute__((optimize("omit-frame-pointer")))
#define LEADS_THROUGH_SIGNALS 1
#else /* other processors find frames only by frame pointers */
#define WITHOUT_FRAME_POINTER NEVER_INLINED
#define LEADS_THROUGH_SIGNALS 0
#endif

struct walk {
    const void *addresses[MOST];
    int count;
};

static struct walk last;
static int compared;

static bool note(void *into, const void *address)
{
    struct walk *walk = into;

    if (walk->count == MOST) return false;
    walk->addresses[walk->count++] = address;
    return true;
}

/* Compare ibprof's walk with backtrace(). The two innermost frames differ: both are in this function, but at different
 * lines. A sanitizer's frame may precede the innermost frame. Only backtrace() returns the outermost frame. */
static NEVER_INLINED void compare(void)
{
    void *expected[MOST];
    const int count = backtrace(expected, MOST);
    int before;

    last.count = 0;
    errno = 77;
    ibp_stack_walk(note, &last);
    CHECK(errno == 77);
    before = count - 1 - last.count;
    CHECK(last.count > 2 && (before == 0 || before == 1));
    CHECK(!memcmp(last.addresses + 1, expected + before + 1, (size_t)(last.count - 1) * sizeof *expected));
    compared++;
}

/* -- forms of frames ----------------------------------------------------------------------------------------------- */

typedef void next_one(unsigned depth);
static next_one saves_registers, has_variable_size, is_realigned, recurses;

static void go_on(unsigned depth)
{
    static next_one *const all[] = {saves_registers, has_variable_size, is_realigned, recurses};

    if (depth)
        all[depth % 4](depth - 1);
    else
        compare();
}

/* All callee-saved registers are in use. */
static WITHOUT_FRAME_POINTER void saves_registers(unsigned depth)
{
    volatile unsigned a = depth, b = a + 1, c = b + 1, d = c + 1, e = d + 1, f = e + 1;
    unsigned k = a, l = b, m = c, n = d, o = e, p = f;

    go_on(depth);
    a = k + l + m + n + o + p;
}

static WITHOUT_FRAME_POINTER void has_variable_size(unsigned depth)
{
    volatile char *some = alloca(depth * 40 + 8);

    some[depth] = 0;
    go_on(depth + some[depth]);
    some[0] = 1;
}

static WITHOUT_FRAME_POINTER void is_realigned(unsigned depth)
{
    _Alignas(256) volatile char some[256] = {0};
    volatile char *more = alloca(depth + 1);

    more[depth] = 0;
    go_on(depth + some[depth]);
    more[0] = some[0];
}

static WITHOUT_FRAME_POINTER void recurses(unsigned depth)
{
    if (depth % 3)
        go_on(depth);
    else
        go_on(depth ? depth - 1 : 0);
    __asm__ volatile("");
}

/* -- threads, signals, other stacks -------------------------------------------------------------------------------- */

static void *in_a_thread(void *unused)
{
    go_on(7);
    return unused;
}

static void on_signal(int number)
{
    (void)number;
    compare();
}

static NEVER_INLINED void interrupted(void)
{
    raise(SIGUSR1);
    __asm__ volatile("");
}

static void in_a_signal_handler(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, before;

    CHECK(!sigaction(SIGUSR1, &action, &before));
    interrupted();
    CHECK(!sigaction(SIGUSR1, &before, NULL));
}

static void on_another_stack_for_signals(void)
{
    const size_t bytes = 1 << 20;
    stack_t other = {.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     .ss_size = bytes};

    CHECK(other.ss_sp != MAP_FAILED && !sigaltstack(&other, NULL));
    in_a_signal_handler(SA_ONSTACK);
    go_on(3);
    in_a_signal_handler(SA_ONSTACK);
    other.ss_flags = SS_DISABLE;
    CHECK(!sigaltstack(&other, NULL) && !munmap(other.ss_sp, bytes));
}

static ucontext_t here, there;

/* The function of a coroutine, which is the outermost frame of its stack. */
static void in_a_coroutine(void)
{
    last.count = 0;
    ibp_stack_walk(note, &last);
    CHECK(last.count >= 1 && last.count < 4);
}

/* Run coroutines on stacks at different addresses; each stack is unmapped after use. */
static void in_coroutines(void)
{
    for (unsigned i = 1; i <= 8; i++) {
        const size_t bytes = i << 18;
        void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(stack != MAP_FAILED && !getcontext(&there));
        there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
        there.uc_link = &here;
        makecontext(&there, in_a_coroutine, 0);
        CHECK(!swapcontext(&here, &there) && !munmap(stack, bytes));
        go_on(5);
    }
}

/* -- code that the tables do not describe -------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* Call a function from frames with a frame pointer, without a frame pointer, and with a wrong value as the frame
 * pointer. */
void call_with_frame_pointer(void (*)(void));
void call_without_frame_pointer(void (*)(void));
void call_with_nonsense(void (*)(void));
__asm__(".text\n"
        "call_with_frame_pointer:\n push %rbp\n mov %rsp, %rbp\n call *%rdi\n pop %rbp\n ret\n"
        "call_without_frame_pointer:\n sub $40, %rsp\n call *%rdi\n add $40, %rsp\n ret\n"
        "call_with_nonsense:\n push %rbp\n mov $0x12340, %rbp\n call *%rdi\n pop %rbp\n ret\n");

static void note_callers(void)
{
    last.count = 0;
    ibp_stack_walk(note, &last);
}

static NEVER_INLINED int distance_of_caller(const void *function)
{
    for (int i = 0; i < last.count; i++)
        if ((uintptr_t)last.addresses[i] - (uintptr_t)function < 32) return i;
    return -1;
}

static NEVER_INLINED __attribute__((optimize("no-omit-frame-pointer"))) void without_tables(void)
{
    const void *own = __builtin_return_address(0);
    int place;

    call_with_frame_pointer(note_callers);
    place = distance_of_caller((const void *)call_with_frame_pointer);
    CHECK(place >= 0 && place + 2 < last.count && last.addresses[place + 2] == own);
    call_without_frame_pointer(note_callers);
    CHECK(distance_of_caller((const void *)call_without_frame_pointer) >= 0); /* outer frames can be missing */
    call_with_nonsense(note_callers);
    CHECK(distance_of_caller((const void *)call_with_nonsense) == last.count - 1);
}
#else
static void without_tables(void)
{
}
#endif

/* The walk ends when the callback returns false. */
static void stops_at_its_limit(void)
{
    struct walk two = {.count = MOST - 2};

    ibp_stack_walk(note, &two);
    CHECK(two.count == MOST);
}

int main(void)
{
    pthread_t thread;

    CHECK(ibp_stack_walk_prepare() && ibp_stack_walk_prepare());
    for (unsigned depth = 0; depth < 24; depth++) go_on(depth);
    go_on(23); /* now with cached steps */
    for (int i = 0; i < 3; i++) CHECK(!pthread_create(&thread, NULL, in_a_thread, NULL) && !pthread_join(thread, NULL));
    if (LEADS_THROUGH_SIGNALS) {
        in_a_signal_handler(0);
        on_another_stack_for_signals();
        CHECK(compared == 24 + 1 + 3 + 1 + 3);
    }
    compared = 0;
    in_coroutines();
    CHECK(compared == 8);
    without_tables();
    stops_at_its_limit();
    return 0;
}
