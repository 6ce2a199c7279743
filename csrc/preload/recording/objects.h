/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Objects: the program, libraries and scripts whose code runs in this process. An object is recorded when it first
 * occurs in a call site.
 */
#ifndef IBPROF_RECORDING_OBJECTS_H
#define IBPROF_RECORDING_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#define IBP_OBJECT_UNKNOWN UINT32_MAX

struct ibp_object_place {
    /* Index of the object's record; IBP_OBJECT_UNKNOWN if the object is not recorded. */
    uint32_t object;
    /* Address in the file. */
    uint64_t address;
    /* Path of the object, as the dynamic linker knows it; empty for the program. The path is valid while the object is
     * loaded. */
    const char *path;
};

/* Return the path of the program; empty if unknown. The lock must be held. */
const char *ibp_object_of_program(void);

/* Return whether an object calls C functions for Python programs: mpi4py, ctypes, or an interpreter that contains
 * ctypes. `path` is the dynamic linker's path of the object. The lock must be held. */
bool ibp_object_calls_for_python(const char *path);

/* Find the program or library that contains an address. Return false if no object contains the address. */
bool ibp_object_find(const void *address, struct ibp_object_place *place);

/* Record the object that contains an address, unless the object is recorded already. The lock must be held, also for
 * ibp_object_of_script. */
void ibp_object_record(const void *address, struct ibp_object_place *place);

/* Return the index of a script's record, created if needed; IBP_OBJECT_UNKNOWN if the recording is full. */
uint32_t ibp_object_of_script(const char *path);

#endif
