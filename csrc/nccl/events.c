/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "nccl/events.h"
#include "nccl/old_dlopen.h"
#include "nccl/profiler_abi.h"
#include "platform/clock.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define NOTE_TICKS (UINT64_C(1) << 28) /* Minimum ticks between two recorded readings of the clock. */
#define COMMUNICATORS_MAX 1024
#define TASKS_MAX 4096
#define TASK_PLACES (2 * TASKS_MAX)
#define FLOWS_MAX (1 << 16)
#define FLOW_PLACES (2 * FLOWS_MAX)
#define OPERATIONS_MAX (1 << 13)
#define STEPS 16 /* NCCL has up to 8 steps in flight */
#define SAMPLES_MAX 1024
#define SAMPLE_LEVELS 48
#define CHANNELS 64 /* NCCL's MAXCHANNELS */

/* The resource that a proxy operation waits for. */
enum wait { FOR_NOTHING, FOR_GPU, FOR_PEER, FOR_NETWORK, WAITS };

struct sample {
    struct ibp_nccl_sample *record;
    /* A number that changes when the record is reused; 0 if the record is free. */
    uint64_t use;
    /* The highest sampling level at which this sample is kept. */
    unsigned keeps;
};

struct ibp_nccl_context {
    struct ibp_nccl_communicator *record;
    uint32_t index;
    unsigned interface;
    /* `has_gap`: true if ibprof missed earlier operations of the communicator, so that operations have other numbers on
     * this rank than on other ranks. */
    bool is_described, has_gap;
    /* Number of operations so far: [receives in rings, sends in rings, other sends][channel]. */
    uint32_t numbers[3][CHANNELS];
    /* For each channel, the newest sample of an operation in a ring. The ring's operation in the other direction uses
     * the same sample. */
    struct {
        struct sample *sample;
        uint64_t use;
        uint32_t number;
    } newest[CHANNELS];
};

/* `operations`: number of operations in progress. `since`: start of the present period with at least one operation in
 * progress. */
struct activity {
    uint32_t operations;
    uint64_t since;
};

struct task {
    uint32_t handle;
    uint32_t index;
    uint64_t key;
    struct ibp_nccl_context *context;
    struct ibp_nccl_task *record;
    struct activity activity;
    /* True if the task uses rings, and all ranks of these rings send and receive. */
    bool is_ring;
};

struct flow {
    uint64_t key;
    struct ibp_nccl_flow *record;
};

struct step {
    uint32_t handle;
    uint8_t state;
    struct operation *operation;
    struct ibp_nccl_flow *flow;
};

struct operation {
    uint32_t handle;
    bool is_taken, is_active, is_send, has_arrived;
    struct task *task;
    struct ibp_nccl_flow *flow;
    /* In versions 1 to 3 of the interface: number of bytes of the operation so far. */
    uint64_t bytes;
    uint64_t begin, since;
    /* `waiting`: number of steps that wait for the GPU, the peer or the network (enum wait). `ticks`: time that the
     * operation waited for each resource; while its steps wait for several resources, the time counts for the resource
     * that wait_of_operation returns. */
    uint8_t waiting[WAITS];
    uint64_t ticks[WAITS];
    struct sample *sample;
    uint64_t use;
    struct step step[STEPS];
};

/* All memory, mapped at once. Unused pages occupy no physical memory. */
static struct {
    struct ibp_nccl_context contexts[COMMUNICATORS_MAX];
    struct task tasks[TASKS_MAX];
    struct task *task_places[TASK_PLACES];
    struct flow flow_places[FLOW_PLACES];
    struct operation operations[OPERATIONS_MAX];
    struct sample samples[SAMPLES_MAX];
} *memory;

static struct {
    const struct ibp_nccl_recorder *recorder;
    bool is_open, has_cycles;
    char lock;
    uint32_t contexts, tasks, flows, next_operation, samples;
    unsigned sample_level;
    uint64_t uses;
    /* The context for operations of other processes, and for operations without a known task. */
    struct ibp_nccl_context *others;
    struct activity activity;
} state;

