/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "nccl/chain.h"
#include "nccl/old_dlopen.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#define PAIRS (1 << 16)
/* Types of events that may become parents of later events even after they have stopped. Therefore the pairs (chain.h)
 * of such events are reused only when all pairs are used, oldest first. */
#define LASTING (IBP_NCCL_GROUP | IBP_NCCL_COLL | IBP_NCCL_P2P | ~0xffULL)

static struct {
    const struct ibp_nccl_profiler *profiler;
    unsigned version;
    /* Event types of the next plug-in's interface version. */
    uint64_t types;
    struct ibp_nccl_pair *lasting, *passing;
    uint32_t next_lasting, next_passing;
    bool is_tried;
} chain;

/* Open a library as NCCL does: first by its path or name, then as libnccl-profiler-NAME.so. */
static void *open_library(const char *name)
{
    char path[PATH_MAX];
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (library || strchr(name, '/')) return library;
    snprintf(path, sizeof path, "libnccl-profiler-%s.so", name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static const struct ibp_nccl_profiler *find_version(void *library, unsigned version)
{
    char name[32];

    snprintf(name, sizeof name, "ncclProfiler_v%u", version);
    return dlsym(library, name);
}

static bool is_this(const void *symbol)
{
    Dl_info own, other;

    return dladdr(&chain, &own) && dladdr(symbol, &other) && own.dli_fbase == other.dli_fbase;
}

/* Find the plug-in's interface of NCCL's version. If the plug-in lacks this interface, find the newest older interface
 * of version 4 or later. Since version 4, events begin with the same members in all versions, so older plug-ins can
 * read newer events. */
static void find_profiler(void *library, unsigned version)
{
    const unsigned oldest = version < 4 ? version : 4;

    for (unsigned each = version; each >= oldest && !chain.profiler; each--) {
        chain.profiler = find_version(library, each);
        chain.version = each;
    }
    if (chain.profiler && is_this(chain.profiler)) chain.profiler = NULL;
    chain.types = chain.version < 3 ? 0x3f : chain.version < 5 ? 0xff : chain.version < 6 ? 0xfff : ~UINT64_C(0);
}

static void *map_pairs(void)
{
    void *pairs = mmap(NULL, PAIRS * sizeof(struct ibp_nccl_pair), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return pairs == MAP_FAILED ? NULL : pairs;
}

static void open_once(unsigned version)
{
    const char *name = getenv("IBPROF_NCCL_NEXT");
    void *library;

    if (!name || !*name || !strcasecmp(name, "none") || !dlsym || !dladdr) return;
    library = open_library(name);
    if (library) find_profiler(library, version);
    chain.lasting = map_pairs();
    chain.passing = map_pairs();
    if (!chain.lasting || !chain.passing) chain.profiler = NULL;
    if (chain.profiler) return;
    if (library)
        fprintf(stderr,
                "ibprof: %s: not loaded, because it has no version of NCCL's profiler interface that suits version "
                "%u\n",
                name, version);
    else
        fprintf(stderr, "ibprof: %s: the next plug-in cannot be loaded: %s\n", name, dlerror());
}

bool ibp_nccl_chain_open(unsigned version)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&mutex);
    if (!chain.is_tried) open_once(version);
    chain.is_tried = true;
    pthread_mutex_unlock(&mutex);
    return chain.profiler;
}

void *ibp_nccl_chain_begin(const struct ibp_nccl_init_arguments *with, int *mask)
{
    void *context = NULL;
    int error;

    if (chain.version < 4)
        error = chain.profiler->init_1(&context, mask);
    else if (chain.version < 5)
        error = chain.profiler->init_4(&context, mask, with->name, with->hash, with->nodes, with->ranks, with->rank,
                                       with->logger);
    else
        error = chain.profiler->init_5(&context, with->hash, mask, with->name, with->nodes, with->ranks, with->rank,
                                       with->logger);
    if (error) *mask = 0;
    return error ? NULL : context;
}

void ibp_nccl_chain_end(void *context)
{
    if (context) chain.profiler->finalize(context);
}

static struct ibp_nccl_pair *take(uint64_t type)
{
    if (type & LASTING) return &chain.lasting[__atomic_fetch_add(&chain.next_lasting, 1, __ATOMIC_RELAXED) % PAIRS];
    for (unsigned i = 0; i < PAIRS; i++) {
        struct ibp_nccl_pair *pair =
            &chain.passing[__atomic_fetch_add(&chain.next_passing, 1, __ATOMIC_RELAXED) % PAIRS];

        if (!__atomic_test_and_set(&pair->is_taken, __ATOMIC_ACQUIRE)) return pair;
    }
    return NULL;
}

struct ibp_nccl_pair *ibp_nccl_chain_start(void *context, void *event, uint64_t type, void **parents[2], void *own)
{
    void *const kept[2] = {*parents[0], parents[1] ? *parents[1] : NULL};
    struct ibp_nccl_pair *pair = take(type);

    if (!pair) return NULL;
    pair->own = own;
    pair->next = NULL;
    if (!(type & chain.types) || !context) return pair;
    for (int i = 0; i < 2; i++)
        if (parents[i] && kept[i]) *parents[i] = ((struct ibp_nccl_pair *)kept[i])->next;
    /* A plug-in of version 4 expects the group as the parent of a task. */
    if (chain.version == 4 && parents[1]) *parents[0] = *parents[1];
    chain.profiler->start(context, &pair->next, event);
    for (int i = 0; i < 2; i++)
        if (parents[i]) *parents[i] = kept[i];
    return pair;
}

void ibp_nccl_chain_record(const struct ibp_nccl_pair *pair, int state, void *arguments)
{
    if (pair->next) chain.profiler->record(pair->next, state, arguments);
}

void ibp_nccl_chain_stop(struct ibp_nccl_pair *pair)
{
    void *const next = pair->next;
    const bool is_passing = pair->is_taken;

    /* A pair in `lasting` keeps the handle of its stopped event, because the event may be the parent of later
     * events. */
    if (is_passing) pair->next = NULL;
    if (next) chain.profiler->stop(next);
    if (is_passing) __atomic_clear(&pair->is_taken, __ATOMIC_RELEASE);
}
