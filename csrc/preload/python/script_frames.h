/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The line and .py file that this thread executes while it is in C: in an MPI call of mpi4py or of another extension
 * module. The frames of CPython 3.9 and newer are read in memory, without the interpreter's lock and without running
 * the interpreter. The frames cannot change in the meantime, because they belong to this thread.
 */
#ifndef IBPROF_PYTHON_SCRIPT_FRAMES_H
#define IBPROF_PYTHON_SCRIPT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame of the program, and not of mpi4py or of modules that import and run programs. Valid until the MPI call
 * returns; only the key may be kept. */
struct ibp_script_frame {
    /* Equal for the same instruction of the same code object. Other instructions have other keys, even if a new code
     * object reuses the memory of a freed one. */
    uint64_t key;
    const char *frame, *code;
    int64_t position; /* of the instruction in the bytecode */
};

/* Find the program's innermost frame; if all frames belong to mpi4py, find the innermost of these. Return false when
 * this thread executes no Python, or an unknown interpreter. The function makes no system call and reads no text,
 * because every MPI call runs it. */
bool ibp_script_find(struct ibp_script_frame *frame);

/* Go on to the program's next frame: the caller's frame. Return false when there is none. */
bool ibp_script_next(struct ibp_script_frame *frame);

/* Write Python's path of the file, the function's qualified name (before Python 3.11, its name) and the line. If a text
 * does not fit, its end is kept. Return false without a text. Called once for each new key. */
bool ibp_script_describe(const struct ibp_script_frame *frame, char *file, size_t file_bytes, char *function,
                         size_t function_bytes, uint32_t *line);

/* Look for an interpreter again, if none was found before. Call it after libraries have been loaded. */
void ibp_script_seek_again(void);

#endif
