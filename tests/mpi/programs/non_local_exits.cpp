/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Like non_local_exits.c, but exceptions leave the calls.
 */
#include "non_local_exits.c"
