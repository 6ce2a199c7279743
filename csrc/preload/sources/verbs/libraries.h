/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The real functions of libibverbs and of vendors' libraries, from the library that is loaded: RTLD_NEXT does not find one
 * that a plugin loaded. ibprof never loads it.
 */
#ifndef IBPROF_SOURCES_VERBS_LIBRARIES_H
#define IBPROF_SOURCES_VERBS_LIBRARIES_H

#include <stdbool.h>

#define IBP_VERBS_LIBRARY "libibverbs.so.1"
#define IBP_MLX5_LIBRARY "libmlx5.so.1"
#define IBP_MLX4_LIBRARY "libmlx4.so.1"
#define IBP_EFA_LIBRARY "libefa.so.1"
#define IBP_HNS_LIBRARY "libhns.so.1"
#define IBP_MANA_LIBRARY "libmana.so.1"

/* Return a library's function of that name; NULL where the library is not loaded, or has no such function. */
void *ibp_verbs_real_in(const char *library, const char *name);

/* Return the library to which a function belongs, by the beginning of its name; NULL where it is none of these. */
const char *ibp_verbs_library_of(const char *name);

/* Return whether a file, by its name without folders, is one of these libraries, of any version. */
bool ibp_verbs_is_library(const char *file);

/* Return the function of that name from the library to which the name belongs. */
void *ibp_verbs_real(const char *name);

#endif
