/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A program without MPI, for any C library: what a rank starts by system() inherits the preload.
 */
#include <stdio.h>

int main(void)
{
    puts("a child of another C library");
    return 3;
}
