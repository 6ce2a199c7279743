/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The real functions of libibverbs and of mlx5's library, from the library that is loaded: RTLD_NEXT does not find one
 * that a plugin loaded. ibprof never loads it.
 */
#ifndef IBPROF_SOURCES_VERBS_LIBRARIES_H
#define IBPROF_SOURCES_VERBS_LIBRARIES_H

#define IBP_VERBS_LIBRARY "libibverbs.so.1"
#define IBP_MLX5_LIBRARY "libmlx5.so.1"

/* Return a library's function of that name; NULL where the library is not loaded, or has no such function. */
void *ibp_verbs_real_in(const char *library, const char *name);

/* Return the function of that name from the library to which the name belongs. */
void *ibp_verbs_real(const char *name);

#endif
