/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Tables of functions that libfabric's objects carry, and that ours are put into.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_TABLES_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_TABLES_H

#include <stddef.h>

struct ibp_fi_known_endpoint;

/* A table of ours is preceded by its owner and by the table that it took the place of. */
struct ibp_fi_owned {
    struct ibp_fi_known_endpoint *owner;
    const void *original;
};
#define OWNED(table) ((const struct ibp_fi_owned *)(table) - 1)
#define ORIGINAL(table) ((__typeof__(table))OWNED(table)->original)

/* A copy of an object's table for ours to be put in; NULL when there is no memory, and the object keeps the one it has. */
void *ibp_fi_copy_table(void *table_of_object, struct ibp_fi_known_endpoint *owner);

/* Puts a function into a table, if the table is large enough to have the place. */
#define PUT(table, place, function)                                                                                    \
    do {                                                                                                               \
        if ((table)->bytes >= offsetof(__typeof__(*(table)), place) + sizeof(table)->place && (table)->place)          \
            (table)->place = function;                                                                                 \
    } while (0)

#endif
