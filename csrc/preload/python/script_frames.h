/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The .py file and line from which this thread called C code, such as an MPI call of mpi4py. The frames of CPython 3.9
 * and newer are read in memory, without the interpreter's lock and without running the interpreter. Frames cannot
 * change while ibprof reads them, because the frames belong to this thread.
 */
#ifndef IBPROF_PYTHON_SCRIPT_FRAMES_H
#define IBPROF_PYTHON_SCRIPT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame of the program, not of mpi4py or of a module that imports or runs programs. `frame`, `code` and `position`
 * are valid until the MPI call returns; `key` may be used later. */
struct ibp_script_frame {
    /* Identifies an instruction of a code object. If a new code object reuses the memory of a freed code object, the
     * keys differ. */
    uint64_t key;
    const char *frame, *code;
    int64_t position; /* position of the instruction in the bytecode */
};

/* Find the program's innermost frame. If all frames belong to mpi4py, find the innermost of all frames. Return false if
 * this thread executes no Python code, or if the interpreter is unknown. The function makes no system call and reads no
 * text, because every MPI call calls it. */
bool ibp_script_find(struct ibp_script_frame *frame);

/* Go to the next outer frame of the program. Return false if no outer frame belongs to the program. */
bool ibp_script_next(struct ibp_script_frame *frame);

/* Write the frame's file, function and line. The function's name is qualified since Python 3.11. If a text is too long,
 * only its end is written. Return false if a text is missing. */
bool ibp_script_describe(const struct ibp_script_frame *frame, char *file, size_t file_bytes, char *function,
                         size_t function_bytes, uint32_t *line);

/* If no interpreter was found, search again at the next ibp_script_find. Call this function after libraries have been
 * loaded. */
void ibp_script_seek_again(void);

#endif
