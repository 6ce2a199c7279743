/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Loaded libraries that define MPI, and which implementation each is. Until the implementation is known, ibprof passes
 * no handle to a library: a handle of another library may end the program.
 */
#ifndef IBPROF_LIBMPI_IMPLEMENTATION_H
#define IBPROF_LIBMPI_IMPLEMENTATION_H

#include "platform/system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum length of MPI_Get_library_version, in all implementations. */
#define IBP_LIBRARY_VERSION_MAX 8192

/* The type of handles. */
enum ibp_abi { IBP_ABI_NONE, IBP_ABI_OPENMPI, IBP_ABI_MPICH, IBP_ABI_STANDARD };

struct ibp_span {
    uintptr_t begin, end;
};

static inline bool ibp_is_within(struct ibp_span span, uintptr_t address)
{
    return address - span.begin < span.end - span.begin;
}

/* A loaded library; all zeros for none. */
struct ibp_implementation {
    /* The handle that dlopen returns. */
    void *handle;
    /* All memory of the library, and its writable data. */
    struct ibp_span whole, data;
    /* The base name of its file. */
    const char *name;
};

/* Find the library that defines the MPI functions that ibprof's wrappers call; the program's handles belong to it.
 * Return false when there is none. */
bool ibp_implementation_find(struct ibp_implementation *found);

/* Find a known and initialised MPI other than `front`; `front` translates handles for it. Return false when
 * there is none. */
bool ibp_implementation_find_behind(const struct ibp_implementation *front, struct ibp_implementation *found);

/* Return the ABI of a library, from symbols that only the implementation itself defines, and from the results of
 * functions that take no handle. IBP_ABI_NONE: unknown. */
enum ibp_abi ibp_implementation_abi(const struct ibp_implementation *library);

/* Write the first line of a library's version text; an empty text without one. */
void ibp_implementation_version(const struct ibp_implementation *library, char *text, size_t bytes);

/* Return a symbol that the library itself defines, and not one of its dependencies; NULL when there is none. */
void *ibp_implementation_symbol(const struct ibp_implementation *library, const char *name);

/* Return a function that the library itself defines, by its PMPI name, or by its MPI name in libraries without PMPI
 * names; NULL when there is none. */
void *ibp_implementation_function(const struct ibp_implementation *library, const char *name);

#endif
