/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/handles.h"

bool ibp_mpi_is_null(ibp_handle handle)
{
    static const char *const names[] = {"ompi_mpi_comm_null", "ompi_mpi_datatype_null", "ompi_mpi_win_null"};
    static ibp_handle objects[sizeof names / sizeof *names];

    switch (ibp_mpi.abi) {
    case IBP_ABI_MPICH: /* the highest bits are the type of the handle; 0 is invalid */
        return !((uint32_t)handle >> 30);
    case IBP_ABI_STANDARD: /* 0x100 and so on: null handles of communicators, groups, windows and datatypes */
        return !handle || handle == 0x100 || handle == 0x108 || handle == 0x110 || handle == 0x200;
    default:
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (!objects[i]) objects[i] = (ibp_handle)ibp_mpi_symbol(names[i]);
            if (handle == objects[i]) return true;
        }
        return !handle;
    }
}