/* -- opening ------------------------------------------------------------------------------------------------------- */

static void lock(void)
{
    while (__atomic_test_and_set(&state.lock, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void)
{
    __atomic_clear(&state.lock, __ATOMIC_RELEASE);
}

static uint64_t now(void)
{
    return IBP_LIKELY(state.has_cycles) ? ibp_clock_cycles() : state.recorder->clock_ns();
}

/* Write the version of the library that contains an address: NCCL or RCCL. Both export ncclGetVersion. */
static void describe_library(const void *caller, char *text, size_t bytes)
{
    Dl_info info = {0};
    void *library = NULL, *function;
    int (*get_version)(int *);
    int version = 0;

    if (dladdr && dladdr(caller, &info) && info.dli_fname) library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    function = library && dlsym ? dlsym(library, "ncclGetVersion") : NULL;
    memcpy(&get_version, &function, sizeof get_version);
    if (!get_version || get_version(&version)) version = 0;
    if (!version)
        snprintf(text, bytes, "NCCL");
    else
        snprintf(text, bytes, "%s %d.%d.%d", strstr(info.dli_fname, "rccl") ? "RCCL" : "NCCL", version / 10000,
                 version / 100 % 100, version % 100);
}

/* Open libibprof.so by its path, because other products have a library with the same name. If libibprof.so is
 * preloaded, dlopen returns a handle of the loaded library. */
static const struct ibp_nccl_recorder *find_recorder(char *why, size_t bytes)
{
    char path[PATH_MAX];
    const char *slash;
    Dl_info own;
    void *library, *function = NULL;
    ibp_nccl_recorder_function *get;

    if (!dlsym || !dladdr || !dladdr(&state, &own) || !own.dli_fname) return NULL;
    slash = strrchr(own.dli_fname, '/');
    snprintf(path, sizeof path, "%.*slibibprof.so", slash ? (int)(slash + 1 - own.dli_fname) : 0, own.dli_fname);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) function = dlsym(library, IBP_NCCL_RECORDER);
    snprintf(why, bytes, "%s is missing or has another version", path);
    if (!function) return NULL;
    memcpy(&get, &function, sizeof get);
    return get()->version == IBP_NCCL_RECORDER_VERSION ? get() : NULL;
}

static bool open_once(const void *caller)
{
    char library[64], why[PATH_MAX + 64] = "the dynamic linker does not find the plug-in's path";
    void *mapped;

    state.recorder = find_recorder(why, sizeof why);
    if (!state.recorder) {
        fprintf(stderr, "ibprof: NCCL is not recorded: %s\n", why);
        return false;
    }
    mapped = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        state.recorder->say("NCCL is not recorded", "there is no memory");
        return false;
    }
    describe_library(caller, library, sizeof library);
    state.has_cycles = state.recorder->has_cycles();
    if (!state.recorder->open(library)) return false;
    (void)madvise(mapped, sizeof *memory, MADV_WIPEONFORK); /* no handle is valid in a child of fork */
    memory = mapped;
    return true;
}

bool ibp_nccl_open(const void *caller)
{
    static bool is_tried;

    if (state.is_open && !state.recorder->is_recording())
        return false; /* a child of fork must not wait for the lock, which may never be released */
    lock();
    if (!is_tried) state.is_open = open_once(caller);
    is_tried = true;
    unlock();
    return state.is_open && state.recorder->is_recording();
}

void ibp_nccl_say(const char *about, const char *text)
{
    if (state.recorder) state.recorder->say(about, text);
}

/* -- communicators ------------------------------------------------------------------------------------------------- */

static void copy_text(char *into, size_t bytes, const char *text)
{
    if (text) snprintf(into, bytes, "%s", text);
}

static void note_clock(struct ibp_nccl_communicator *record, int moment)
{
    record->clock_ticks[moment] = now();
    record->clock_ns[moment] = state.recorder->clock_ns();
}

