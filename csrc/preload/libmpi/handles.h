/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * MPI's handles in the ABI of this process's library: null handles, arrays of handles.
 */
#ifndef IBPROF_LIBMPI_HANDLES_H
#define IBPROF_LIBMPI_HANDLES_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A handle from an argument. An integer in a register leaves the upper half of the register undefined. */
#define IBP_HANDLE(argument) (ibp_mpi.abi == IBP_ABI_MPICH ? (ibp_handle)(int)(argument) : (ibp_handle)(argument))

/* Return whether a handle is null. A query of MPI about a null handle would call the program's error handler. */
bool ibp_mpi_is_null(ibp_handle handle);

/* Return a request of an array. Requests are integers in MPICH's ABI. */
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
