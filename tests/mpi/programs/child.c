/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A program without MPI, for any C library. A rank starts it by system(), with the rank's LD_PRELOAD.
 */
#include <stdio.h>

int main(void)
{
    puts("a child of another C library");
    return 3;
}
