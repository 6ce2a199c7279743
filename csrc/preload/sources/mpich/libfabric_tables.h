/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Replace the tables of functions in libfabric's objects with copies that contain hooks.
 */
#ifndef IBPROF_SOURCES_MPICH_LIBFABRIC_TABLES_H
#define IBPROF_SOURCES_MPICH_LIBFABRIC_TABLES_H

#include <stddef.h>

struct ibp_fi_known_endpoint;

/* Two pointers that precede the copy of a table in memory. */
struct ibp_fi_owned {
    struct ibp_fi_known_endpoint *owner;
    const void *original;
};
#define OWNED(table) ((const struct ibp_fi_owned *)(table) - 1)
#define ORIGINAL(table) ((__typeof__(table))OWNED(table)->original)

/* Replace an object's table with a copy, and return the copy. If memory is exhausted, return NULL and keep the original
 * table. */
void *ibp_fi_copy_table(void *table_of_object, struct ibp_fi_known_endpoint *owner);

/* Replace a function in a table, if the table contains the function. */
#define PUT(table, place, function)                                                                                    \
    do {                                                                                                               \
        if ((table)->bytes >= offsetof(__typeof__(*(table)), place) + sizeof(table)->place && (table)->place)          \
            (table)->place = function;                                                                                 \
    } while (0)

#endif
