/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "libmpi/datatypes.h"
#include "libmpi/handles.h"
#include "platform/log.h"

size_t ibp_datatype_size_offset;

/* -- Open MPI ------------------------------------------------------------------------------------------------------ */

#define SEARCHED_BYTES 128

/* Return the offset at which each datatype object in `names` contains its size; 0 if no offset or several offsets
 * match. Some of these datatypes have gaps: their extent exceeds their size, so the offset of the extent does not
 * match. */
static size_t find_size_offset(void)
{
    static const char *const names[] = {"ompi_mpi_byte",     "ompi_mpi_short",     "ompi_mpi_int",
                                        "ompi_mpi_double",   "ompi_mpi_short_int", "ompi_mpi_double_int",
                                        "ompi_mpi_long_int", "ompi_mpi_2int"};
    enum { TYPES = sizeof names / sizeof *names };
    ibp_handle types[TYPES];
    int64_t sizes[TYPES];
    size_t found = 0;

    for (size_t i = 0; i < TYPES; i++) {
        types[i] = (ibp_handle)ibp_mpi_symbol(names[i]);
        if (!types[i] || ibp_mpi.type_size(types[i], &sizes[i])) return 0;
    }
    for (size_t offset = sizeof(void *); offset < SEARCHED_BYTES; offset += sizeof(size_t)) {
        size_t same = 0;

        while (same < TYPES && *(const size_t *)((const char *)types[same] + offset) == (size_t)sizes[same]) same++;
        if (same < TYPES) continue;
        if (found) return 0;
        found = offset;
    }
    return found;
}

bool ibp_datatypes_probe(void)
{
    ibp_datatype_size_offset = ibp_mpi.abi == IBP_ABI_OPENMPI ? find_size_offset() : 0;
    ibp_log(2, "the size of a datatype is at offset %zu of its object", ibp_datatype_size_offset);
    return ibp_datatype_size_offset != 0;
}

/* -- other MPIs ---------------------------------------------------------------------------------------------------- */

#define PLACES 256

/* Cache of the sizes of predefined datatypes. The index of an entry is a hash of the handle. An entry that is set never
 * changes, so threads can read it without a lock. */
static struct {
    ibp_handle datatype;
    int64_t size;
} predefined[PLACES];

/* In ABIs other than Open MPI's, predefined datatypes have fixed handles. */
bool ibp_datatype_is_predefined(ibp_handle datatype)
{
    switch (ibp_mpi.abi) {
    case IBP_ABI_MPICH:
        return (datatype & 0xff000000) == 0x4c000000;
    case IBP_ABI_STANDARD:
        return datatype > 0 && datatype < 1024;
    default:
        return ibp_datatype_is_object(datatype);
    }
}

static size_t place_of(ibp_handle datatype)
{
    return ((uint64_t)datatype * UINT64_C(0x9e3779b97f4a7c15)) >> 56;
}

static void keep(ibp_handle datatype, int64_t size)
{
    const size_t place = place_of(datatype);
    int64_t nothing = 0;

    /* Only the thread that succeeds in setting the size sets the handle. MPI_LB and MPI_UB, whose size is not positive,
     * are not cached. */
    if (size > 0 &&
        __atomic_compare_exchange_n(&predefined[place].size, &nothing, size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_store_n(&predefined[place].datatype, datatype, __ATOMIC_RELEASE);
}

uint64_t ibp_mpi_bytes_of_other(uint64_t count, ibp_handle datatype)
{
    int64_t size = 0;
    size_t place;

    datatype = IBP_HANDLE(datatype);
    place = place_of(datatype);
    if (__atomic_load_n(&predefined[place].datatype, __ATOMIC_ACQUIRE) == datatype && datatype)
        return count * (uint64_t)predefined[place].size;
    if (!count || ibp_mpi_is_null(datatype)) return 0;
    ibp_mpi.type_size(datatype, &size);
    if (ibp_datatype_is_predefined(datatype)) keep(datatype, size);
    return count * (uint64_t)size;
}
