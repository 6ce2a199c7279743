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

/* Places by hash of their keys. */
#define PLACES (4 * IBP_SITES_MAX)
/* Most places that are taken. The last ones are kept for lines, which a program without end may compile again. */
#define TAKEN_MAX (PLACES / 2)
#define INSTRUCTIONS_MAX (TAKEN_MAX - IBP_SITES_MAX / 2)

static struct {
    /* By hash of the key. */
    struct ibp_call_point *all;
    uint32_t taken;
    uint32_t sites;
} places;

bool ibp_call_points_prepare(void)
{
    if (!places.all) places.all = ibp_memory_map(PLACES * sizeof *places.all);
    return places.all;
}

static struct ibp_call_point *place_at(const void *key)
{
    uint32_t i = (uint32_t)((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (PLACES - 1);

    while (__atomic_load_n(&places.all[i].key, __ATOMIC_ACQUIRE) && places.all[i].key != key)
        i = (i + 1) & (PLACES - 1);
    return &places.all[i];
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
    struct ibp_call_point *const place = place_at(address);
    struct ibp_object_place where;

    if (place->key) return place; /* by another thread meanwhile */
    if (places.taken == TAKEN_MAX) return NULL;
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
