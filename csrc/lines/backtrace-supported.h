/* SPDX-License-Identifier: Apache-2.0
 * libbacktrace's state.c includes this file, but needs nothing from it. */
