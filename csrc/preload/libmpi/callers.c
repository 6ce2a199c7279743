/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/callers.h"
#include "libmpi/got.h"
#include "platform/log.h"
#include "recording/operations.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define STUBS 1024
#define STUBS_TEXT "1024"

/* The return address of this thread's last call of a stub. */
extern IBP_INTERNAL IBP_THREAD_LOCAL const void *ibp_caller_left_behind;
IBP_THREAD_LOCAL const void *ibp_caller_left_behind;

/* [stub], the function to which the stub jumps */
extern IBP_INTERNAL void *ibp_stub_targets[STUBS];
void *ibp_stub_targets[STUBS];
static unsigned used;

/* A stub changes no argument, and uses only registers that a called function may change. */
#if defined(__x86_64__)
#define STUB_BYTES 32
extern IBP_INTERNAL const char ibp_stubs[];
__asm__(".text\n"
        ".balign 32\n"
        ".hidden ibp_stubs\n"
        ".globl ibp_stubs\n"
        ".type ibp_stubs, @function\n"
        "ibp_stubs:\n"
        ".cfi_startproc\n"
        ".set ibp_stub, 0\n"
        ".rept " STUBS_TEXT "\n"
        ".balign 32\n"
        "    endbr64\n"
        "    mov ibp_caller_left_behind@gottpoff(%rip), %r11\n"
        "    mov (%rsp), %r10\n"
        "    mov %r10, %fs:(%r11)\n"
        "    jmp *ibp_stub_targets+8*ibp_stub(%rip)\n"
        ".set ibp_stub, ibp_stub + 1\n"
        ".endr\n"
        ".cfi_endproc\n"
        ".size ibp_stubs, . - ibp_stubs\n");
#elif defined(__aarch64__)
#define STUB_BYTES 32
extern IBP_INTERNAL const char ibp_stubs[];
__asm__(".text\n"
        ".balign 32\n"
        ".hidden ibp_stubs\n"
        ".globl ibp_stubs\n"
        ".type ibp_stubs, %function\n"
        "ibp_stubs:\n"
        ".cfi_startproc\n"
        ".set ibp_stub, 0\n"
        ".rept " STUBS_TEXT "\n"
        "    hint #34\n" /* bti c */
        "    adrp x16, :gottprel:ibp_caller_left_behind\n"
        "    ldr x16, [x16, :gottprel_lo12:ibp_caller_left_behind]\n"
        "    mrs x17, tpidr_el0\n"
        "    str x30, [x16, x17]\n"
        "    adrp x16, ibp_stub_targets+8*ibp_stub\n"
        "    ldr x16, [x16, :lo12:ibp_stub_targets+8*ibp_stub]\n"
        "    br x16\n"
        ".set ibp_stub, ibp_stub + 1\n"
        ".endr\n"
        ".cfi_endproc\n"
        ".size ibp_stubs, . - ibp_stubs\n");
#else
#define STUB_BYTES 0
static const char *const ibp_stubs = NULL;
#endif

const void *ibp_binding_caller(void)
{
    const void *caller = ibp_caller_left_behind;

    ibp_caller_left_behind = NULL;
    return caller;
}

bool ibp_is_mpi_binding(const char *path)
{
    /* The tool libmpiP.so is not in the list, because a tool's calls count as calls of the program. */
    static const char *const names[] = {"libmpi.so", "libmpi_", "libmpich", "libmpicxx", "libmpif", "libmpigf"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

/* Return whether the text after the name of an MPI call is empty, or a suffix of Fortran bindings. */
static bool is_ending(const char *text)
{
    static const char *const endings[] = {
        "", "_", "__", "_f08", "_f08_", "_f08ts", "_f08ts_", "_f08ts_large_", "_c_f08_", "_c_f08ts_"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(text, endings[i])) return true;
    return false;
}

/* Return whether a name is the Fortran binding of a wrapped call. Names of Fortran bindings are all upper case or all
 * lower case, unlike names of C functions. */
static bool is_of_binding(const char *name)
{
    const char *call = name + (name[0] == 'p' || name[0] == 'P') + 4;

    if (strncasecmp(name, "mpi_", 4) && strncasecmp(name, "pmpi_", 5)) return false;
    if (!isupper((unsigned char)name[0]) != !isupper((unsigned char)call[1])) return false;
    for (unsigned operation = IBP_OPERATION_UNATTRIBUTED + 1; operation < IBP_OPERATIONS; operation++) {
        const char *known = ibp_operation_name(operation);
        const size_t length = strlen(known);

        if (!strncasecmp(call, known, length) && is_ending(call + length)) return true;
    }
    return false;
}

/* Return a stub that jumps to `function`; if all stubs are in use, return `function`. */
static void *stub_of(void *function)
{
    unsigned i = 0;

    while (i < used && ibp_stub_targets[i] != function) i++;
    if (i == STUBS) return function;
    if (i == used) ibp_stub_targets[used++] = function;
    return (void *)(uintptr_t)(ibp_stubs + (size_t)i * STUB_BYTES);
}

static bool is_stub(const void *function)
{
    return (uintptr_t)function - (uintptr_t)ibp_stubs < (uintptr_t)STUBS * STUB_BYTES;
}

static void *choose(const char *name, void *found)
{
    return is_stub(found) || !is_of_binding(name) ? found : stub_of(found);
}

void ibp_bindings_hook(void)
{
    if (STUB_BYTES) ibp_got_redirect_bindings(choose);
    ibp_log(3, "%u functions of Fortran bindings are called through stubs", used);
}
