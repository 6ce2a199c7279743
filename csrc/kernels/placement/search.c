/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <math.h>
#include <string.h>

#include "placement/paths.h"
#include "support/random.h"

/* Number of proposals between two updates of the temperature. */
#define UPDATE_EVERY 64
/* Number of accepted proposals between two recomputations of the energy. Recomputations limit rounding errors. A large
 * decrease of the energy also causes a recomputation. */
#define SUM_EVERY 4096
#define FALLEN 0x1p-10
/* If hosts have several slots, one in HOSTS_EVERY proposals exchanges all ranks of two hosts. */
#define HOSTS_EVERY 8
/* If `has_several` is WHOLE_HOSTS, ranks move to free slots only together with all ranks of their host.
 * WHOLE_HOSTS_EVERY then replaces HOSTS_EVERY. */
#define WHOLE_HOSTS 2
#define WHOLE_HOSTS_EVERY 2
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

/* Return a random number in (0, 1]. */
static double sample_fraction(search_t *s)
{
    return (double)((sample(s) >> 11) + 1) * 0x1p-53;
}

static void change_end(search_t *s, uint32_t end, int64_t amount)
{
    if (!s->is_touched[end]) {
        s->is_touched[end] = 1;
        s->touched[s->touches++] = end;
    }
    s->change[end] += amount;
}

static void change_path(const problem_t *p, search_t *s, uint32_t from, uint32_t to, const int64_t *bytes, int sign)
{
    for (uint32_t rail = 0; rail < p->rails; rail++) {
        int64_t amount = sign * bytes[rail];
        const uint32_t *path;
        if (!amount) continue;
        uint32_t length = ibp_placement_path(p, rail, from, to, s->path, &path);
        for (uint32_t i = 0; i < length; i++) change_end(s, path[i], amount);
        if (path[length - 1] != p->ends - 1) change_end(s, p->out_of_port[(uint64_t)rail * p->ports + from], amount);
        s->work += length + 1;
    }
}

/* Multiply the traffic between a rank on `slot` and its neighbour `n` on slot `other` by `sign`, and add it to
 * `change`. */
static void change_pair(const problem_t *p, search_t *s, uint64_t n, uint32_t slot, uint32_t other, int sign)
{
    uint32_t here = p->port_of_slot[slot], there = p->port_of_slot[other];
    if (p->host_of_slot[slot] == p->host_of_slot[other]) return;
    change_path(p, s, here, there, ibp_placement_amounts(p, p->sent, n, here, there), sign);
    change_path(p, s, there, here, ibp_placement_amounts(p, p->received, n, here, there), sign);
}

/* Add to the array `change` the effect of a rank's move. If two neighbours move, only the first call adds the traffic
 * between them. */
static void change_rank(const problem_t *p, search_t *s, uint32_t rank)
{
    uint32_t old_slot = s->slot_of_rank[rank], new_slot = s->new_slot[rank];
    if (p->port_of_slot[old_slot] == p->port_of_slot[new_slot]) return;
    for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
        uint32_t other = p->neighbour[n];
        if (s->is_counted[other]) continue;
        change_pair(p, s, n, old_slot, s->slot_of_rank[other], -1);
        change_pair(p, s, n, new_slot, s->new_slot[other], 1);
    }
    s->is_counted[rank] = 1;
    s->work += p->first[rank + 1] - p->first[rank];
}

static double cost(const search_t *s, uint32_t end, int64_t load)
{
    double value = (double)load * s->unit[end];
    for (uint32_t i = 0; i < s->doublings; i++) value *= value;
    return value;
}

static void sum_energy(const problem_t *p, search_t *s)
{
    s->energy = 0;
    for (uint32_t end = 0; end < p->ends; end++) s->energy += cost(s, end, s->load[end]);
}

static void score_loads(const problem_t *p, const int64_t *load, struct ibp_placement_score *score)
{
    *score = (struct ibp_placement_score){.lost = load[p->ends - 1]};
    for (uint32_t end = 0; end + 1 < p->ends; end++) {
        double seconds = (double)load[end] * p->seconds_per_byte[end];
        if (seconds > score->most) score->most = seconds;
        if (end < p->between && seconds > score->most_between) score->most_between = seconds;
        score->sum += seconds;
    }
}

