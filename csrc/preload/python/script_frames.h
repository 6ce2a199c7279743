/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Which line of which .py file this thread executes while it is in C: in an MPI call of mpi4py or of any other
 * extension module. Frames are read where CPython 3.9 and newer keep them, without its lock and without running it.
 * They cannot change meanwhile, because they are this thread's own.
 */
#ifndef IBPROF_PYTHON_SCRIPT_FRAMES_H
#define IBPROF_PYTHON_SCRIPT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame of the program: not one of mpi4py, nor of the modules that import and run programs. Valid until the call of
 * MPI returns; only the key may be kept. */
struct ibp_script_frame {
    /* Equal for the same instruction of the same code object. Distinct for others, also when the memory of a code
     * object that was freed is used again. */
    uint64_t key;
    const char *frame, *code;
    int64_t position; /* of the instruction in the bytecode */
};

/* Find the program's innermost frame; where all frames are mpi4py's, the innermost of these. Return false when this
 * thread executes no Python, or an interpreter that is unknown. No system call, no text: for each call of MPI. */
bool ibp_script_find(struct ibp_script_frame *frame);

/* Go on to the program's next frame: that of the caller. Return false when there is none. */
bool ibp_script_next(struct ibp_script_frame *frame);

/* Write the path of the file as Python knows it, the function's qualified name (from Python 3.11 on; its name before)
 * and the line. Of a text that does not fit, its end is kept. Return false when there is no text; for each new key. */
bool ibp_script_describe(const struct ibp_script_frame *frame, char *file, size_t file_bytes, char *function,
                         size_t function_bytes, uint32_t *line);

/* Look for an interpreter again, if there was none before. Call it after libraries have been loaded. */
void ibp_script_seek_again(void);

#endif
