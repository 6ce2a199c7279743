/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/call_points.h"
#include "libmpi/callers.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/objects.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <string.h>

/* Places by hash of their keys: at first, a page of them. */
#define PLACES_FIRST 256
#define PLACES (4 * IBP_SITES_MAX)
#define TABLES_MAX 8
/* Most places that are taken. The last ones are kept for lines, which a program without end may compile again. */
#define TAKEN_MAX (PLACES / 2)
#define INSTRUCTIONS_MAX (TAKEN_MAX - IBP_SITES_MAX / 2)

struct table {
    /* By hash of the key. */
    struct ibp_call_point *all;
    uint32_t capacity;
};

static struct {
    /* Each has twice as many places as the one before, whose memory is kept: other threads may be reading it. What
     * they do not find there, they seek again with the lock. */
    struct table tables[TABLES_MAX];
    const struct table *current;
    uint32_t taken;
    uint32_t sites;
} places;

_Static_assert(PLACES_FIRST << (TABLES_MAX - 2) == PLACES, "the largest table fits");

static struct ibp_call_point *place_in(const struct table *table, const void *key)
{
    const uint32_t mask = table->capacity - 1;
    uint32_t i = (uint32_t)((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & mask;

    while (__atomic_load_n(&table->all[i].key, __ATOMIC_ACQUIRE) && table->all[i].key != key) i = (i + 1) & mask;
    return &table->all[i];
}

static struct ibp_call_point *place_at(const void *key)
{
    return place_in(__atomic_load_n(&places.current, __ATOMIC_ACQUIRE), key);
}

/* Make the next table, of all places. The lock must be held. Return false when there is no memory, or it would be too
 * large. */
static bool grow(void)
{
    const struct table *const before = places.current;
    struct table *const table = before ? &places.tables[before - places.tables + 1] : places.tables;

    table->capacity = before ? 2 * before->capacity : PLACES_FIRST;
    table->all = table->capacity > PLACES ? NULL : ibp_memory_map(table->capacity * sizeof *table->all);
    if (!table->all) return false;
    for (uint32_t i = 0; before && i < before->capacity; i++)
        if (before->all[i].key) *place_in(table, before->all[i].key) = before->all[i];
    __atomic_store_n(&places.current, table, __ATOMIC_RELEASE);
    return true;
}

/* Return whether there is space for some more places, of which a table is at most half full. The lock must be held. */
static bool has_space(uint32_t more)
{
    return places.taken + more <= places.current->capacity / 2 || grow();
}

bool ibp_call_points_prepare(void)
{
    return places.current || grow();
}

/* Fill a free place, to which other threads may already look. The lock must be held. */
static struct ibp_call_point *take(struct ibp_call_point *place, const void *key, uint32_t site,
                                   enum ibp_language language)
{
    places.taken++;
    place->site = site;
    place->language = language;
    __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
    return place;
}

/* Record a site, and return its number. */
static uint32_t record(const struct ibp_site *described)
{
    struct ibp_site *site;

    if (places.sites == IBP_SITES_MAX || described->object == IBP_OBJECT_UNKNOWN) return IBP_SITE_OTHER;
    site = ibp_recording_reserve(IBP_SEGMENT_SITES);
    if (!site) return IBP_SITE_OTHER;
    *site = *described;
    ibp_recording_publish(IBP_SEGMENT_SITES);
    return ++places.sites;
}

/* -- addresses ----------------------------------------------------------------------------------------------------- */

/* Return whether an object calls C functions for Python programs: mpi4py's, ctypes, and an interpreter that contains
 * ctypes. */
static bool calls_for_python(const char *path)
{
    static const char *const names[] = {"libffi", "_ctypes", "libpython3", "python"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (strstr(path, "/mpi4py/")) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

static struct ibp_call_point *learn_address(const void *address)
{
    struct ibp_call_point *place = place_at(address);
    struct ibp_object_place where;

    if (place->key) return place; /* by another thread meanwhile */
    if (places.taken == TAKEN_MAX || !has_space(1)) return NULL;
    place = place_at(address);
    if (!ibp_object_find(address, &where)) return take(place, address, IBP_SITE_UNKNOWN, IBP_LANGUAGE_C);
    if (ibp_is_mpi_binding(where.path)) return take(place, address, IBP_SITE_UNKNOWN, IBP_LANGUAGE_FORTRAN);
    if (calls_for_python(*where.path ? where.path : ibp_object_of_program())) {
        ibp_script_seek_again(); /* by now it is loaded */
        return take(place, address, IBP_SITE_UNKNOWN, IBP_LANGUAGE_PYTHON);
    }
    ibp_object_record(address, &where);
    return take(place, address, record(&(struct ibp_site){.object = where.object, .address = where.address}),
                IBP_LANGUAGE_C);
}

const struct ibp_call_point *ibp_call_point_of_address(const void *address)
{
    const struct ibp_call_point *place = place_at(address);

    if (IBP_LIKELY(place->key != NULL)) return place;
    ibp_lock();
    place = learn_address(address);
    ibp_unlock();
    return place;
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

/* Return a key of a line, unlike those of frames. */
static const void *key_of_line(const struct ibp_site *site)
{
    uint64_t hash = (uint64_t)site->object << 32 | site->line;

    for (const char *at = site->function; *at; at++) hash = (hash ^ (unsigned char)*at) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return (const void *)(uintptr_t)(hash | UINT64_C(3) << 62);
}

static struct ibp_call_point *learn_script(const struct ibp_script_frame *frame)
{
    static char path[IBP_PATH_BYTES];
    const void *const key = ibp_call_point_key_of_script(frame);
    struct ibp_call_point *const place = place_at(key), *of_line;
    struct ibp_site site = {.line = 0};

    if (place->key) return place; /* by another thread meanwhile */
    if (places.taken + 2 <= TAKEN_MAX && !has_space(2)) return NULL;
    if (!ibp_script_describe(frame, path, sizeof path, site.function, sizeof site.function, &site.line)) return NULL;
    site.object = ibp_object_of_script(path);
    of_line = place_at(key_of_line(&site));
    if (!of_line->key) {
        if (places.taken == TAKEN_MAX) return NULL;
        take(of_line, key_of_line(&site), record(&site), IBP_LANGUAGE_PYTHON);
    }
    return places.taken < INSTRUCTIONS_MAX ? take(place_at(key), key, of_line->site, IBP_LANGUAGE_PYTHON) : of_line;
}

const struct ibp_call_point *ibp_call_point_of_script(const struct ibp_script_frame *frame)
{
    const struct ibp_call_point *place = place_at(ibp_call_point_key_of_script(frame));

    if (IBP_LIKELY(place->key != NULL)) return place;
    ibp_lock();
    place = learn_script(frame);
    ibp_unlock();
    return place;
}
