/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Chains of callers: IBPROF_CALLERS=N. If a program calls MPI only through a library, all call sites are in the
 * library. With IBPROF_CALLERS=N, an MPI call is identified by its site and up to N enclosing functions. Functions of
 * MPI and libc are skipped. If Python called the outermost C function, the chain continues with lines of the Python
 * program.
 */
#ifndef IBPROF_COUNTING_CALLER_CHAINS_H
#define IBPROF_COUNTING_CALLER_CHAINS_H

#include "platform/system.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_CALLERS_MAX 16

/* Maximum number of callers recorded with each site: IBPROF_CALLERS, but at most IBP_CALLERS_MAX. */
extern IBP_INTERNAL unsigned ibp_callers_recorded;

/* Read IBPROF_CALLERS, and reserve memory for stack walks. */
void ibp_callers_prepare(void);

/* The site and its callers, innermost first. */
struct ibp_caller_chain {
    /* A hash of the whole chain, in which a bit is 1 that is 0 in all addresses. */
    const void *key;
    unsigned addresses;
    const void *address[1 + IBP_CALLERS_MAX];
    /* Number of Python frames. These frames enclose the functions of `address`. */
    unsigned frames;
    struct ibp_script_frame frame[1 + IBP_CALLERS_MAX];
};

/* Find the chain of callers of an MPI call from its return address. Return false for an address outside of all objects,
 * or in a binding that was not called through a stub (libmpi/callers.h). If the cache contains all addresses of the
 * chain, the function neither locks nor allocates. */
bool ibp_caller_chain_find(const void *address, struct ibp_caller_chain *chain);

/* After objects were unloaded: forget all cached addresses. Later chains with the same addresses get other keys. */
void ibp_caller_chains_forget(void);

#endif
