/* SPDX-License-Identifier: Apache-2.0
 * The results of libbacktrace's configure for 64-bit Linux. Functions of lines.c allocate libbacktrace's memory. */
#include <stddef.h>
#include <stdlib.h>

#define BACKTRACE_ELF_SIZE 64
#define HAVE_ATOMIC_FUNCTIONS 1
#define HAVE_SYNC_FUNCTIONS 1
#define HAVE_DL_ITERATE_PHDR 1
#define HAVE_LINK_H 1
#define HAVE_FCNTL 1
#define HAVE_LSTAT 1
#define HAVE_READLINK 1
#define HAVE_DECL_STRNLEN 1
#define HAVE_DECL_GETPAGESIZE 1

void *ibp_lines_malloc(size_t size);
void *ibp_lines_realloc(void *old, size_t size);
void ibp_lines_free(void *old);
