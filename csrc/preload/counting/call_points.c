/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/call_points.h"
#include "counting/caller_chains.h"
#include "libmpi/callers.h"
#include "libmpi/lock.h"
#include "platform/memory.h"
#include "recording/objects.h"
#include "recording/recording.h"

#include "ibprof_recording.h"

#include <string.h>

/* Number of entries of the first hash table, which fills one page. */
#define PLACES_FIRST 256
#define PLACES (4 * IBP_SITES_MAX)
#define TABLES_MAX 8
/* Maximum number of used entries. A Python program that compiles the same lines repeatedly creates ever more keys. So
 * ibprof adds further keys of known sites only while fewer than INSTRUCTIONS_MAX entries are used. */
#define TAKEN_MAX (PLACES / 2)
#define INSTRUCTIONS_MAX (TAKEN_MAX - IBP_SITES_MAX / 2)
/* If this number of sites exists, ibprof records only the innermost line of each new chain of callers. */
#define SITES_OF_CHAINS (IBP_SITES_MAX - IBP_SITES_MAX / 4)

struct table {
    /* A hash table by key. */
    struct ibp_call_point *all;
    uint32_t capacity;
};

static struct {
    /* Each table has twice as many entries as the previous table. Previous tables are not freed, because other threads
     * may be reading them. A thread that does not find a key takes the lock and searches the newest table. */
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

/* Create the next table and copy all entries to it. The lock must be held. Return false if memory is exhausted, or if
 * the table would be too large. */
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

/* Return whether the table has space for `more` entries. At most half of the table may be used. The lock must be
 * held. */
static bool has_space(uint32_t more)
{
    return places.taken + more <= places.current->capacity / 2 || grow();
}

bool ibp_call_points_prepare(void)
{
    return places.current || grow();
}

/* Fill an entry that is free or belongs to an unloaded object. Set the key last, because other threads may be reading
 * the entry. The lock must be held. */
static struct ibp_call_point *take(struct ibp_call_point *place, const void *key, uint32_t site,
                                   enum ibp_language language)
{
    if (!place->key) places.taken++;
    place->site = site;
    __atomic_store_n(&place->language, language, __ATOMIC_RELEASE);
    __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
    return place;
}

/* Record a site and return its number, from 1. Return IBP_SITE_OTHER if `most` sites are recorded, if the site's object
 * is unknown, or if the recording is full. */
static uint32_t record(const struct ibp_site *described, uint32_t most)
{
    struct ibp_site *site;

    if (places.sites >= most || described->object == IBP_OBJECT_UNKNOWN) return IBP_SITE_OTHER;
    site = ibp_recording_reserve(IBP_SEGMENT_SITES);
    if (!site) return IBP_SITE_OTHER;
    *site = *described;
    ibp_recording_publish(IBP_SEGMENT_SITES);
    return ++places.sites;
}

/* -- sites with several keys --------------------------------------------------------------------------------------- */

/* Return a site's key, which differs from the keys of all frames and addresses. */
static const void *key_of_site(const struct ibp_site *site)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = (uint64_t)site->object << 32 | site->line;

    hash = (hash ^ site->address) * factor;
    hash = (hash ^ hash >> 29 ^ site->caller) * factor;
    for (const char *at = site->function; *at; at++) hash = (hash ^ (unsigned char)*at) * factor;
    hash = (hash ^ hash >> 29) * factor;
    return (const void *)(uintptr_t)(hash | UINT64_C(3) << 62);
}

/* Return the call point of a site. Record the site if it is new. Return NULL if the table is full, or if the site
 * cannot be recorded and `most` is less than IBP_SITES_MAX. The lock must be held. */
static struct ibp_call_point *place_of_site(const struct ibp_site *site, uint32_t most)
{
    struct ibp_call_point *place = place_at(key_of_site(site));
    uint32_t number;

    if (place->key) return place;
    if (places.taken == TAKEN_MAX || !has_space(1)) return NULL;
    number = record(site, most);
    if (number == IBP_SITE_OTHER && most < IBP_SITES_MAX) return NULL;
    place = place_at(key_of_site(site));
    return take(place, key_of_site(site), number, IBP_LANGUAGE_C);
}

/* Add a call point with another key for the same site, if the table has space. The lock must be held. */
static struct ibp_call_point *take_same(const void *key, struct ibp_call_point *place)
{
    if (!place || places.taken >= INSTRUCTIONS_MAX || !has_space(1)) return place;
    return take(place_at(key), key, place->site, place->language);
}

/* -- addresses ----------------------------------------------------------------------------------------------------- */

/* True after an object was unloaded. The object's addresses may then belong to other sites, and its sites may get other
 * addresses. */
static bool is_any_unloaded;

static bool is_known(const struct ibp_call_point *place)
{
    return place->key && IBP_LIKELY(__atomic_load_n(&place->language, __ATOMIC_ACQUIRE) != IBP_LANGUAGE_UNLOADED);
}

