/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sizes of datatypes. In Open MPI a handle is the address of an object that contains the size, at an offset that ibprof
 * finds by a probe. In other MPIs, ibprof caches the sizes of predefined types, which never change. The size of a
 * derived type is queried each time, because its handle may be reused.
 */
#ifndef IBPROF_LIBMPI_DATATYPES_H
#define IBPROF_LIBMPI_DATATYPES_H

#include "libmpi/handles.h"
#include "libmpi/library.h"
#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offset of the size in a datatype of Open MPI; 0 where it is unknown, and in other ABIs. */
extern IBP_INTERNAL size_t ibp_datatype_size_offset;

/* Find that offset. MPI must be initialised. No message is sent. Return whether the offset was found. */
bool ibp_datatypes_probe(void);

/* Return the size of a valid datatype of Open MPI, where the offset is known. */
static inline uint64_t ibp_datatype_size_there(ibp_handle datatype)
{
    return *(const size_t *)((const char *)datatype + ibp_datatype_size_offset);
}

/* Return whether a datatype is predefined, so that its size never changes. */
bool ibp_datatype_is_predefined(ibp_handle datatype);

/* Return whether a datatype of Open MPI is predefined. Such datatypes are objects in the library's data or copies in
 * the program's data. */
static inline bool ibp_datatype_is_object(ibp_handle datatype)
{
    return IBP_LIKELY(ibp_is_within(ibp_mpi.library.data, (uintptr_t)datatype)) ||
           ibp_is_within(ibp_mpi.program_data, (uintptr_t)datatype);
}

/* Return whether a call's argument is a predefined datatype, in any MPI. */
static inline bool ibp_datatype_is_elementary(ibp_handle argument)
{
    if (IBP_LIKELY(ibp_mpi.abi == IBP_ABI_OPENMPI)) return ibp_datatype_is_object(argument);
    return ibp_datatype_is_predefined(IBP_HANDLE(argument));
}

/* Return the bytes of `count` items of a datatype; 0 for a null handle. Do not pass handles that MPI ignores, such as
 * the handle of MPI_IN_PLACE's buffer, because they may be invalid. */
uint64_t ibp_mpi_bytes_of_other(uint64_t count, ibp_handle datatype);

static inline uint64_t ibp_mpi_bytes(uint64_t count, ibp_handle datatype)
{
    if (!count) return 0;
    if (IBP_LIKELY(ibp_datatype_size_offset && datatype)) return count * ibp_datatype_size_there(datatype);
    return ibp_mpi_bytes_of_other(count, datatype);
}

#endif
