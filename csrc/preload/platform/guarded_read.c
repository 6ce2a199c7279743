/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/guarded_read.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

bool ibp_read_guarded(void *into, const void *address, size_t bytes)
{
    const struct iovec here = {into, bytes}, there = {(void *)address, bytes};
    int error = errno; /* errno of the program, restored at the end */
    ssize_t done = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

    errno = error;
    return done >= 0 && (size_t)done == bytes;
}
