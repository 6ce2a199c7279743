/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "calls/non_local_exits.h"
#include "counting/current_call.h"
#include "counting/times.h"
#include "libmpi/got.h"
#include "platform/log.h"
#include "platform/stack.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/* PLACE: in a jmp_buf of glibc or musl, the index of the word that contains the stack pointer; 0 if unknown. In glibc,
 * the stack pointer is XORed with a secret, and rotated left by ROTATED bits. */
#if defined(__x86_64__)
enum { PLACE = 6, ROTATED = 17 };
#elif defined(__aarch64__)
enum { PLACE = 13, ROTATED = 0 };
#else
enum { PLACE = 0, ROTATED = 0 };
#endif

static uintptr_t secret;
static unsigned rotation;

static uintptr_t stack_end_in(const void *buffer)
{
    uintptr_t word;

    memcpy(&word, (const uintptr_t *)buffer + PLACE, sizeof word);
    return (word >> rotation | word << (8 * sizeof word - 1 - rotation) << 1) ^ secret;
}

static __attribute__((noinline)) void find_secret(unsigned by)
{
    jmp_buf here;

    rotation = by;
    secret = 0;
    if (setjmp(here)) return;
    secret = stack_end_in(here) ^ ibp_stack_end;
}

/* Return whether `secret` and `rotation` decode the stack pointer in a jmp_buf. */
static __attribute__((noinline)) bool is_secret_right(void)
{
    volatile char room[512] = ""; /* lowers the stack pointer */
    jmp_buf here;

    return !setjmp(here) && stack_end_in(here) == ibp_stack_end && !room[0];
}

/* Return whether a jump leaves a frame. A jump from one inner frame to another, for example in a reduction function,
 * does not leave the frame. The separate stack of a signal handler may have higher addresses than the frame. A jump
 * from this stack leaves the frame if the target's address is higher than the frame's and lower than this stack's. */
static bool leaves(uintptr_t frame, uintptr_t from, uintptr_t to)
{
    return to > frame && (from < frame || to < from);
}

/* If a jump leaves the current call, end the call and its timing. */
static void note_jump(const void *buffer)
{
    const uintptr_t from = ibp_stack_end, to = stack_end_in(buffer), timed = ibp_timed_frame();

    if (timed && leaves(timed, from, to)) ibp_timing_leave();
    /* Test both members: during MPI_Start of an unknown request, `operation` is 0, but `starts_request` is true. */
    if ((ibp_current_call.operation || ibp_current_call.starts_request) && leaves(ibp_current_call.frame, from, to))
        ibp_leave();
}

/* Each hook calls the replaced function, because the four functions check different conditions. */
#define JUMP(function)                                                                                                 \
    static void (*next_##function)(void *, int);                                                                       \
    static void hook_##function(void *buffer, int value)                                                               \
    {                                                                                                                  \
        note_jump(buffer);                                                                                             \
        next_##function(buffer, value);                                                                                \
    }
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

static void redirect_jumps(const char *name, void *hook, void (**next)(void *, int))
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (!found) return;
    memcpy(next, &found, sizeof found);
    ibp_got_redirect_all(name, found, hook);
}

void ibp_interpose_longjmp(void)
{
    find_secret(ROTATED);
    if (PLACE && !is_secret_right()) find_secret(0);
    if (!PLACE || !is_secret_right()) {
        ibp_log(2,
                "ibprof does not notice a longjmp out of MPI calls: the layout of this C library's jmp_buf is unknown");
        return;
    }
    redirect_jumps("longjmp", (void *)hook_longjmp, &next_longjmp);
    redirect_jumps("_longjmp", (void *)hook__longjmp, &next__longjmp);
    redirect_jumps("siglongjmp", (void *)hook_siglongjmp, &next_siglongjmp);
    redirect_jumps("__longjmp_chk", (void *)hook___longjmp_chk, &next___longjmp_chk);
}