/* Record a reading of the clock if the last reading is old, so that even a killed job has recorded a recent reading. */
static void note_clock_now_and_then(struct ibp_nccl_communicator *record)
{
    if (now() - __atomic_load_n(&record->clock_ticks[1], __ATOMIC_RELAXED) < NOTE_TICKS) return;
    lock();
    note_clock(record, 1);
    unlock();
}

/* Set the rank of the process to its rank in the first communicator with several ranks. If the process has two ranks in
 * that communicator, the rank of the process is unknown. */
static void note_rank(const struct ibp_nccl_communicator_facts *facts)
{
    static struct {
        bool is_set, is_withdrawn;
        uint64_t hash;
        int rank;
    } world;

    if (facts->ranks < 2 || facts->rank < 0 || world.is_withdrawn) return;
    if (!world.is_set) {
        world.is_set = true;
        world.hash = facts->hash;
        world.rank = facts->rank;
        state.recorder->set_rank((uint32_t)facts->rank, (uint32_t)facts->ranks);
    } else if (world.hash == facts->hash && world.rank != facts->rank) {
        world.is_withdrawn = true;
        state.recorder->set_rank(0, 0);
    }
}

static void fill(struct ibp_nccl_context *context, const struct ibp_nccl_communicator_facts *facts)
{
    struct ibp_nccl_communicator *record = context->record;

    record->hash = facts->hash;
    copy_text(record->name, sizeof record->name, facts->name);
    record->rank = (uint32_t)facts->rank;
    record->ranks = facts->ranks > 0 ? (uint32_t)facts->ranks : 0;
    record->nodes = facts->nodes > 0 ? (uint32_t)facts->nodes : 0;
    context->is_described = true;
}

/* Begin a communicator. The lock must be held. */
static struct ibp_nccl_context *begin(unsigned interface, const struct ibp_nccl_communicator_facts *facts)
{
    struct ibp_nccl_context *context;

    if (state.contexts == COMMUNICATORS_MAX) return NULL;
    context = &memory->contexts[state.contexts];
    context->record = state.recorder->reserve(IBP_SEGMENT_NCCL_COMMUNICATORS);
    if (!context->record) return NULL;
    context->interface = context->record->interface = interface;
    context->record->start_ns = state.recorder->clock_ns();
    note_clock(context->record, 0);
    if (facts) fill(context, facts);
    context->index = state.recorder->publish(IBP_SEGMENT_NCCL_COMMUNICATORS);
    state.contexts++;
    return context;
}

struct ibp_nccl_context *ibp_nccl_begin(unsigned interface, const struct ibp_nccl_communicator_facts *facts)
{
    static const struct ibp_nccl_communicator_facts unknown = {.rank = -1};
    struct ibp_nccl_context *context;

    lock();
    if (!state.others) state.others = begin(interface, &unknown);
    context = state.others ? begin(interface, facts) : NULL;
    if (context && facts) note_rank(facts);
    if (!context) context = state.others; /* too many communicators: all further communicators share this context */
    unlock();
    return context;
}

void ibp_nccl_describe(struct ibp_nccl_context *context, const struct ibp_nccl_communicator_facts *facts)
{
    if (!context || !state.recorder->is_recording()) return; /* in a child of fork, all contexts are zeros */
    if (__atomic_load_n(&context->is_described, __ATOMIC_RELAXED)) return;
    lock();
    if (!context->is_described) fill(context, facts);
    unlock();
}

void ibp_nccl_end(struct ibp_nccl_context *context)
{
    if (!context || context == state.others || !state.recorder->is_recording()) return;
    note_clock(context->record, 1);
    context->record->stop_ns = context->record->clock_ns[1];
    /* End the operations that have not stopped, as in an aborted communicator. */
    for (unsigned i = 0; i < OPERATIONS_MAX; i++) {
        struct operation *operation = &memory->operations[i];

        if (__atomic_load_n(&operation->is_taken, __ATOMIC_ACQUIRE) && operation->task->context == context)
            ibp_nccl_stop_event(operation);
    }
    state.recorder->copy_if_due();
}

