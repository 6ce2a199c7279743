/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include <math.h>
#include <string.h>

#include "ibprof_kernels/placement.h"
#include "routes/step.h"
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

/* Follow the path between two ports from the leaf of the first one; put the link directions that count into `path`, and
 * return how many. A path that does not arrive is the last link direction alone. */
static uint32_t follow_path(const problem_t *p, uint32_t rail, uint32_t from, uint32_t to)
{
    const struct ibp_routes *routes = p->routes[rail];
    const uint32_t *position = p->position + p->position_first[rail];
    int32_t at = p->leaf_switch[(uint64_t)rail * p->leaves + p->leaf_of_port[(uint64_t)rail * p->ports + from]];
    int32_t lid = p->lid[(uint64_t)rail * p->ports + to];
    int32_t port = routes->lid_port[lid];
    uint32_t place = (uint32_t)at, length = 0, steps = 0;
    if (at == IBP_NONE || port == IBP_NONE) place = routes->switches + IBP_UNKNOWN_LID;
    while (place < routes->switches) {
        int32_t end;
        place = steps++ > routes->switches ? routes->switches + IBP_LOOP
                                           : ibp_step(routes, (uint32_t)lid, port, place, &end);
        if (place < routes->switches && position[end] != IBP_UNCOUNTED) p->path[length++] = position[end];
    }
    if (place == routes->switches + IBP_DELIVERED) return length;
    p->path[0] = p->ends - 1;
    return 1;
}

/* Return the bytes by rail between two ports, from `sent` or `received`. */
static const int64_t *amounts(const problem_t *p, const int64_t *of_neighbours, uint64_t neighbour, uint32_t from,
                              uint32_t to)
{
    int32_t row = p->row_of_rails[p->rails_of_port[from] & p->rails_of_port[to]];
    return of_neighbours + (neighbour * p->rows + (uint32_t)row) * p->rails;
}

void ibp_placement_load(const problem_t *p, const uint32_t *slot_of_rank, int64_t *load)
{
    memset(load, 0, p->ends * sizeof *load);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        uint32_t slot = slot_of_rank[rank], from = p->port_of_slot[slot];
        for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
            uint32_t other = slot_of_rank[p->neighbour[n]], to = p->port_of_slot[other];
            if (p->host_of_slot[other] == p->host_of_slot[slot]) continue;
            const int64_t *bytes = amounts(p, p->sent, n, from, to);
            for (uint32_t rail = 0; rail < p->rails; rail++) {
                uint32_t length = bytes[rail] ? follow_path(p, rail, from, to) : 0;
                for (uint32_t i = 0; i < length; i++) load[p->path[i]] += bytes[rail];
            }
        }
    }
}

static void change_path(const problem_t *p, search_t *s, uint32_t from, uint32_t to, const int64_t *bytes, int sign,
                        uint32_t *touched)
{
    for (uint32_t rail = 0; rail < p->rails; rail++) {
        int64_t amount = sign * bytes[rail];
        uint32_t length = amount ? follow_path(p, rail, from, to) : 0;
        for (uint32_t i = 0; i < length; i++) {
            uint32_t end = p->path[i];
            if (!s->is_touched[end]) {
                s->is_touched[end] = 1;
                s->touched[(*touched)++] = end;
            }
            s->change[end] += amount;
        }
        s->work += length;
    }
}

/* Add to `change` what neighbour `n` exchanges with a rank, both on the given slots. */
static void change_pair(const problem_t *p, search_t *s, uint64_t n, uint32_t slot, uint32_t other, int sign,
                        uint32_t *touched)
{
    uint32_t here = p->port_of_slot[slot], there = p->port_of_slot[other];
    if (p->host_of_slot[slot] == p->host_of_slot[other]) return;
    change_path(p, s, here, there, amounts(p, p->sent, n, here, there), sign, touched);
    change_path(p, s, there, here, amounts(p, p->received, n, here, there), sign, touched);
}

/* Add to `change` what moving a rank does; a pair of ranks that both move is counted with the first of them. `touched`
 * counts the link directions. */
static void change_rank(const problem_t *p, search_t *s, uint32_t rank, uint32_t *touched)
{
    uint32_t old_slot = s->slot_of_rank[rank], new_slot = s->new_slot[rank];
    if (p->port_of_slot[old_slot] == p->port_of_slot[new_slot]) return;
    for (uint64_t n = p->first[rank]; n < p->first[rank + 1]; n++) {
        uint32_t other = p->neighbour[n];
        if (s->is_counted[other]) continue;
        change_pair(p, s, n, old_slot, s->slot_of_rank[other], -1, touched);
        change_pair(p, s, n, new_slot, s->new_slot[other], 1, touched);
    }
    s->is_counted[rank] = 1;
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

static void move(search_t *s, int64_t rank, uint32_t slot)
{
    s->new_slot[rank] = slot;
    s->moved[s->moves++] = (uint32_t)rank;
}

/* Propose that the rank `in` takes the place of `out` on a host; either may be FREE. On a host whose slots have different
 * ports, the ranks between the two move up or down. */
static void exchange(const problem_t *p, search_t *s, uint32_t slot, int64_t out, int64_t in)
{
    uint32_t host = p->host_of_slot[slot], to = p->host_first[host];
    if (!p->is_numbered[host]) {
        if (in != FREE) move(s, in, slot);
        return;
    }
    for (uint32_t from = to; from < p->host_first[host + 1] && s->rank_of_slot[from] != FREE; from++) {
        int32_t rank = s->rank_of_slot[from];
        if (rank == out) continue;
        if (in != FREE && in < rank) {
            move(s, in, to++);
            in = FREE;
        }
        if (from != to) move(s, rank, to);
        to++;
    }
    if (in != FREE) move(s, in, to);
}

static void accept(const problem_t *p, search_t *s, double energy, uint32_t touched)
{
    for (uint32_t i = 0; i < touched; i++) s->load[s->touched[i]] += s->change[s->touched[i]];
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

static void propose(const problem_t *p, search_t *s)
{
    uint32_t rank = sample_below(s, p->ranks);
    uint32_t slot = sample_slot(p, s, rank), old_slot = s->slot_of_rank[rank];
    int32_t other = s->rank_of_slot[slot];
    double threshold = s->energy - s->energy * s->temperature * log(sample_fraction(s));
    uint32_t touched = 0;
    s->work++;
    if (p->host_of_slot[old_slot] == p->host_of_slot[slot]) return;
    s->moves = 0;
    exchange(p, s, slot, other, rank);
    exchange(p, s, old_slot, rank, other);
    for (uint64_t i = 0; i < s->moves; i++) change_rank(p, s, s->moved[i], &touched);
    double energy = s->energy;
    for (uint32_t i = 0; i < touched; i++) {
        uint32_t end = s->touched[i];
        if (s->change[end]) energy += cost(p, s, end, s->load[end] + s->change[end]) - cost(p, s, end, s->load[end]);
    }
    int better = energy <= threshold;
    if (better) accept(p, s, energy, touched);
    for (uint64_t i = 0; i < s->moves; i++) {
        s->new_slot[s->moved[i]] = s->slot_of_rank[s->moved[i]];
        s->is_counted[s->moved[i]] = 0;
    }
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
            s->temperature = s->first_temperature *
                             pow(s->last_temperature / s->first_temperature, (double)s->work / (double)s->all_work);
        s->proposals++;
        propose(p, s);
    }
}