/* Return the number of the site at an address in an object, recorded if needed. */
static uint32_t site_of_address(const void *address, struct ibp_object_place *where)
{
    const struct ibp_call_point *place;

    ibp_object_record(address, where);
    const struct ibp_site site = {.object = where->object, .address = where->address};
    if (IBP_LIKELY(!is_any_unloaded)) return record(&site, IBP_SITES_MAX);
    place = place_of_site(&site, IBP_SITES_MAX);
    return place ? place->site : IBP_SITE_OTHER;
}

static struct ibp_call_point *learn_address(const void *address)
{
    struct ibp_call_point *const place = place_at(address);
    enum ibp_language language = IBP_LANGUAGE_C;
    uint32_t site = IBP_SITE_UNKNOWN;
    struct ibp_object_place where;

    if (is_known(place)) return place; /* another thread has filled the entry */
    if (!place->key && (places.taken == TAKEN_MAX || !has_space(1))) return NULL;
    if (!ibp_object_find(address, &where)) {
        ;
    } else if (ibp_is_mpi_binding(where.path)) {
        language = IBP_LANGUAGE_FORTRAN;
    } else if (ibp_object_calls_for_python(where.path)) {
        ibp_script_seek_again(); /* search again: the interpreter may be loaded by now */
        language = IBP_LANGUAGE_PYTHON;
    } else {
        site = site_of_address(address, &where);
    }
    return take(place_at(address), address, site, language);
}

const struct ibp_call_point *ibp_call_point_of_address(const void *address)
{
    const struct ibp_call_point *place = place_at(address);

    if (IBP_LIKELY(is_known(place))) return place;
    ibp_lock();
    place = learn_address(address);
    ibp_unlock();
    return place;
}

void ibp_call_points_forget_unloaded(void)
{
    const struct table *const table = places.current;
    struct ibp_object_place where;

    is_any_unloaded = true;
    for (uint32_t i = 0; i < table->capacity; i++)
        if (ibp_call_point_key_is_address(table->all[i].key) && !ibp_object_find(table->all[i].key, &where))
            __atomic_store_n(&table->all[i].language, IBP_LANGUAGE_UNLOADED, __ATOMIC_RELEASE);
    ibp_caller_chains_forget();
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

/* Fill `site` with the file, function and line of a Python frame. Return false if the file or the function is
 * unknown. */
static bool describe(const struct ibp_script_frame *frame, uint32_t caller, struct ibp_site *site)
{
    static char path[IBP_PATH_BYTES];

    *site = (struct ibp_site){.caller = caller};
    if (!ibp_script_describe(frame, path, sizeof path, site->function, sizeof site->function, &site->line))
        return false;
    site->object = ibp_object_of_script(path);
    return true;
}

static struct ibp_call_point *learn_script(const struct ibp_script_frame *frame)
{
    const void *const key = ibp_call_point_key_of_script(frame);
    struct ibp_call_point *const place = place_at(key);
    struct ibp_site site;

    if (place->key) return place; /* another thread has filled the entry */
    return describe(frame, 0, &site) ? take_same(key, place_of_site(&site, IBP_SITES_MAX)) : NULL;
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

/* -- chains of callers --------------------------------------------------------------------------------------------- */

/* Fill `site` with the object and offset of an address. Return false if no loaded object contains the address. */
static bool describe_address(const void *address, uint32_t caller, struct ibp_site *site)
{
    struct ibp_object_place where;

    if (!ibp_object_find(address, &where)) return false;
    ibp_object_record(address, &where);
    *site = (struct ibp_site){.object = where.object, .address = where.address, .caller = caller};
    return true;
}

/* Return the call point of element `part` of a chain; element 0 is the innermost function. Return NULL if the function
 * is unknown, or if place_of_site returns NULL. */
static struct ibp_call_point *place_of_part(const struct ibp_caller_chain *chain, uint32_t part, uint32_t caller,
                                            uint32_t most)
{
    struct ibp_site site;
    const bool is_known = part < chain->addresses ? describe_address(chain->address[part], caller, &site)
                                                  : describe(&chain->frame[part - chain->addresses], caller, &site);

    return is_known ? place_of_site(&site, most) : NULL;
}

/* Record the outermost function first, because the record of each site contains the number of its caller's site. If
 * there is no space for the whole chain, record only its innermost line. */
static struct ibp_call_point *learn_chain(const struct ibp_caller_chain *chain)
{
    struct ibp_call_point *place = place_at(chain->key);
    const uint32_t length = chain->addresses + chain->frames;

    if (place->key) return place; /* another thread has filled the entry */
    place = NULL;
    for (uint32_t i = length; i-- > 0;) {
        place = place_of_part(chain, i, place ? place->site : 0, length > 1 ? SITES_OF_CHAINS : IBP_SITES_MAX);
        if (!place) break;
    }
    if (!place && length > 1) place = place_of_part(chain, 0, IBP_SITE_OTHER, IBP_SITES_MAX);
    return take_same(chain->key, place);
}

const struct ibp_call_point *ibp_call_point_of_chain(const struct ibp_caller_chain *chain)
{
    const struct ibp_call_point *place = place_at(chain->key);

    if (IBP_LIKELY(place->key != NULL)) return place;
    ibp_lock();
    place = learn_chain(chain);
    ibp_unlock();
    return place;
}
