/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/handles.h"

struct ibp_known_type ibp_known_type;

static bool is_within(struct ibp_span span, ibp_handle handle)
{
    return (uintptr_t)handle - span.begin < span.end - span.begin;
}

/* Return whether a datatype is predefined. In Open MPI these are objects in the library's data or copies in the
 * program's; other ABIs reserve numbers. */
static bool is_predefined(ibp_handle datatype)
{
    switch (ibp_mpi.abi) {
    case IBP_ABI_MPICH:
        return (datatype & 0xff000000) == 0x4c000000;
    case IBP_ABI_STANDARD:
        return datatype > 0 && datatype < 1024;
    default:
        return is_within(ibp_mpi.library_data, datatype) || is_within(ibp_mpi.program_data, datatype);
    }
}

bool ibp_mpi_is_null(ibp_handle handle)
{
    static const char *const names[] = {"ompi_mpi_comm_null", "ompi_mpi_datatype_null", "ompi_mpi_win_null"};
    static ibp_handle objects[sizeof names / sizeof *names];

    switch (ibp_mpi.abi) {
    case IBP_ABI_MPICH: /* the first bits are the kind of the handle; 0 is invalid */
        return !((uint32_t)handle >> 30);
    case IBP_ABI_STANDARD: /* null handles of communicators, groups, windows, datatypes */
        return !handle || handle == 0x100 || handle == 0x108 || handle == 0x110 || handle == 0x200;
    default:
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (!objects[i]) objects[i] = (ibp_handle)ibp_mpi_symbol(names[i]);
            if (handle == objects[i]) return true;
        }
        return !handle;
    }
}

uint64_t ibp_mpi_bytes_of_other(uint64_t count, ibp_handle datatype)
{
    int64_t size = 0;

    datatype = IBP_HANDLE(datatype);
    if (!count || ibp_mpi_is_null(datatype)) return 0;
    ibp_mpi.type_size(datatype, &size);
    /* Two words cannot be replaced atomically, so with several threads in MPI nothing is kept. */
    if (is_predefined(datatype) && ibp_mpi.thread_level < 3) {
        ibp_known_type.size = (uint64_t)size;
        ibp_known_type.datatype = datatype;
    }
    return count * (uint64_t)size;
}
