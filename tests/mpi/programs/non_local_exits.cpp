/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The same in C++, where an exception is the way out.
 */
#include "non_local_exits.c"