/* -- tasks --------------------------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text, size_t most)
{
    for (size_t i = 0; text && text[i] && i < most; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static bool is_same(const char *kept, size_t bytes, const char *text)
{
    return !strncmp(kept, text ? text : "", bytes - 1);
}

/* Return whether a task uses rings in which all ranks send and receive. All ranks then count the same operations. In
 * rings of other functions, such as Broadcast, the root only sends or only receives. */
static bool is_whole_ring(const struct ibp_nccl_task *record)
{
    return !strcasecmp(record->algorithm, "ring") &&
           (!strcmp(record->function, "AllReduce") || !strcmp(record->function, "AllGather") ||
            !strcmp(record->function, "ReduceScatter"));
}

static struct task *make_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts, uint64_t key,
                              uint32_t region)
{
    struct task *task;

    if (state.tasks == TASKS_MAX) return NULL;
    task = &memory->tasks[state.tasks];
    task->record = state.recorder->reserve(IBP_SEGMENT_NCCL_TASKS);
    if (!task->record) return NULL;
    task->handle = IBP_NCCL_HANDLE_TASK;
    task->key = key;
    task->context = context;
    task->record->communicator = context->index;
    task->record->region = region;
    copy_text(task->record->function, sizeof task->record->function, facts->function);
    copy_text(task->record->algorithm, sizeof task->record->algorithm, facts->algorithm);
    copy_text(task->record->protocol, sizeof task->record->protocol, facts->protocol);
    task->is_ring = is_whole_ring(task->record);
    task->index = state.recorder->publish(IBP_SEGMENT_NCCL_TASKS);
    state.tasks++;
    return task;
}

static struct task *find_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts, bool may_make)
{
    const uint32_t region = state.recorder->region();
    uint64_t key = (uint64_t)context->index << 32 ^ region ^ UINT64_C(0xcbf29ce484222325);

    key = hash_text(key * UINT64_C(0x100000001b3), facts->function, sizeof((struct ibp_nccl_task *)0)->function - 1);
    key = hash_text(key, facts->algorithm, sizeof((struct ibp_nccl_task *)0)->algorithm - 1);
    key = hash_text(key, facts->protocol, sizeof((struct ibp_nccl_task *)0)->protocol - 1);
    for (uint64_t place = key >> 20;; place++) {
        struct task **entry = &memory->task_places[place % TASK_PLACES];
        struct task *task = __atomic_load_n(entry, __ATOMIC_ACQUIRE);

        if (!task) {
            if (may_make && (task = make_task(context, facts, key, region)))
                __atomic_store_n(entry, task, __ATOMIC_RELEASE);
            return task;
        }
        if (task->key == key && task->context == context && task->record->region == region &&
            is_same(task->record->function, sizeof task->record->function, facts->function) &&
            is_same(task->record->algorithm, sizeof task->record->algorithm, facts->algorithm) &&
            is_same(task->record->protocol, sizeof task->record->protocol, facts->protocol))
            return task;
    }
}

/* Return the task with these properties, created if needed; NULL if there is no space. */
static struct task *enter_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts)
{
    struct task *task = find_task(context, facts, false);

    if (task) return task;
    lock();
    task = find_task(context, facts, true);
    unlock();
    return task;
}

void *ibp_nccl_start_task(struct ibp_nccl_context *context, const struct ibp_nccl_task_facts *facts)
{
    struct task *task;

    if (!context || !state.recorder->is_recording()) return NULL;
    note_clock_now_and_then(context->record);
    state.recorder->copy_if_due();
    task = enter_task(context, facts);
    if (!task) return NULL;
    __atomic_fetch_add(&task->record->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&task->record->bytes, facts->bytes, __ATOMIC_RELAXED);
    if (facts->channels > __atomic_load_n(&task->record->channels, __ATOMIC_RELAXED))
        __atomic_store_n(&task->record->channels, facts->channels, __ATOMIC_RELAXED);
    return task;
}

