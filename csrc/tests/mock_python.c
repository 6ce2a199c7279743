/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "mock_python.h"

#include <stddef.h>

#define TYPE_WORDS 64

uint64_t _PyRuntime[128], PyCode_Type[TYPE_WORDS], PyUnicode_Type[TYPE_WORDS], PyBytes_Type[TYPE_WORDS];
uint64_t PyFrame_Type[TYPE_WORDS], PyType_Type[TYPE_WORDS];
unsigned long Py_Version;

extern struct mock_python mock_python;
struct mock_python mock_python = {_PyRuntime,   PyCode_Type, PyUnicode_Type, PyBytes_Type,
                                  PyFrame_Type, PyType_Type, &Py_Version,    NULL};

void *PyGILState_GetThisThreadState(void);
void *PyGILState_GetThisThreadState(void)
{
    return mock_python.thread;
}
