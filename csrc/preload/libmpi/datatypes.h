/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sizes of datatypes. In Open MPI, a handle is the address of an object that contains the size. To find the offset of
 * the size, ibprof compares predefined datatypes. In other MPIs, ibprof asks MPI for the size, and caches the sizes of
 * predefined datatypes. Sizes of derived datatypes are not cached, because MPI may reuse a handle for another datatype.
 */
#ifndef IBPROF_LIBMPI_DATATYPES_H
#define IBPROF_LIBMPI_DATATYPES_H

#include "libmpi/handles.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offset of the size in Open MPI's datatype object; 0 if unknown, and in other ABIs. */
extern IBP_INTERNAL size_t ibp_datatype_size_offset;

/* Find ibp_datatype_size_offset. Return false in ABIs other than Open MPI's, or if the offset cannot be found. MPI must
 * be initialised. No message is sent. */
bool ibp_datatypes_probe(void);

/* Return the size of a valid datatype of Open MPI. ibp_datatype_size_offset must be known. */
static inline uint64_t ibp_datatype_size_there(ibp_handle datatype)
{
    return *(const size_t *)((const char *)datatype + ibp_datatype_size_offset);
}

bool ibp_datatype_is_predefined(ibp_handle datatype);

/* Return whether a datatype of Open MPI is predefined. The handle of a predefined datatype is an address in the data of
 * the library or, after a copy relocation, of the program. */
static inline bool ibp_datatype_is_object(ibp_handle datatype)
{
    return IBP_LIKELY(ibp_is_within(ibp_mpi.library.data, (uintptr_t)datatype)) ||
           ibp_is_within(ibp_mpi.program_data, (uintptr_t)datatype);
}

/* Return whether an argument of an MPI call is a predefined datatype. The function works with every MPI library. */
static inline bool ibp_datatype_is_elementary(ibp_handle argument)
{
    if (IBP_LIKELY(ibp_mpi.abi == IBP_ABI_OPENMPI)) return ibp_datatype_is_object(argument);
    return ibp_datatype_is_predefined(IBP_HANDLE(argument));
}

/* Return the bytes of `count` items of a datatype; 0 for a null handle. All other handles must be valid. Do not pass a
 * datatype argument that MPI ignores because the buffer is MPI_IN_PLACE. */
uint64_t ibp_mpi_bytes_of_other(uint64_t count, ibp_handle datatype);

static inline uint64_t ibp_mpi_bytes(uint64_t count, ibp_handle datatype)
{
    if (!count) return 0;
    if (IBP_LIKELY(ibp_datatype_size_offset && datatype)) return count * ibp_datatype_size_there(datatype);
    return ibp_mpi_bytes_of_other(count, datatype);
}

#endif
