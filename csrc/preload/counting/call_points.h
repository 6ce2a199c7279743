/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Places from which the program calls MPI, and the recorded site of each. A place is known by a key: the address that a
 * call returns to, or, of a Python program, the instruction that its frame is at. Several places may have one site:
 * each compilation of a Python program produces new instructions for the same lines. With callers, a place is a whole
 * chain.
 */
#ifndef IBPROF_COUNTING_CALL_POINTS_H
#define IBPROF_COUNTING_CALL_POINTS_H

#include "counting/caller_chains.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_language {
    /* The address identifies the site. */
    IBP_LANGUAGE_C,
    /* The address is within a language binding: the caller of the binding identifies the site. */
    IBP_LANGUAGE_FORTRAN,
    /* The address is within mpi4py, or in a library that calls C functions for Python: the frame identifies the
     * site. */
    IBP_LANGUAGE_PYTHON,
    /* The address was in an object that has been unloaded. */
    IBP_LANGUAGE_UNLOADED
};

struct ibp_call_point {
    /* NULL in a free place. Set last and never changed, because places are read without the lock. */
    const void *key;
    uint32_t site;
    uint32_t language; /* enum ibp_language; set after the site */
};

/* Reserve memory. Return false when there is none. */
bool ibp_call_points_prepare(void);

/* Return the place of the calls that return to an address, created if needed; NULL if the table is full. */
const struct ibp_call_point *ibp_call_point_of_address(const void *address);

/* Return the place of a frame of a script, likewise. */
const struct ibp_call_point *ibp_call_point_of_script(const struct ibp_script_frame *frame);

/* Return the place of a site with its callers, likewise. */
const struct ibp_call_point *ibp_call_point_of_chain(const struct ibp_caller_chain *chain);

/* Return whether a key is an address in a program, and not the key of a frame or a chain. */
static inline bool ibp_call_point_key_is_address(const void *key)
{
    return key && (uintptr_t)key >> 62 == 0;
}

/* Forget addresses without an object, and all known callers, after objects were unloaded. The lock must be held. */
void ibp_call_points_forget_unloaded(void);

/* Return the key of a frame, which differs from all addresses in programs. */
static inline const void *ibp_call_point_key_of_script(const struct ibp_script_frame *frame)
{
    return (const void *)(uintptr_t)((frame->key | UINT64_C(1) << 63) & ~(UINT64_C(1) << 62));
}

#endif
