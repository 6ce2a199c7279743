/* SPDX-License-Identifier: Apache-2.0
 * An extension module that asks ibprof for the line of its caller. Like mpi4py, the module first releases the
 * interpreter's lock. The module declares Python's functions itself, since headers of most versions are not installed.
 * Built with -DFREE_THREADED for interpreters without the lock, whose objects have a longer head.
 */
#include "platform/system.h"
#include "python/interpreter.h"
#include "python/script_frames.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct object PyObject;
typedef PyObject *function(PyObject *, PyObject *);

PyObject *Py_BuildValue(const char *, ...);
PyObject *PyObject_CallObject(PyObject *, PyObject *);
PyObject *PyList_New(ssize_t);
int PyList_Append(PyObject *, PyObject *);
PyObject *PyModule_Create2(void *, int);
int PyArg_ParseTuple(PyObject *, const char *, ...);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
int PyGILState_Ensure(void);
void PyGILState_Release(int);
int Py_AtExit(void (*)(void));
void Py_DecRef(PyObject *);

#define TEXT_BYTES 16384
#define FRAMES_MAX 64

struct seen {
    uint64_t key;
    uint32_t line;
    char file[TEXT_BYTES], function[TEXT_BYTES];
};

static size_t text_bytes = TEXT_BYTES;

/* Find the frames as an MPI call does, and return their number. */
static size_t look(struct seen *seen, size_t count)
{
    struct ibp_script_frame frame;
    size_t i = 0;

    for (bool found = ibp_script_find(&frame); found && i < count; found = ibp_script_next(&frame), i++) {
        seen[i].key = frame.key;
        if (!ibp_script_describe(&frame, seen[i].file, text_bytes, seen[i].function, text_bytes, &seen[i].line))
            seen[i].line = 0;
    }
    return i;
}

static PyObject *as_list(const struct seen *seen, size_t count)
{
    PyObject *list = PyList_New(0), *item;

    for (size_t i = 0; i < count; i++) {
        item = Py_BuildValue("(yIyK)", seen[i].file, seen[i].line, seen[i].function, (unsigned long long)seen[i].key);
        PyList_Append(list, item);
        Py_DecRef(item);
    }
    return list;
}

/* here(truth) -> (frames as ibprof sees them, truth()) */
static PyObject *here(PyObject *module, PyObject *arguments)
{
    static _Thread_local struct seen seen[FRAMES_MAX];
    PyObject *truth, *result;
    void *thread;
    size_t count;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "O", &truth)) return NULL;
    thread = PyEval_SaveThread();
    count = look(seen, FRAMES_MAX);
    PyEval_RestoreThread(thread);
    result = PyObject_CallObject(truth, NULL);
    return result ? Py_BuildValue("(NN)", as_list(seen, count), result) : NULL;
}

/* here_again(times) -> key of the innermost frame, or 0 if keys differ */
static PyObject *here_again(PyObject *module, PyObject *arguments)
{
    struct ibp_script_frame frame;
    unsigned times;
    uint64_t key = 0;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "I", &times)) return NULL;
    for (unsigned i = 0; i < times; i++) {
        if (!ibp_script_find(&frame) || (i && frame.key != key)) return Py_BuildValue("I", 0);
        key = frame.key;
    }
    return Py_BuildValue("K", (unsigned long long)key);
}

static PyObject *set_text_bytes(PyObject *module, PyObject *arguments)
{
    unsigned bytes;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "I", &bytes)) return NULL;
    text_bytes = bytes;
    return Py_BuildValue("");
}

static PyObject *state(PyObject *module, PyObject *arguments)
{
    (void)module, (void)arguments;
    return Py_BuildValue("I", (unsigned)ibp_interpreter.state);
}

/* -- frames of a caller through ctypes ----------------------------------------------------------------------------- */

static struct seen noted;
static size_t noted_count;

IBP_EXPORT void probe_note(void);
void probe_note(void)
{
    noted_count = look(&noted, 1);
}

static PyObject *last_noted(PyObject *module, PyObject *arguments)
{
    (void)module, (void)arguments;
    return as_list(&noted, noted_count);
}

/* -- threads that Python has not started --------------------------------------------------------------------------- */

static struct seen foreign[2];
static size_t foreign_count[2];

static void *run_foreign(void *callable)
{
    int gil;

    foreign_count[0] = look(&foreign[0], 1);
    gil = PyGILState_Ensure();
    foreign_count[1] = look(&foreign[1], 1);
    Py_DecRef(PyObject_CallObject(callable, NULL));
    PyGILState_Release(gil);
    return NULL;
}

/* in_foreign_thread(callable) -> frames seen in a thread of C before it has a state, and before the call */
static PyObject *in_foreign_thread(PyObject *module, PyObject *arguments)
{
    PyObject *callable;
    pthread_t thread;
    void *own;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "O", &callable)) return NULL;
    own = PyEval_SaveThread();
    pthread_create(&thread, NULL, run_foreign, callable);
    pthread_join(thread, NULL);
    PyEval_RestoreThread(own);
    return Py_BuildValue("(nn)", foreign_count[0], foreign_count[1]);
}

/* -- the beginning and the end ------------------------------------------------------------------------------------- */

static struct seen at_import[FRAMES_MAX];
static size_t at_import_count;

static PyObject *seen_at_import(PyObject *module, PyObject *arguments)
{
    (void)module, (void)arguments;
    return as_list(at_import, at_import_count);
}

static void at_exit(void)
{
    struct ibp_script_frame frame;

    printf("at exit: %d\n", ibp_script_find(&frame));
    fflush(stdout);
}

static struct method {
    const char *name;
    function *call;
    int flags;
    const char *doc;
} methods[] = {
    {"here", here, 1, ""},
    {"here_again", here_again, 1, ""},
    {"set_text_bytes", set_text_bytes, 1, ""},
    {"state", state, 1, ""},
    {"last_noted", last_noted, 1, ""},
    {"in_foreign_thread", in_foreign_thread, 1, ""},
    {"seen_at_import", seen_at_import, 1, ""},
    {0},
};

static struct definition {
#ifdef FREE_THREADED
    void *head[4];
#else
    void *head[2];
#endif
    void *base[3];
    const char *name, *doc;
    ssize_t size;
    struct method *methods;
    void *rest[4];
} definition = {.name = "probe", .size = -1, .methods = methods};

IBP_EXPORT PyObject *PyInit_probe(void);
PyObject *PyInit_probe(void)
{
    PyObject *module = PyModule_Create2(&definition, 1013); /* PYTHON_API_VERSION */
    void *set_lock = dlsym(RTLD_DEFAULT, "PyUnstable_Module_SetGIL");
    int (*set)(PyObject *, void *);

    memcpy(&set, &set_lock, sizeof set);
#ifdef FREE_THREADED
    if (module && set) set(module, (void *)1); /* needs no lock */
#endif
    at_import_count = look(at_import, FRAMES_MAX);
    Py_AtExit(at_exit);
    return module;
}