static void enter(struct activity *activity, uint64_t begin)
{
    if (!__atomic_fetch_add(&activity->operations, 1, __ATOMIC_ACQ_REL))
        __atomic_store_n(&activity->since, begin, __ATOMIC_RELAXED);
}

/* If several threads enter or leave at nearly the same time, `ticks` may lack the short time between the calls. */
static void leave(struct activity *activity, uint64_t end, uint64_t *ticks)
{
    const uint64_t since = __atomic_load_n(&activity->since, __ATOMIC_RELAXED);

    if (__atomic_fetch_sub(&activity->operations, 1, __ATOMIC_ACQ_REL) == 1 && end > since)
        __atomic_fetch_add(ticks, end - since, __ATOMIC_RELAXED);
}

static void begin_activity(struct operation *operation)
{
    operation->is_active = true;
    operation->begin = operation->since = now();
    enter(&operation->task->activity, operation->begin);
    enter(&state.activity, operation->begin);
}

static void end_activity(struct operation *operation)
{
    const uint64_t end = now();

    operation->is_active = false;
    leave(&operation->task->activity, end, &operation->task->record->busy_ticks);
    leave(&state.activity, end, &state.others->record->busy_ticks);
}

/* -- samples ------------------------------------------------------------------------------------------------------- */

/* Return the highest sampling level at which an operation is kept. The level is equal on all ranks of a ring. */
static unsigned find_keeps(const struct ibp_nccl_context *context, unsigned channel, uint32_t number)
{
    uint64_t hash = (context->record->hash ^ (uint64_t)channel << 32 ^ number) * UINT64_C(0x9e3779b97f4a7c15);

    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)__builtin_ctzll((hash ^ hash >> 31) | UINT64_C(1) << SAMPLE_LEVELS);
}

static void free_sample(struct sample *sample)
{
    sample->use = 0;
    __atomic_store_n(&sample->record->number, 0, __ATOMIC_RELEASE);
}

/* Return a free sample. If all samples are used, raise the level (one of 2^level operations is sampled) until a sample
 * is free. Return NULL if the level is already the maximum, or if the recording is full. The lock must be held. */
static struct sample *find_space(void)
{
    struct sample *found = NULL;

    if (state.samples < SAMPLES_MAX) {
        found = &memory->samples[state.samples];
        found->record = state.recorder->reserve(IBP_SEGMENT_NCCL_SAMPLES);
        if (!found->record) return NULL;
        (void)state.recorder->publish(IBP_SEGMENT_NCCL_SAMPLES);
        state.samples++;
        return found;
    }
    for (;;) {
        for (unsigned i = 0; i < SAMPLES_MAX && !found; i++)
            if (!memory->samples[i].use) found = &memory->samples[i];
        if (found || state.sample_level == SAMPLE_LEVELS) return found;
        state.sample_level++;
        for (unsigned i = 0; i < SAMPLES_MAX; i++) {
            memory->samples[i].record->level = (uint8_t)state.sample_level;
            if (memory->samples[i].keeps < state.sample_level) free_sample(&memory->samples[i]);
        }
    }
}

static struct sample *make_sample(const struct task *task, unsigned channel, uint32_t number, unsigned keeps)
{
    struct sample *sample = find_space();

    if (!sample || keeps < state.sample_level) return NULL;
    sample->keeps = keeps;
    sample->use = ++state.uses;
    sample->record->task = task->index;
    sample->record->channel = (uint8_t)channel;
    sample->record->level = (uint8_t)state.sample_level;
    sample->record->arrival_ns = sample->record->stop_ns = 0;
    __atomic_store_n(&sample->record->number, number, __ATOMIC_RELEASE);
    return sample;
}

