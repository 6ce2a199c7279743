/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Sum flows over their routes. Flows are sorted by destination. For each destination, the routes from the first
 * switches of its flows form an in-tree. Bytes are summed along the in-tree towards the destination, separately for
 * each group of flows (`ibp_flows.group`).
 */
#include "ibprof_kernels/spread.h"
#include "ibprof_kernels/sums.h"
#include "routes/in_tree.h"
#include "support/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS_FOR_THREADS = 1 << 12, HOPS_GUESSED = 6 };

/* Maximum memory of all threads' loads, in bytes. With more memory, one thread is faster than several. */
static const uint64_t PRIVATE_LOADS = (uint64_t)1 << 28;

struct entry {
    uint64_t bytes;
    uint32_t flow;
    int32_t source_lid;
};

struct spreading {
    const struct ibp_routes *routes;
    const struct ibp_flows *flows;
    /* Flows sorted by (destination, group). */
    const struct entry *sorted;
    /* [IBP_LIDS + 1], index in `sorted` of the first flow of each destination */
    const uint64_t *of_lid;
    bool grouped;
    atomic_uint next_lid;
    atomic_int status;
    pthread_mutex_t merging;
    bool alone;
    uint64_t *load, *routed, *ended;
    uint8_t *reason;
};

struct worker {
    struct ibp_tree tree;
    /* [switches + 1], bytes that enter each switch; the last element: arrived bytes */
    uint64_t *inflow;
    uint64_t *load, *routed;
    uint64_t ended[IBP_REASONS];
};

/* Sum the flows of one destination and group along the in-tree. These flows are elements `first` to `stop` - 1 of
 * `sorted`. */
static void sum_flows(struct spreading *all, struct worker *worker, uint32_t lid, uint64_t first, uint64_t stop,
                      uint32_t group)
{
    struct ibp_tree *tree = &worker->tree;
    const uint32_t switches = all->routes->switches, groups = all->flows->groups;
    /* For few flows, following each flow separately is faster than visiting all switches. */
    bool one_by_one = (stop - first) * HOPS_GUESSED < tree->visits;
    for (uint64_t i = first; i < stop; i++) {
        uint64_t bytes = all->sorted[i].bytes;
        int32_t end;
        uint32_t place = ibp_start(all->routes, all->sorted[i].source_lid, (int32_t)lid, &end);
        enum ibp_reason reason = ibp_tree_reason(tree, place);
        if (all->reason) all->reason[all->sorted[i].flow] = (uint8_t)reason;
        worker->ended[reason] += bytes;
        if (reason != IBP_DELIVERED) continue;
        worker->routed[group] += bytes;
        if (end != IBP_NONE) worker->load[(size_t)end * groups + group] += bytes;
        if (place >= switches) continue;
        if (!one_by_one) {
            worker->inflow[place] += bytes;
            continue;
        }
        for (; place < switches && !ibp_tree_is_root(tree, place); place = tree->by[place].next)
            worker->load[(size_t)tree->by[place].end * groups + group] += bytes;
    }
    if (one_by_one) return;
    for (uint32_t i = tree->visits; i-- > 0;) {
        const struct ibp_tree_step *step = &tree->by[tree->visited[i]];
        uint64_t bytes = worker->inflow[step->place];
        worker->inflow[step->place] = 0;
        if (!bytes || ibp_tree_is_root(tree, step->place)) continue;
        worker->load[(size_t)step->end * groups + group] += bytes;
        worker->inflow[step->next] += bytes;
    }
    worker->inflow[switches] = 0;
}

static void spread_to(struct spreading *all, struct worker *worker, uint32_t lid)
{
    const uint32_t *group = all->flows->group;
    uint64_t stop = all->of_lid[lid + 1];
    if (all->routes->lid_port[lid] != IBP_NONE) ibp_tree_begin(&worker->tree, lid);
    for (uint64_t first = all->of_lid[lid], next = first; first < stop; first = next) {
        uint32_t here = all->grouped ? group[all->sorted[first].flow] : 0;
        do next++;
        while (next < stop && (!all->grouped || group[all->sorted[next].flow] == here));
        sum_flows(all, worker, lid, first, next, here);
    }
}

static int worker_init(struct worker *worker, struct spreading *all)
{
    size_t loads = (size_t)all->routes->ends * all->flows->groups;
    *worker = (struct worker){.inflow = calloc((size_t)all->routes->switches + 1, sizeof(uint64_t)),
                              .load = all->alone ? all->load : calloc(loads + 1, sizeof(uint64_t)),
                              .routed = calloc(all->flows->groups, sizeof(uint64_t))};
    int status = worker->inflow && worker->load && worker->routed ? 0 : -ENOMEM;
    return status ? status : ibp_tree_init(&worker->tree, all->routes);
}

