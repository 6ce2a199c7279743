/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Chains of callers: IBPROF_CALLERS=N. A program that calls MPI through a library has few call sites, all in the
 * library. With callers, a call is identified by its site and by up to N enclosing functions of the program and its
 * libraries; functions of MPI and libc are left out. Where a Python program calls C code, the lines of that program
 * continue the chain.
 */
#ifndef IBPROF_COUNTING_CALLER_CHAINS_H
#define IBPROF_COUNTING_CALLER_CHAINS_H

#include "platform/system.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_CALLERS_MAX 16

/* Number of callers recorded with each site; 0 without callers. */
extern IBP_INTERNAL unsigned ibp_callers_recorded;

/* Read IBPROF_CALLERS, and reserve memory. */
void ibp_callers_prepare(void);

/* The site and its callers, from the inside. */
struct ibp_caller_chain {
    /* Key of the whole chain; it differs from all addresses and from the keys of single frames. */
    const void *key;
    /* Number of return addresses. */
    unsigned addresses;
    const void *address[1 + IBP_CALLERS_MAX];
    /* Number of Python frames around the addresses. */
    unsigned frames;
    struct ibp_script_frame frame[1 + IBP_CALLERS_MAX];
};

/* Find the chain of an MPI call by its return address. Return false where the site is unknown: calls of unknown code,
 * or calls through a binding without a stub. The function neither locks nor allocates once addresses are known. */
bool ibp_caller_chain_find(const void *address, struct ibp_caller_chain *chain);

/* Forget all known addresses after objects were unloaded. From then on the same addresses have other keys. */
void ibp_caller_chains_forget(void);

#endif
