/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A list of collective calls. The command line selects the style of each call.
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
static const char *only = "all"; /* the requested call, by the name of its blocking form */

static void set_style(const char *name)
{
    style = !strcmp(name, "blocking") ? BLOCKING : !strcmp(name, "nonblocking") ? NONBLOCKING : PERSISTENT;
}

static int asked_for(const char *name)
{
    return !strcmp(only, "all") || !strcmp(only, name);
}

/* A persistent call is started twice, because its request keeps state between rounds. */
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
