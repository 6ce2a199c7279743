/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Call points: a table that maps the key of an MPI call's origin to the number of the recorded call site. The key is
 * the return address of the call, or in a Python program the current instruction of the frame. Several call points may
 * have the same site, because each compilation of a Python program produces new instructions for the same lines. With
 * IBPROF_CALLERS, the key identifies a whole chain of callers.
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
    /* The return address is within mpi4py, or in a library that calls C functions for Python: the Python frame
     * identifies the site. */
    IBP_LANGUAGE_PYTHON,
    /* The address was in an object that has been unloaded. */
    IBP_LANGUAGE_UNLOADED
};

struct ibp_call_point {
    /* NULL if the entry is free. Set after the other members and never changed, because entries are read without the
     * lock. */
    const void *key;
    uint32_t site;
    uint32_t language; /* enum ibp_language; set after the site */
};

/* Allocate the first table. Return false if memory is exhausted. */
bool ibp_call_points_prepare(void);

/* Return the call point of a return address, created if needed; NULL if the table is full. */
const struct ibp_call_point *ibp_call_point_of_address(const void *address);

/* Return the call point of a frame of a Python script, created if needed; NULL if the table is full. */
const struct ibp_call_point *ibp_call_point_of_script(const struct ibp_script_frame *frame);

/* Return the call point of a chain of callers, created if needed; NULL if the table is full. */
const struct ibp_call_point *ibp_call_point_of_chain(const struct ibp_caller_chain *chain);

/* Return whether a key is a return address. Other keys identify Python frames or chains of callers. */
static inline bool ibp_call_point_key_is_address(const void *key)
{
    return key && (uintptr_t)key >> 62 == 0;
}

/* After objects were unloaded: forget the return addresses in these objects, and all chains of callers. The lock must
 * be held. */
void ibp_call_points_forget_unloaded(void);

/* Return the key of a Python frame. The key differs from all return addresses. */
static inline const void *ibp_call_point_key_of_script(const struct ibp_script_frame *frame)
{
    return (const void *)(uintptr_t)((frame->key | UINT64_C(1) << 63) & ~(UINT64_C(1) << 62));
}

#endif
