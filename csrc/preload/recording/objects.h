/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Objects: the files whose code runs in this process. Each is recorded when it is first used.
 */
#ifndef IBPROF_RECORDING_OBJECTS_H
#define IBPROF_RECORDING_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#define IBP_OBJECT_UNKNOWN UINT32_MAX

struct ibp_object_place {
    /* Index of the object's record; IBP_OBJECT_UNKNOWN where there is none. */
    uint32_t object;
    /* Address in the file. */
    uint64_t address;
    /* The loader's name of the object, valid while it is loaded; empty for the program itself. */
    const char *path;
};

/* Return the path of the program; empty where it is unknown. The lock must be held. */
const char *ibp_object_of_program(void);

/* Return whether an object, by the loader's name, calls C functions for Python programs: mpi4py, ctypes, or an
 * interpreter that contains ctypes. The lock must be held. */
bool ibp_object_calls_for_python(const char *path);

/* Find the program or library that contains an address. Return false when there is none. */
bool ibp_object_find(const void *address, struct ibp_object_place *place);

/* Record the object of a place, unless it is recorded. The lock must be held, also for scripts. */
void ibp_object_record(const void *address, struct ibp_object_place *place);

/* Return the index of a script's record, created if needed; IBP_OBJECT_UNKNOWN without space. */
uint32_t ibp_object_of_script(const char *path);

#endif