/* Sample an operation if the hash chooses it. In a ring, the send and the receive of an operation share a sample. */
static void sample_operation(struct operation *operation, unsigned channel)
{
    struct task *const task = operation->task;
    struct ibp_nccl_context *const context = task->context;
    const unsigned kind = task->is_ring ? operation->is_send : 2;
    uint32_t number;
    unsigned keeps;

    operation->sample = NULL;
    if (context == state.others || channel >= CHANNELS || (!task->is_ring && !operation->is_send)) return;
    number = __atomic_add_fetch(&context->numbers[kind][channel], 1, __ATOMIC_RELAXED);
    keeps = find_keeps(context, channel, number);
    if (context->has_gap || keeps < __atomic_load_n(&state.sample_level, __ATOMIC_RELAXED)) return;
    lock();
    if (task->is_ring && context->newest[channel].number == number) {
        operation->sample = context->newest[channel].sample;
        operation->use = context->newest[channel].use;
    } else {
        operation->sample = make_sample(task, channel, number, keeps);
        operation->use = operation->sample ? operation->sample->use : 0;
        if (task->is_ring) {
            context->newest[channel].number = number;
            context->newest[channel].sample = operation->sample;
            context->newest[channel].use = operation->use;
        }
    }
    unlock();
}

/* Store the present time in an operation's sample: as the time of the GPU's first data, or as the end. */
static void note_sample(const struct operation *operation, bool is_end)
{
    struct sample *const sample = operation->sample;

    if (IBP_LIKELY(!sample)) return;
    lock();
    if (sample->use == operation->use) {
        if (is_end)
            sample->record->stop_ns = state.recorder->clock_ns();
        else if (!sample->record->arrival_ns)
            sample->record->arrival_ns = state.recorder->clock_ns();
    }
    unlock();
}

/* -- operations ---------------------------------------------------------------------------------------------------- */

static struct ibp_nccl_flow *find_flow(uint64_t key, bool may_make)
{
    for (uint64_t place = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32;; place++) {
        struct flow *entry = &memory->flow_places[place % FLOW_PLACES];
        const uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);

        if (found == key) return entry->record;
        if (found) continue;
        if (!may_make || state.flows == FLOWS_MAX) return NULL;
        entry->record = state.recorder->reserve(IBP_SEGMENT_NCCL_FLOWS);
        if (!entry->record) return NULL;
        entry->record->task = (uint32_t)(key >> 40) - 1;
        entry->record->channel = (uint8_t)(key >> 1);
        entry->record->is_send = key & 1;
        entry->record->peer = key >> 9 & 0x7fffffff;
        if (entry->record->peer == 0x7fffffff) entry->record->peer = IBP_PEER_UNKNOWN;
        (void)state.recorder->publish(IBP_SEGMENT_NCCL_FLOWS);
        state.flows++;
        __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
        return entry->record;
    }
}

/* Return the flow of an operation, created if needed; NULL if there is no space. The key of a flow: the task's number
 * (from 1; bits 40 and higher), the peer (31 bits), the channel and the direction. */
static struct ibp_nccl_flow *enter_flow(const struct task *task, const struct ibp_nccl_operation_facts *facts)
{
    const uint64_t peer = facts->peer < 0 ? 0x7fffffff : (uint64_t)facts->peer;
    const uint64_t key = (uint64_t)(task->index + 1) << 40 | peer << 9 | (uint64_t)facts->channel << 1 | facts->is_send;
    struct ibp_nccl_flow *flow = find_flow(key, false);

    if (flow) return flow;
    lock();
    flow = find_flow(key, true);
    unlock();
    return flow;
}

static struct operation *take_operation(void)
{
    for (unsigned i = 0; i < OPERATIONS_MAX; i++) {
        const uint32_t place = __atomic_fetch_add(&state.next_operation, 1, __ATOMIC_RELAXED) % OPERATIONS_MAX;
        struct operation *operation = &memory->operations[place];

        if (!__atomic_test_and_set(&operation->is_taken, __ATOMIC_ACQUIRE)) return operation;
    }
    return NULL;
}

