/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Handles in the ABI of this process's MPI library: null handles, arrays of handles.
 */
#ifndef IBPROF_LIBMPI_HANDLES_H
#define IBPROF_LIBMPI_HANDLES_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The handle in an argument of an MPI call. MPICH's handles are 32-bit integers, so the upper half of the argument is
 * undefined. */
#define IBP_HANDLE(argument) (ibp_mpi.abi == IBP_ABI_MPICH ? (ibp_handle)(int)(argument) : (ibp_handle)(argument))

/* Return whether a handle is null. Null handles must not be passed to MPI, because MPI would call the program's error
 * handler. */
bool ibp_mpi_is_null(ibp_handle handle);

/* Return request `i` of an array. In MPICH's ABI, the array contains 32-bit integers. */
static inline void *ibp_mpi_request(void *const *requests, size_t i)
{
    if (!requests) return NULL; /* MPI reports the error */
    return ibp_mpi.abi == IBP_ABI_MPICH ? (void *)(intptr_t)((const int *)requests)[i] : requests[i];
}

static inline void **ibp_mpi_requests_from(void **requests, size_t i)
{
    return ibp_mpi.abi == IBP_ABI_MPICH ? (void **)((int *)requests + i) : requests + i;
}

#endif
