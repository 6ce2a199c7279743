/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The real functions of libibverbs and of vendors' libraries, from the loaded library. RTLD_NEXT does not find a
 * library that a plug-in loaded. ibprof never loads such a library.
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

/* Return the library of a function, from the beginning of its name; NULL for other functions. */
const char *ibp_verbs_library_of(const char *name);

/* Return whether a file, by its name without folders, is one of these libraries in any version. */
bool ibp_verbs_is_library(const char *file);

/* Return the real function of a name, from the library of the name. */
void *ibp_verbs_real(const char *name);

#endif