static void *lose_operation(struct ibp_nccl_context *context)
{
    __atomic_store_n(&context->has_gap, true, __ATOMIC_RELAXED);
    __atomic_fetch_add(&context->record->operations_lost, 1, __ATOMIC_RELAXED);
    return NULL;
}

void *ibp_nccl_start_operation(struct ibp_nccl_context *context, void *handle,
                               const struct ibp_nccl_operation_facts *facts)
{
    static const struct ibp_nccl_task_facts unknown = {0};
    struct task *task = facts->is_own_process ? handle : NULL;
    struct ibp_nccl_flow *flow;
    struct operation *operation;

    if (!state.is_open) return NULL;
    if (!state.recorder->is_recording()) {
        if (context && facts->is_own_process) __atomic_store_n(&context->has_gap, true, __ATOMIC_RELAXED);
        return NULL;
    }
    if (!facts->is_own_process || !context) context = state.others;
    if (!context) return NULL;
    if (!task || task->handle != IBP_NCCL_HANDLE_TASK) task = enter_task(context, &unknown);
    flow = task ? enter_flow(task, facts) : NULL;
    operation = flow ? take_operation() : NULL;
    if (!operation) return lose_operation(context);
    operation->handle = IBP_NCCL_HANDLE_OPERATION;
    operation->is_send = facts->is_send;
    operation->has_arrived = operation->is_active = false;
    operation->task = task;
    operation->flow = flow;
    operation->bytes = 0;
    memset(operation->waiting, 0, sizeof operation->waiting);
    memset(operation->ticks, 0, sizeof operation->ticks);
    memset(operation->step, 0, sizeof operation->step);
    sample_operation(operation, facts->channel);
    __atomic_fetch_add(&flow->operations, 1, __ATOMIC_RELAXED);
    if (context->interface < 4) begin_activity(operation);
    return operation;
}

