/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The real functions of libibverbs and of mlx5's library. They are looked up in the library that is loaded: RTLD_NEXT does not
 * see one that came with a plugin. It is never loaded by ibprof.
 */
#ifndef IBPROF_SOURCES_VERBS_LIBRARIES_H
#define IBPROF_SOURCES_VERBS_LIBRARIES_H

#define IBP_VERBS_LIBRARY "libibverbs.so.1"
#define IBP_MLX5_LIBRARY "libmlx5.so.1"

/* The function of that name in a library; NULL where that is not loaded, or has none. */
void *ibp_verbs_real_in(const char *library, const char *name);

/* The same in the library that the name belongs to. */
void *ibp_verbs_real(const char *name);

#endif