static void worker_merge(struct worker *worker, struct spreading *all)
{
    pthread_mutex_lock(&all->merging);
    size_t loads = all->alone ? 0 : (size_t)all->routes->ends * all->flows->groups;
    for (size_t i = 0; i < loads; i++) all->load[i] += worker->load[i];
    for (uint32_t i = 0; i < all->flows->groups; i++) all->routed[i] += worker->routed[i];
    for (int i = 0; i < IBP_REASONS; i++) all->ended[i] += worker->ended[i];
    pthread_mutex_unlock(&all->merging);
}

static void spread_some(void *context)
{
    struct spreading *all = context;
    struct worker worker;
    int status = worker_init(&worker, all);
    if (status) {
        all->status = status;
    } else {
        for (unsigned lid; (lid = atomic_fetch_add(&all->next_lid, 1)) < IBP_LIDS;)
            if (all->of_lid[lid] < all->of_lid[lid + 1]) spread_to(all, &worker, lid);
        worker_merge(&worker, all);
    }
    ibp_tree_fini(&worker.tree);
    free(worker.inflow);
    free(worker.routed);
    if (!all->alone) free(worker.load);
}

/* Prepare a counting sort: set begin[k + 1] to the index of the first item with key k. Each item with key k is then
 * placed at begin[k + 1], which is incremented. After all items are placed, begin[k] is the index of the first item
 * with key k. */
static void count_keys(const uint32_t *key, uint64_t count, uint64_t keys, uint64_t *begin)
{
    memset(begin, 0, (keys + 2) * sizeof *begin);
    for (uint64_t i = 0; i < count; i++) begin[key[i] + 2]++;
    for (uint64_t k = 2; k <= keys; k++) begin[k] += begin[k - 1];
}

/* Sort flows by destination and group. `by_group`: scratch memory for an index per flow; NULL if flows have no
 * groups. */
static void sort_flows(const struct ibp_flows *flows, uint32_t *by_group, struct entry *sorted, uint64_t *begin)
{
    if (by_group) {
        count_keys(flows->group, flows->count, flows->groups, begin);
        for (uint64_t i = 0; i < flows->count; i++) by_group[begin[flows->group[i] + 1]++] = (uint32_t)i;
    }
    const uint32_t *lid = (const uint32_t *)flows->destination_lid;
    count_keys(lid, flows->count, IBP_LIDS, begin);
    for (uint64_t i = 0; i < flows->count; i++) {
        uint32_t flow = by_group ? by_group[i] : (uint32_t)i;
        sorted[begin[lid[flow] + 1]++] = (struct entry){flows->bytes[flow], flow, flows->source_lid[flow]};
    }
}

static int check(const struct ibp_flows *flows)
{
    if (flows->count >= UINT32_MAX) return -EINVAL;
    for (uint64_t i = 0; i < flows->count; i++) {
        if ((uint32_t)flows->source_lid[i] >= IBP_LIDS || (uint32_t)flows->destination_lid[i] >= IBP_LIDS)
            return -EINVAL;
        if (flows->group && flows->group[i] >= flows->groups) return -EINVAL;
    }
    uint64_t total[2];
    ibp_sum(flows->bytes, flows->count, total);
    return total[1] ? -EOVERFLOW : 0;
}

int ibp_spread_flows(const struct ibp_routes *routes, const struct ibp_flows *flows, unsigned threads, uint64_t *load,
                     uint64_t *routed, uint64_t *ended, uint8_t *reason)
{
    int status = check(flows);
    if (status) return status;
    bool grouped = flows->group && flows->groups > 1;
    uint64_t keys = grouped && flows->groups > IBP_LIDS ? flows->groups : IBP_LIDS;
    uint64_t *begin = malloc((keys + 2) * sizeof *begin);
    struct entry *sorted = malloc((flows->count + 1) * sizeof *sorted);
    uint32_t *by_group = grouped ? malloc((flows->count + 1) * sizeof *by_group) : NULL;
    if (begin && sorted && (by_group || !grouped)) {
        sort_flows(flows, by_group, sorted, begin);
        memset(routed, 0, flows->groups * sizeof *routed);
        memset(ended, 0, IBP_REASONS * sizeof *ended);
        struct spreading all = {.routes = routes,
                                .flows = flows,
                                .sorted = sorted,
                                .of_lid = begin,
                                .grouped = grouped,
                                .load = load,
                                .routed = routed,
                                .ended = ended,
                                .reason = reason};
        uint64_t loads = (uint64_t)routes->ends * flows->groups * sizeof *load;
        if (flows->count < FLOWS_FOR_THREADS || loads * threads > PRIVATE_LOADS) threads = 1;
        all.alone = threads <= 1;
        pthread_mutex_init(&all.merging, NULL);
        ibp_run_workers(threads, spread_some, &all);
        pthread_mutex_destroy(&all.merging);
        status = all.status;
    } else {
        status = -ENOMEM;
    }
    free(begin);
    free(sorted);
    free(by_group);
    return status;
}