static void stop_operation(struct operation *operation)
{
    struct ibp_nccl_flow *flow = operation->flow;

    if (!__atomic_load_n(&operation->is_taken, __ATOMIC_RELAXED)) return;
    if (operation->is_active) {
        end_activity(operation);
        __atomic_fetch_add(&flow->gpu_ticks, operation->ticks[FOR_GPU], __ATOMIC_RELAXED);
        __atomic_fetch_add(&flow->peer_ticks, operation->ticks[FOR_PEER], __ATOMIC_RELAXED);
        __atomic_fetch_add(&flow->network_ticks, operation->ticks[FOR_NETWORK], __ATOMIC_RELAXED);
        note_sample(operation, true);
    }
    __atomic_clear(&operation->is_taken, __ATOMIC_RELEASE);
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

static enum wait wait_of(int state_of_step)
{
    switch (state_of_step) {
    case IBP_NCCL_SEND_GPU_WAIT:
    case IBP_NCCL_RECV_FLUSH_WAIT:
    case IBP_NCCL_RECV_GPU_WAIT:
        return FOR_GPU;
    case IBP_NCCL_SEND_PEER_WAIT:
        return FOR_PEER;
    case IBP_NCCL_SEND_WAIT:
    case IBP_NCCL_RECV_WAIT:
        return FOR_NETWORK;
    default:
        return FOR_NOTHING;
    }
}

/* Return the resource that an operation waits for. If the operation's steps wait for different resources, return the
 * resource of the most advanced step. Steps of sends wait for the GPU, then the peer, then the network. Steps of
 * receives wait for the network, then for the GPU. */
static enum wait wait_of_operation(const struct operation *operation)
{
    if (!operation->is_send && operation->waiting[FOR_GPU]) return FOR_GPU;
    if (operation->waiting[FOR_NETWORK]) return FOR_NETWORK;
    if (operation->waiting[FOR_PEER]) return FOR_PEER;
    return operation->waiting[FOR_GPU] ? FOR_GPU : FOR_NOTHING;
}

/* Move a step from one waiting state to another. */
static void change_wait(struct operation *operation, enum wait from, enum wait into)
{
    uint64_t time;

    if (from == into || !__atomic_load_n(&operation->is_taken, __ATOMIC_RELAXED)) return;
    time = now();
    if (!operation->is_active) begin_activity(operation);
    if (time > operation->since) operation->ticks[wait_of_operation(operation)] += time - operation->since;
    operation->since = time;
    if (from && operation->waiting[from]) operation->waiting[from]--;
    if (into) operation->waiting[into]++;
    if (operation->is_send && from == FOR_GPU && !operation->has_arrived) {
        operation->has_arrived = true;
        note_sample(operation, false);
        if (time > operation->begin)
            __atomic_fetch_add(&operation->flow->arrival_ticks, time - operation->begin, __ATOMIC_RELAXED);
    }
}

static void add_bytes(struct ibp_nccl_flow *flow, uint64_t bytes)
{
    __atomic_fetch_add(&flow->bytes, bytes, __ATOMIC_RELAXED);
}

void *ibp_nccl_start_step(void *handle, int number)
{
    struct operation *operation = handle;
    struct step *step;

    if (!operation || operation->handle != IBP_NCCL_HANDLE_OPERATION) return NULL;
    step = &operation->step[(unsigned)number % STEPS];
    if (step->operation && step->state)
        change_wait(operation, wait_of(step->state), FOR_NOTHING); /* the step never stopped */
    step->handle = IBP_NCCL_HANDLE_STEP;
    step->state = 0;
    step->operation = operation;
    step->flow = operation->flow;
    return step;
}

static void record_step(struct step *step, int next, uint64_t bytes)
{
    const int before = step->state;

    if (next == before || next > UINT8_MAX) return; /* each time NCCL polls, it reports a state, even the same */
    step->state = (uint8_t)next;
    if (next == IBP_NCCL_SEND_WAIT || next == IBP_NCCL_RECV_FLUSH_WAIT) add_bytes(step->flow, bytes);
    if (step->operation && step->operation->flow == step->flow)
        change_wait(step->operation, wait_of(before), wait_of(next));
}

static void stop_step(struct step *step)
{
    if (!step->operation) return;
    __atomic_fetch_add(&step->flow->steps, 1, __ATOMIC_RELAXED);
    if (step->operation->flow == step->flow) change_wait(step->operation, wait_of(step->state), FOR_NOTHING);
    step->state = 0;
    step->operation = NULL;
}

void ibp_nccl_note_device(void *handle, int device)
{
    const struct step *step = handle;
    uint64_t bit;

    if (!step || step->handle != IBP_NCCL_HANDLE_STEP || device < 0) return;
    bit = UINT64_C(1) << (device < 63 ? device : 63);
    if (!(__atomic_load_n(&step->flow->devices, __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(&step->flow->devices, bit, __ATOMIC_RELAXED);
}

/* Record the bytes of an operation. In versions 1 to 3 of the interface, `bytes` is the operation's sum so far. */
static void record_operation(struct operation *operation, int next, uint64_t bytes)
{
    if (next == IBP_NCCL_IN_PROGRESS) {
        if (!operation->is_active) begin_activity(operation);
    } else if (next <= IBP_NCCL_LAST_OPERATION_STATE && bytes > operation->bytes) {
        add_bytes(operation->flow, bytes - operation->bytes);
        operation->bytes = bytes;
    }
}

void ibp_nccl_record(void *handle, int next, uint64_t bytes)
{
    if (!handle || next < 0) return;
    if (*(uint32_t *)handle == IBP_NCCL_HANDLE_STEP)
        record_step(handle, next, bytes);
    else if (*(uint32_t *)handle == IBP_NCCL_HANDLE_OPERATION)
        record_operation(handle, next, bytes);
}

void ibp_nccl_stop_event(void *handle)
{
    if (!handle) return;
    if (*(uint32_t *)handle == IBP_NCCL_HANDLE_STEP)
        stop_step(handle);
    else if (*(uint32_t *)handle == IBP_NCCL_HANDLE_OPERATION)
        stop_operation(handle);
}
