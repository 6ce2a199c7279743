/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What MPI's handles are in the ABI of this process's library: which are null, how arrays of them lie, how large a datatype is.
 */
#ifndef IBPROF_LIBMPI_HANDLES_H
#define IBPROF_LIBMPI_HANDLES_H

#include "libmpi/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A handle as an argument: an integer in a register leaves the register's other half undefined. */
#define IBP_HANDLE(argument) (ibp_mpi.abi == IBP_ABI_MPICH ? (ibp_handle)(int)(argument) : (ibp_handle)(argument))

/* Whether a handle is a null one. MPI tells the program's error handlers of whoever asks about those, us too; and in MPICH a
 * call of the program's that had one returns success when a handler returns. */
bool ibp_mpi_is_null(ibp_handle handle);

/* One of an array of requests, which are integers in MPICH's ABI. */
static inline void *ibp_mpi_request(void *const *requests, size_t i)
{
    if (!requests) return NULL; /* for MPI to tell the program */
    return ibp_mpi.abi == IBP_ABI_MPICH ? (void *)(intptr_t)((const int *)requests)[i] : requests[i];
}

static inline void **ibp_mpi_requests_from(void **requests, size_t i)
{
    return ibp_mpi.abi == IBP_ABI_MPICH ? (void **)((int *)requests + i) : requests + i;
}

/* Bytes of `count` items of a datatype. The size of the predefined one that was used last is kept: it never changes, while a
 * derived one's address may come to be another type's. */
struct ibp_known_type {
    ibp_handle datatype;
    uint64_t size;
};
extern IBP_INTERNAL struct ibp_known_type ibp_known_type;
uint64_t ibp_mpi_bytes_of_other(uint64_t count, ibp_handle datatype);

static inline uint64_t ibp_mpi_bytes(uint64_t count, ibp_handle datatype)
{
    if (__builtin_expect(datatype == ibp_known_type.datatype, 1)) return count * ibp_known_type.size;
    return ibp_mpi_bytes_of_other(count, datatype);
}

#endif