static int is_better(const struct ibp_placement_score *a, const struct ibp_placement_score *b)
{
    if (a->lost != b->lost) return a->lost < b->lost;
    if (a->most != b->most) return a->most < b->most;
    if (a->most_between != b->most_between) return a->most_between < b->most_between;
    return a->sum < b->sum;
}

static void keep_if_best(const problem_t *p, search_t *s)
{
    struct ibp_placement_score score;
    score_loads(p, s->load, &score);
    if (!is_better(&score, &s->best_score)) return;
    s->best_score = score;
    memcpy(s->best, s->slot_of_rank, p->ranks * sizeof *s->best);
}

/* Choose a random slot for a rank: among all slots, among the slots of a neighbour's host, or among the slots of this
 * host's group. */
static uint32_t sample_slot(const problem_t *p, search_t *s, uint32_t rank)
{
    uint64_t neighbours = p->first[rank + 1] - p->first[rank], kind = neighbours ? sample(s) >> 62 : 0;
    if (kind == 0 || (kind == 1 && !p->has_several)) return sample_below(s, p->slots);
    uint32_t other = p->neighbour[p->first[rank] + sample_below(s, (uint32_t)neighbours)];
    uint32_t host = p->host_of_slot[s->slot_of_rank[other]], group = p->group_of_host[host];
    int on_host = p->has_several && kind > 1;
    uint32_t first = on_host ? p->host_first[host] : p->group_first[group];
    return first + sample_below(s, (on_host ? p->host_first[host + 1] : p->group_first[group + 1]) - first);
}

static int64_t group_of(const problem_t *p, int64_t rank)
{
    return rank == FREE ? FREE : rank / p->together;
}

static void move(search_t *s, int64_t rank, uint32_t slot)
{
    s->new_slot[rank] = slot;
    s->moved[s->moves++] = (uint32_t)rank;
}

/* Propose that group `in` replaces group `out` on a host; `in` or `out` may be FREE. On hosts with `is_numbered`, also
 * move other ranks, so that the host's ranks fill its first slots in ascending order. */
static void exchange(const problem_t *p, search_t *s, uint32_t slot, int64_t out, int64_t in)
{
    uint32_t host = p->host_of_slot[slot], to = p->host_first[host];
    int64_t next = in == FREE ? 0 : in * p->together, end = in == FREE ? 0 : next + p->together;
    if (!p->is_numbered[host]) {
        to = slot - (slot - to) % p->together;
        while (next < end) move(s, next++, to++);
        return;
    }
    for (uint32_t from = to; from < p->host_first[host + 1] && s->rank_of_slot[from] != FREE; from++) {
        int32_t rank = s->rank_of_slot[from];
        if (group_of(p, rank) == out) continue;
        while (next < end && next < rank) move(s, next++, to++);
        if (from != to) move(s, rank, to);
        to++;
    }
    while (next < end) move(s, next++, to++);
}

/* Propose to exchange all ranks of two hosts. Propose nothing if the hosts differ in their number of slots or in
 * `is_numbered`. */
static void exchange_hosts(const problem_t *p, search_t *s, uint32_t one, uint32_t other)
{
    uint32_t a = p->host_first[one], b = p->host_first[other], slots = p->host_first[one + 1] - a;
    if (p->host_first[other + 1] - b != slots || p->is_numbered[one] != p->is_numbered[other]) return;
    for (uint32_t i = 0; i < slots; i++) {
        if (s->rank_of_slot[a + i] != FREE) move(s, s->rank_of_slot[a + i], b + i);
        if (s->rank_of_slot[b + i] != FREE) move(s, s->rank_of_slot[b + i], a + i);
    }
}

