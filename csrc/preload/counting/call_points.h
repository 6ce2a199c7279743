/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Call points: a table that maps a key to the number of a recorded call site. The key is the return address of an MPI
 * call, or in a Python program the current instruction of the frame. Several keys may map to the same site, because
 * each compilation of a Python program produces new instructions for the same lines. With IBPROF_CALLERS, the key is a
 * hash of the call's whole chain of callers.
 */
#ifndef IBPROF_COUNTING_CALL_POINTS_H
#define IBPROF_COUNTING_CALL_POINTS_H

#include "counting/caller_chains.h"
#include "python/script_frames.h"

#include <stdbool.h>
#include <stdint.h>

enum ibp_language {
    /* The return address identifies the site. */
    IBP_LANGUAGE_C,
    /* The return address is within a Fortran binding of MPI: the caller of the binding identifies the site. */
    IBP_LANGUAGE_FORTRAN,
    /* The return address is in mpi4py, or in a library through which Python calls C functions. The Python frame
     * identifies the site. */
    IBP_LANGUAGE_PYTHON,
    /* The return address was in an object that has been unloaded. */
    IBP_LANGUAGE_UNLOADED
};

struct ibp_call_point {
    /* NULL if the entry is free. The key is set after the other members and never changed, because threads read entries
     * without the lock. */
    const void *key;
    uint32_t site;
    uint32_t language; /* enum ibp_language; set after `site` */
};

/* Allocate the first table. Return false if memory is exhausted. */
bool ibp_call_points_prepare(void);

/* Return the call point of a return address, created if needed; NULL if the table is full. */
const struct ibp_call_point *ibp_call_point_of_address(const void *address);

/* Return the call point of a frame of a Python script, created if needed. Return NULL if the table is full, or if the
 * file or function is unknown. */
const struct ibp_call_point *ibp_call_point_of_script(const struct ibp_script_frame *frame);

/* Return the call point of a chain of callers, created if needed. Return NULL if the table is full, or if the innermost
 * function is unknown. */
const struct ibp_call_point *ibp_call_point_of_chain(const struct ibp_caller_chain *chain);

/* Return whether a key is a return address. In keys of Python frames, chains of callers and sites, a bit is 1 that is 0
 * in all addresses. */
static inline bool ibp_call_point_key_is_address(const void *key)
{
    return key && (uintptr_t)key >> 62 == 0;
}

/* After objects were unloaded: mark the return addresses in these objects as unloaded, and forget all chains of
 * callers. The lock must be held. */
void ibp_call_points_forget_unloaded(void);

/* Return a Python frame's key, which differs from all return addresses. */
static inline const void *ibp_call_point_key_of_script(const struct ibp_script_frame *frame)
{
    return (const void *)(uintptr_t)((frame->key | UINT64_C(1) << 63) & ~(UINT64_C(1) << 62));
}

#endif
