/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "simulation/adaptive.h"

#include <stdlib.h>
#include <string.h>

/* -- set-up -------------------------------------------------------------------------------------------------------- */

/* A set of arrays of `size` bytes each, stored one after another in `item`. `index` is a hash table with open
 * addressing. An element of `index` is 0 if free, otherwise 1 + the number of an array. */
struct distinct {
    size_t size;
    unsigned char *item;
    uint32_t count, capacity, *index;
};

static uint64_t hash(const unsigned char *item, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < size; i++) hash = (hash ^ item[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Return the element of `index` for the array `item`; the element is 0 if the array is new. */
static uint32_t *find_index(const struct distinct *all, const unsigned char *item)
{
    uint64_t at = hash(item, all->size);

    for (;; at++) {
        uint32_t *index = &all->index[at & (2 * all->capacity - 1)];

        if (!*index || !memcmp(&all->item[(size_t)(*index - 1) * all->size], item, all->size)) return index;
    }
}

static bool grow(struct distinct *all)
{
    const uint32_t capacity = all->capacity ? 2 * all->capacity : 64;
    unsigned char *item = realloc(all->item, (size_t)capacity * all->size);
    uint32_t *index = calloc(2 * (size_t)capacity, sizeof *index);

    if (item) all->item = item;
    if (!item || !index) {
        free(index);
        return false;
    }
    free(all->index);
    all->index = index;
    all->capacity = capacity;
    for (uint32_t i = 0; i < all->count; i++) *find_index(all, &item[(size_t)i * all->size]) = i + 1;
    return true;
}

/* Return the number of an array. An array that differs from all earlier arrays gets the next number. Return
 * IBP_SIM_NOTHING if memory is exhausted. */
static uint32_t number_array(struct distinct *all, const void *item)
{
    if (all->count == all->capacity && !grow(all)) return IBP_SIM_NOTHING;
    uint32_t *index = find_index(all, item);
    if (!*index) {
        memcpy(&all->item[(size_t)all->count * all->size], item, all->size);
        *index = ++all->count;
    }
    return *index - 1;
}

/* Count the 1 bits of a word, faster than __builtin_popcountll does without the processor's instruction. The compiler
 * must not use this instruction, because some processors lack it. */
static inline uint32_t count_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    return (uint32_t)(((word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * UINT64_C(0x0101010101010101) >> 56);
}

static void number_leaves(struct ibp_sim *sim)
{
    const struct ibp_sim_network *network = &sim->network;

    for (uint32_t i = 0; i < network->switches; i++) sim->number_of_leaf[i] = IBP_SIM_NOTHING;
    for (uint32_t i = 0; i < network->hosts; i++) {
        uint32_t *number = &sim->number_of_leaf[network->host_leaf[i]];

        if (*number == IBP_SIM_NOTHING) *number = sim->leaves++;
    }
}

/* Set `choice` to the number that represents a set of ports (ibp_sim_choice_of). `ports`: a bit for each port. Return
 * false if memory is exhausted. */
static bool number_choice(struct distinct *sets, const uint64_t *ports, uint32_t *choice)
{
    const size_t words = sets->size / sizeof *ports;
    uint32_t count = 0, port = 0;

    for (uint32_t word = 0; word < words; word++) {
        if (ports[word]) port = word * 64 + (uint32_t)__builtin_ctzll(ports[word]);
        count += count_bits(ports[word]);
    }
    *choice = count == 1 ? port : IBP_SIM_NOTHING;
    if (count < 2) return true;
    const uint32_t number = number_array(sets, ports);
    *choice = IBP_SIM_SETS + number;
    return number != IBP_SIM_NOTHING;
}

/* List a switch's possible egress ports toward each leaf switch. If the switch is a leaf switch, its own unused element
 * repeats another element, so that more switches have equal lists. */
static bool list_choices(struct ibp_sim *sim, uint32_t at, struct distinct *sets, uint32_t *choices)
{
    const struct ibp_sim_network *network = &sim->network;
    const size_t words = (sim->width + 63) / 64, given = (network->width + 63) / 64;
    uint32_t other = IBP_SIM_NOTHING;
    uint64_t ports[4];

    for (uint32_t to = 0; to < network->switches; to++) {
        const uint32_t leaf = sim->number_of_leaf[to];

        if (leaf == IBP_SIM_NOTHING || to == at) continue;
        memcpy(ports, &network->minimal[((uint64_t)at * network->switches + to) * given], words * sizeof *ports);
        if (sim->width % 64) ports[words - 1] &= (UINT64_C(1) << sim->width % 64) - 1;
        if (!number_choice(sets, ports, &choices[leaf])) return false;
        other = choices[leaf];
    }
    if (sim->number_of_leaf[at] != IBP_SIM_NOTHING) choices[sim->number_of_leaf[at]] = other;
    return true;
}

static bool number_choices(struct ibp_sim *sim, struct distinct *sets, struct distinct *rows)
{
    uint32_t *choices = calloc(sim->leaves, sizeof *choices);
    bool done = choices != NULL;

    for (uint32_t at = 0; done && at < sim->network.switches; at++) {
        done = list_choices(sim, at, sets, choices);
        if (done) sim->choice_row[at] = number_array(rows, choices);
        done = done && sim->choice_row[at] != IBP_SIM_NOTHING;
    }
    free(choices);
    free(sets->index);
    free(rows->index);
    sim->choices = (uint64_t *)sets->item;
    sim->choice = (uint32_t *)rows->item;
    return done;
}

bool ibp_sim_set_up_adaptive(struct ibp_sim *sim)
{
    const uint32_t switches = sim->network.switches;
    struct distinct sets = {.size = (sim->width + 63) / 64 * sizeof *sim->choices}, rows = {0};

    sim->queued = ibp_sim_allocate(ibp_sim_count_queues(sim) + IBP_SIM_VECTOR, sizeof *sim->queued);
    sim->number_of_leaf = calloc(switches, sizeof *sim->number_of_leaf);
    sim->choice_row = calloc(switches, sizeof *sim->choice_row);
    if (!sim->queued || !sim->number_of_leaf || !sim->choice_row) return false;
    number_leaves(sim);
    rows.size = sim->leaves * sizeof *sim->choice;
    return number_choices(sim, &sets, &rows);
}

/* -- the choice ---------------------------------------------------------------------------------------------------- */

/* Vector types of gcc and clang, for which most processors have instructions. The elements are signed, since some
 * processors compare only signed elements. `loose`: a vector in memory that is aligned only to its elements. */
typedef int32_t vector __attribute__((vector_size(4 * IBP_SIM_VECTOR)));
typedef int32_t loose __attribute__((vector_size(4 * IBP_SIM_VECTOR), aligned(4), may_alias));

static inline vector minimum(vector a, vector b)
{
    const vector less = a < b;

    return (a & less) | (b & ~less);
}

/* Return a number whose bit i is 1 if element i of a comparison's result is true. */
static inline uint32_t bits_of(vector truth)
{
    const vector bits = truth & (vector){1, 2, 4, 8};

    return (uint32_t)(bits[0] | bits[1] | bits[2] | bits[3]);
}

/* Return the number of bytes in the shortest queue, over a set of up to 64 ports. `queued`: [port], bytes in the port's
 * queue. `set`: a bit for each port. */
static inline uint32_t find_least(const uint32_t *queued, uint64_t set)
{
    vector least = (vector){0} + INT32_MAX;

    for (const uint32_t *read = queued; set; set >>= IBP_SIM_VECTOR, read += IBP_SIM_VECTOR) {
        const vector ports = (vector){0} + (int32_t)set, others = (ports & (vector){1, 2, 4, 8}) == 0;

        least = minimum(least, *(const loose *)read | (others & INT32_MAX));
    }
    const int32_t left = least[0] < least[1] ? least[0] : least[1], right = least[2] < least[3] ? least[2] : least[3];
    return (uint32_t)(left < right ? left : right);
}

/* In a set of up to 64 ports, find the ports with at most `most` queued bytes. Return a bit for each port. */
static inline uint64_t find_up_to(const uint32_t *queued, uint64_t set, uint32_t most)
{
    uint64_t found = 0;

    for (unsigned port = 0; port < 64 && set >> port; port += IBP_SIM_VECTOR)
        found |= (uint64_t)bits_of(*(const loose *)&queued[port] <= (vector){0} + (int32_t)most) << port;
    return found & set;
}

/* Return the least occupied port of a set of `words` words; a random port if several are equally occupied. */
static inline __attribute__((always_inline)) uint32_t choose_port(struct ibp_sim *sim, const uint32_t *queued,
                                                                  const uint64_t *set, uint32_t words)
{
    const uint32_t step = sim->network.message_step_bytes;
    uint32_t least = INT32_MAX, count = 0, first[4] = {0};
    uint64_t ties[4] = {0};

    for (uint32_t word = 0; word < words; word++) {
        first[word] = set[word] ? 64 * word + (uint32_t)__builtin_ctzll(set[word]) : 0;
        const uint32_t found = find_least(&queued[first[word]], set[word] >> first[word] % 64);
        least = found < least ? found : least;
    }
    if (step) least += step - 1 - least % step;
    for (uint32_t word = 0; word < words; word++) {
        ties[word] = find_up_to(&queued[first[word]], set[word] >> first[word] % 64, least);
        count += count_bits(ties[word]);
    }
    uint32_t others = (uint32_t)((ibp_sim_random(sim) >> 32) * count >> 32), word = 0;
    while (others >= count_bits(ties[word])) others -= count_bits(ties[word++]);
    for (; others; others--) ties[word] &= ties[word] - 1;
    return first[word] + (uint32_t)__builtin_ctzll(ties[word]);
}

/* Return the least occupied queue of the ports in a set. */
static uint32_t find_least_queue(struct ibp_sim *sim, uint32_t at, uint32_t client)
{
    const uint32_t words = (sim->width + 63) / 64, lanes = sim->network.lanes;
    const uint64_t *set = &sim->choices[(uint64_t)(ibp_sim_choice_of(sim, at, client) - IBP_SIM_SETS) * words];
    const uint32_t first = ibp_sim_port_of_switch(sim, at, 0) * lanes + ibp_sim_lane_of(sim, client);
    uint32_t of_lane[256 + IBP_SIM_VECTOR];

    if (lanes == 1 && words == 1) return first + choose_port(sim, &sim->queued[first], set, 1); /* nearly always */
    if (lanes == 1) return first + choose_port(sim, &sim->queued[first], set, words);
    for (uint32_t port = 0; port < sim->width; port++) of_lane[port] = sim->queued[first + port * lanes];
    return first + choose_port(sim, of_lane, set, words) * lanes;
}

uint32_t ibp_sim_choose_queue(struct ibp_sim *sim, uint32_t at, uint32_t client)
{
    struct ibp_sim_path *path = &sim->path[client];
    const uint32_t lanes = sim->network.lanes;
    const uint32_t first = ibp_sim_port_of_switch(sim, at, 0) * lanes, end = first + sim->width * lanes;

    if (!sim->network.message_step_bytes) return find_least_queue(sim, at, client);
    for (uint8_t hop = 0; hop < path->hops; hop++)
        if (path->rest[hop] >= first && path->rest[hop] < end) return path->rest[hop];
    const uint32_t chosen = find_least_queue(sim, at, client);
    if (path->hops < IBP_SIM_PATH_MAX) path->rest[path->hops++] = chosen;
    return chosen;
}