static void accept(const problem_t *p, search_t *s, double energy)
{
    for (uint32_t i = 0; i < s->touches; i++) s->load[s->touched[i]] += s->change[s->touched[i]];
    for (uint64_t i = 0; i < s->moves; i++) s->rank_of_slot[s->slot_of_rank[s->moved[i]]] = FREE;
    for (uint64_t i = 0; i < s->moves; i++) {
        uint32_t rank = s->moved[i], slot = s->new_slot[rank];
        s->rank_of_slot[slot] = (int32_t)rank;
        s->slot_of_rank[rank] = slot;
    }
    int has_fallen = energy < s->energy * FALLEN;
    s->energy = energy;
    if (++s->accepted % SUM_EVERY == 0 || has_fallen) sum_energy(p, s);
}

/* Return the energy after the changes; infinity if a load would increase and exceed its limit. */
static double energy_after(search_t *s)
{
    double energy = s->energy;
    for (uint32_t i = 0; i < s->touches; i++) {
        uint32_t end = s->touched[i];
        int64_t change = s->change[end];
        if (!change) continue;
        if (change > 0 && s->load[end] + change > s->limit[end]) return INFINITY;
        energy += cost(s, end, s->load[end] + change) - cost(s, end, s->load[end]);
    }
    return energy;
}

static void choose_moves(const problem_t *p, search_t *s)
{
    uint32_t rank = sample_below(s, p->ranks);
    int is_whole = p->has_several == WHOLE_HOSTS;
    int is_host = p->has_several && sample(s) % (is_whole ? WHOLE_HOSTS_EVERY : HOSTS_EVERY) == 0;
    uint32_t slot = sample_slot(p, s, rank), old_slot = s->slot_of_rank[rank];
    uint32_t host = p->host_of_slot[slot], old_host = p->host_of_slot[old_slot];
    s->moves = 0;
    if (host == old_host) return;
    int32_t other = s->rank_of_slot[slot];
    if (is_host || (is_whole && other == FREE)) {
        exchange_hosts(p, s, old_host, host);
        return;
    }
    exchange(p, s, slot, group_of(p, other), group_of(p, rank));
    exchange(p, s, old_slot, group_of(p, rank), group_of(p, other));
}

static void propose(const problem_t *p, search_t *s)
{
    choose_moves(p, s);
    s->work++;
    if (!s->moves) return;
    double threshold = s->energy - s->energy * s->temperature * log(sample_fraction(s));
    for (uint64_t i = 0; i < s->moves; i++) change_rank(p, s, s->moved[i]);
    double energy = energy_after(s);
    if (energy > s->energy && energy < INFINITY && s->energy > 0) {
        s->uphill += log(energy / s->energy - 1);
        s->climbs++;
    }
    int better = energy <= threshold;
    if (better) accept(p, s, energy);
    for (uint64_t i = 0; i < s->moves; i++) {
        s->new_slot[s->moved[i]] = s->slot_of_rank[s->moved[i]];
        s->is_counted[s->moved[i]] = 0;
    }
    for (uint32_t i = 0; i < s->touches; i++) {
        s->change[s->touched[i]] = 0;
        s->is_touched[s->touched[i]] = 0;
    }
    s->touches = 0;
    if (better && s->energy < s->computed_at) {
        s->computed_at = s->energy;
        keep_if_best(p, s);
        s->work += p->ends / 8; /* sequential reads are fast */
    }
}

void ibp_placement_search(const problem_t *p, search_t *s, uint64_t until)
{
    if (s->proposals == 0) {
        ibp_placement_load(p, s->path, s->slot_of_rank, s->load);
        sum_energy(p, s);
        s->computed_at = s->energy;
        keep_if_best(p, s);
    }
    while (s->work < until && s->work < s->all_work) {
        if (s->proposals % UPDATE_EVERY == 0)
            s->temperature = s->first_temperature *
                             pow(s->last_temperature / s->first_temperature, (double)s->work / (double)s->all_work);
        s->proposals++;
        propose(p, s);
    }
}

void ibp_placement_score_load(const problem_t *p, const int64_t *load, struct ibp_placement_score *score)
{
    score_loads(p, load, score);
}
