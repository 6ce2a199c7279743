/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * One list of collective calls, each made in the style that the command line asks for.
 */
#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define NAME_INIT(name) MPIX_##name##_init
#else
#define NAME_INIT(name) MPI_##name##_init
#endif

#include <stdlib.h>
#include <string.h>

enum style { BLOCKING, NONBLOCKING, PERSISTENT };

static enum style style;
static const char *only = "all"; /* the call that is asked for, by its blocking name */

static void set_style(const char *name)
{
    style = !strcmp(name, "blocking") ? BLOCKING : !strcmp(name, "nonblocking") ? NONBLOCKING : PERSISTENT;
}

static int asked_for(const char *name)
{
    return !strcmp(only, "all") || !strcmp(only, name);
}

/* A persistent one is started twice, so that what a request carries from round to round is seen. */
#define COLLECTIVE(blocking, nonblocking, ...)                                                                         \
    do {                                                                                                               \
        MPI_Request request_;                                                                                          \
                                                                                                                       \
        if (!asked_for(#blocking)) break;                                                                              \
        if (style == BLOCKING) {                                                                                       \
            MPI_##blocking(__VA_ARGS__);                                                                               \
        } else if (style == NONBLOCKING) {                                                                             \
            MPI_##nonblocking(__VA_ARGS__, &request_);                                                                 \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                                                                    \
        } else {                                                                                                       \
            NAME_INIT(blocking)(__VA_ARGS__, MPI_INFO_NULL, &request_);                                                \
            for (int round_ = 0; round_ < 2; round_++) {                                                               \
                MPI_Start(&request_);                                                                                  \
                MPI_Wait(&request_, MPI_STATUS_IGNORE);                                                                \
            }                                                                                                          \
            MPI_Request_free(&request_);                                                                               \
        }                                                                                                              \
    } while (0)

#endif
