/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <math.h>
#include <string.h>

#include "ibprof_kernels/placement.h"
#include "support/random.h"

/* Proposals between two updates of the temperature. */
#define UPDATE_EVERY 64
/* Accepted proposals after which the energy is summed anew, so that rounding errors do not grow; likewise a relative
 * fall of the energy. */
#define SUM_EVERY 4096
#define FALLEN 0x1p-10
#define FREE (-1)

typedef struct ibp_placement_problem problem_t;
typedef struct ibp_placement_search search_t;

static uint64_t sample(search_t *s)
{
    return ibp_mix(s->random += IBP_RANDOM_STEP);
}

static uint32_t sample_below(search_t *s, uint32_t limit)
{
    return (uint32_t)(((sample(s) >> 32) * limit) >> 32);
}

/* In (0, 1]. */
static double sample_fraction(search_t *s)
{
    return (double)((sample(s) >> 11) + 1) * 0x1p-53;
}

static const uint32_t *path_between(const problem_t *p, uint32_t rail, uint32_t from, uint32_t to, uint64_t *length)
{
    uint32_t leaf = p->leaf_of_host[(uint64_t)rail * p->hosts + from];
    uint64_t index = ((uint64_t)rail * p->leaves + leaf) * p->hosts + to;
    *length = p->path_first[index + 1] - p->path_first[index];
    return p->path + p->path_first[index];
}

/* Return the bytes by rail between two hosts, from `sent` or `received`. */
static const int64_t *amounts(const problem_t *p, const int64_t *of_neighbours, uint64_t neighbour, uint32_t from,
                              uint32_t to)
{
    int32_t row = p->row_of_rails[p->rails_of_host[from] & p->rails_of_host[to]];
    return of_neighbours + (neighbour * p->rows + (uint32_t)row) * p->rails;
}

void ibp_placement_load(const problem_t *p, const uint32_t *slot_of_rank, int64_t *load)
{
    memset(load, 0, p->ends * sizeof *load);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        uint32_t from = p->host_of_slot[slot_of_rank[rank]];
        for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
            uint32_t to = p->host_of_slot[slot_of_rank[p->neighbour[n]]];
            if (to == from) continue;
            const int64_t *bytes = amounts(p, p->sent, n, from, to);
            for (uint32_t rail = 0; rail < p->rails; rail++) {
                uint64_t length;
                const uint32_t *path = path_between(p, rail, from, to, &length);
                for (uint64_t i = 0; bytes[rail] && i < length; i++) load[path[i]] += bytes[rail];
            }
        }
    }
}

static void change_path(const problem_t *p, search_t *s, uint32_t from, uint32_t to, const int64_t *bytes, int sign,
                        uint32_t *touched)
{
    for (uint32_t rail = 0; rail < p->rails; rail++) {
        uint64_t length;
        const uint32_t *path = path_between(p, rail, from, to, &length);
        int64_t amount = sign * bytes[rail];
        if (!amount) continue;
        for (uint64_t i = 0; i < length; i++) {
            uint32_t end = path[i];
            if (!s->is_touched[end]) {
                s->is_touched[end] = 1;
                s->touched[(*touched)++] = end;
            }
            s->change[end] += amount;
        }
        s->work += length;
    }
}

/* Add to `change` what moving a rank does. `partner` moves in the opposite direction; traffic with it is included if
 * `with_partner`. `touched` counts the link directions. */
static void change_rank(const problem_t *p, search_t *s, uint32_t rank, uint32_t old_host, uint32_t new_host,
                        int64_t partner, int with_partner, uint32_t *touched)
{
    for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
        uint32_t other = p->neighbour[n];
        uint32_t old_other = p->host_of_slot[s->slot_of_rank[other]], new_other = old_other;
        if (other == partner) {
            if (!with_partner) continue;
            new_other = old_host;
        }
        if (old_host != old_other) {
            change_path(p, s, old_host, old_other, amounts(p, p->sent, n, old_host, old_other), -1, touched);
            change_path(p, s, old_other, old_host, amounts(p, p->received, n, old_host, old_other), -1, touched);
        }
        if (new_host != new_other) {
            change_path(p, s, new_host, new_other, amounts(p, p->sent, n, new_host, new_other), 1, touched);
            change_path(p, s, new_other, new_host, amounts(p, p->received, n, new_host, new_other), 1, touched);
        }
    }
    s->work += p->first[rank + 1] - p->first[rank];
}

static double cost(const problem_t *p, const search_t *s, uint32_t end, int64_t load)
{
    double value = (double)load * p->seconds_per_byte[end] / s->scale;
    for (uint32_t i = 0; i < s->doublings; i++) value *= value;
    return value;
}

