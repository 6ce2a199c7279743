/* SPDX-License-Identifier: Apache-2.0
 * Included by libbacktrace's state.c, which needs nothing of it. */
