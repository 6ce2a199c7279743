/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Chains of callers: IBPROF_CALLERS=N. A program that calls MPI only through a library has few call sites, all in the
 * library. With IBPROF_CALLERS, a call is identified by its site and by up to N enclosing functions of the program and
 * its libraries. Functions of MPI and libc do not count. If Python called the C code, the chain continues with lines of
 * the Python program.
 */
#ifndef IBPROF_COUNTING_CALLER_CHAINS_H
#define IBPROF_COUNTING_CALLER_CHAINS_H

#include "platform/system.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_CALLERS_MAX 16

/* Number of callers recorded with each site: the value of IBPROF_CALLERS. */
extern IBP_INTERNAL unsigned ibp_callers_recorded;

/* Read IBPROF_CALLERS, and reserve memory. */
void ibp_callers_prepare(void);

/* The site and its callers, innermost first. */
struct ibp_caller_chain {
    /* Key of the whole chain; it differs from all addresses and from the keys of single frames. */
    const void *key;
    /* Number of return addresses. */
    unsigned addresses;
    const void *address[1 + IBP_CALLERS_MAX];
    /* Number of Python frames, which enclose the functions of the addresses. */
    unsigned frames;
    struct ibp_script_frame frame[1 + IBP_CALLERS_MAX];
};

/* Find the chain of callers of an MPI call from its return address. Return false if the site is unknown. It is unknown
 * if the address is outside of all objects, or in a binding of MPI that the program did not call through a stub
 * (libmpi/callers.h). For known addresses, the function neither locks nor allocates. */
bool ibp_caller_chain_find(const void *address, struct ibp_caller_chain *chain);

/* Forget all known addresses after objects were unloaded. Afterwards, chains with the same addresses get other keys. */
void ibp_caller_chains_forget(void);

#endif
