/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Chains of callers: IBPROF_CALLERS=N. A program that calls MPI through a library has few call sites, all in the
 * library. With callers, a call is known by its site and by up to N functions around it: those of the program and its
 * libraries, not of MPI and libc. Where C code is called by a Python program, the lines of that program continue the chain.
 */
#ifndef IBPROF_COUNTING_CALLER_CHAINS_H
#define IBPROF_COUNTING_CALLER_CHAINS_H

#include "platform/system.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

#define IBP_CALLERS_MAX 16

/* Number of callers that are recorded with each site; 0 where none are. */
extern IBP_INTERNAL unsigned ibp_callers_recorded;

/* Read IBPROF_CALLERS, and reserve memory. */
void ibp_callers_prepare(void);

/* From the inside: the site, and its callers. */
struct ibp_caller_chain {
    /* Of the whole chain; no address, and no key of a single frame. */
    const void *key;
    /* Where calls return to. */
    unsigned addresses;
    const void *address[1 + IBP_CALLERS_MAX];
    /* Python's frames around them. */
    unsigned frames;
    struct ibp_script_frame frame[1 + IBP_CALLERS_MAX];
};

/* Find the chain of a call of MPI by the address that it returns to. Return false where the site is not known: calls of
 * unknown code, or through a binding that no stub has seen. Neither locks nor allocates, once addresses are known. */
bool ibp_caller_chain_find(const void *address, struct ibp_caller_chain *chain);

/* Forget what is known of addresses: objects were unloaded. The same addresses have other keys from then on. */
void ibp_caller_chains_forget(void);

#endif
