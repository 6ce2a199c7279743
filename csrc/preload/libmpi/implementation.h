/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Find the loaded libraries that define MPI, and the ABI of each library. A handle of another MPI may crash a library,
 * so ibprof passes no handle to a library of unknown ABI.
 */
#ifndef IBPROF_LIBMPI_IMPLEMENTATION_H
#define IBPROF_LIBMPI_IMPLEMENTATION_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum length of the text of MPI_Get_library_version, in all implementations. */
#define IBP_LIBRARY_VERSION_MAX 8192

/* How handles are represented. */
enum ibp_abi { IBP_ABI_NONE, IBP_ABI_OPENMPI, IBP_ABI_MPICH, IBP_ABI_STANDARD };

struct ibp_span {
    uintptr_t begin, end;
};

static inline bool ibp_is_within(struct ibp_span span, uintptr_t address)
{
    return address - span.begin < span.end - span.begin;
}

/* A loaded library. If no library was found, all members are 0. */
struct ibp_implementation {
    void *handle;
    /* Addresses of all memory of the library, and of its writable data. */
    struct ibp_span whole, data;
    const char *name;
};

/* Find the library whose MPI functions ibprof's wrappers call. The program's handles belong to this library. Return
 * false if no library defines MPI. */
bool ibp_implementation_find(struct ibp_implementation *found);

/* `front` is a library that translates handles: find the MPI library that `front` calls. Return false if no initialised
 * MPI library with a known ABI is found. */
bool ibp_implementation_find_behind(const struct ibp_implementation *front, struct ibp_implementation *found);

/* Return the ABI of a library; IBP_ABI_NONE if unknown. The ABI is inferred from symbols that only one implementation
 * of MPI defines, and from MPI_Abi_get_version. If the library lacks MPI_Abi_get_version, ibprof uses the library's
 * name instead. */
enum ibp_abi ibp_implementation_abi(const struct ibp_implementation *library);

/* Write the first line of the text that MPI_Get_library_version returns; an empty text if the library lacks the
 * function. */
void ibp_implementation_version(const struct ibp_implementation *library, char *text, size_t bytes);

/* Return the address of a symbol that the library itself defines; otherwise NULL. */
void *ibp_implementation_symbol(const struct ibp_implementation *library, const char *name);

/* Return the library's function with this PMPI name; if the library lacks this function, the function with the MPI
 * name; NULL if the library lacks both functions. */
void *ibp_implementation_function(const struct ibp_implementation *library, const char *name);

#endif