static void sum_energy(const problem_t *p, search_t *s)
{
    s->energy = 0;
    for (uint32_t end = 0; end < p->ends; end++) s->energy += cost(p, s, end, s->load[end]);
}

/* Keep the present placement if it is the best one so far. */
static void keep_if_best(const problem_t *p, search_t *s)
{
    int64_t lost = s->load[p->ends - 1];
    double most = 0, squares = 0;
    for (uint32_t end = 0; end + 1 < p->ends; end++) {
        double seconds = (double)s->load[end] * p->seconds_per_byte[end];
        most = seconds > most ? seconds : most;
        squares += seconds * seconds;
    }
    if (lost < s->best_lost ||
        (lost == s->best_lost && (most < s->best_max || (most == s->best_max && squares < s->best_squares)))) {
        s->best_lost = lost;
        s->best_max = most;
        s->best_squares = squares;
        memcpy(s->best, s->slot_of_rank, p->ranks * sizeof *s->best);
    }
}

/* Sample a slot for a rank: any, or one in the group of a neighbour. */
static uint32_t sample_slot(const problem_t *p, search_t *s, uint32_t rank)
{
    uint64_t neighbours = p->first[rank + 1] - p->first[rank];
    if (neighbours == 0 || sample(s) >> 63) return sample_below(s, p->slots);
    uint32_t other = p->neighbour[p->first[rank] + sample_below(s, (uint32_t)neighbours)];
    uint32_t group = p->group_of_host[p->host_of_slot[s->slot_of_rank[other]]];
    uint32_t first = p->group_first[group];
    return first + sample_below(s, p->group_first[group + 1] - first);
}

static void accept(const problem_t *p, search_t *s, uint32_t rank, uint32_t slot, double energy, uint32_t touched)
{
    int32_t other = s->rank_of_slot[slot];
    uint32_t old_slot = s->slot_of_rank[rank];
    for (uint32_t i = 0; i < touched; i++) s->load[s->touched[i]] += s->change[s->touched[i]];
    s->rank_of_slot[old_slot] = other;
    s->rank_of_slot[slot] = (int32_t)rank;
    s->slot_of_rank[rank] = slot;
    if (other != FREE) s->slot_of_rank[other] = old_slot;
    int has_fallen = energy < s->energy * FALLEN;
    s->energy = energy;
    if (++s->accepted % SUM_EVERY == 0 || has_fallen) sum_energy(p, s);
}

static void propose(const problem_t *p, search_t *s)
{
    uint32_t rank = sample_below(s, p->ranks);
    uint32_t slot = sample_slot(p, s, rank);
    uint32_t old_host = p->host_of_slot[s->slot_of_rank[rank]], new_host = p->host_of_slot[slot];
    int32_t other = s->rank_of_slot[slot];
    double threshold = s->energy - s->energy * s->temperature * log(sample_fraction(s));
    uint32_t touched = 0;
    s->work++;
    if (old_host == new_host) return;
    change_rank(p, s, rank, old_host, new_host, other, 1, &touched);
    if (other != FREE) change_rank(p, s, (uint32_t)other, new_host, old_host, rank, 0, &touched);
    double energy = s->energy;
    for (uint32_t i = 0; i < touched; i++) {
        uint32_t end = s->touched[i];
        if (s->change[end]) energy += cost(p, s, end, s->load[end] + s->change[end]) - cost(p, s, end, s->load[end]);
    }
    int better = energy <= threshold;
    if (better) accept(p, s, rank, slot, energy, touched);
    for (uint32_t i = 0; i < touched; i++) {
        s->change[s->touched[i]] = 0;
        s->is_touched[s->touched[i]] = 0;
    }
    if (better && s->energy < s->computed_at) {
        s->computed_at = s->energy;
        keep_if_best(p, s);
        s->work += p->ends / 8; /* sequential reads cost little */
    }
}

void ibp_placement_search(const problem_t *p, search_t *s, uint64_t until)
{
    if (s->proposals == 0) {
        ibp_placement_load(p, s->slot_of_rank, s->load);
        sum_energy(p, s);
        s->computed_at = s->energy;
        keep_if_best(p, s);
    }
    while (s->work < until && s->work < s->all_work) {
        if (s->proposals % UPDATE_EVERY == 0)
            s->temperature = s->hottest * pow(s->coldest / s->hottest, (double)s->work / (double)s->all_work);
        s->proposals++;
        propose(p, s);
    }
}
