/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Find the real functions in libibverbs and in vendors' libraries that the program has loaded. ibprof never loads these
 * libraries. ibprof does not use RTLD_NEXT, because RTLD_NEXT does not find a library that a plug-in has opened.
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

/* Return the function `name` of a library; NULL if the library is not loaded or lacks the function. */
void *ibp_verbs_real_in(const char *library, const char *name);

/* Return the library of a function by the prefix of the function's name; NULL for an unknown prefix. */
const char *ibp_verbs_library_of(const char *name);

/* Return whether a file name (without folders) is one of these libraries, in any version. */
bool ibp_verbs_is_library(const char *file);

/* Like ibp_verbs_real_in, but the prefix of the function's name determines the library. */
void *ibp_verbs_real(const char *name);

#endif
