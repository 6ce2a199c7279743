/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "ibprof_kernels/archive.h"

#include <errno.h>
#include <string.h>

enum { OTF2_TYPE_UINT64 = 4, OTF2_CALLBACK_SUCCESS = 0, OTF2_CALLBACK_INTERRUPT = 1 };

int ibp_otf2_write(const struct ibp_otf2_writer *otf2, void *writer, const struct ibp_event *events, size_t count,
                   const uint64_t *values)
{
    uint8_t types[UINT8_MAX];
    int error = 0;

    memset(types, OTF2_TYPE_UINT64, sizeof types);
    for (const struct ibp_event *event = events; event < events + count && !error; event++) {
        switch (event->kind) {
        case IBP_EVENT_ENTER:
            error = otf2->enter(writer, NULL, event->time_ns, event->reference);
            break;
        case IBP_EVENT_LEAVE:
            error = otf2->leave(writer, NULL, event->time_ns, event->reference);
            break;
        case IBP_EVENT_NUMBER:
            error = otf2->number(writer, NULL, event->time_ns, event->reference, values[0]);
            break;
        case IBP_EVENT_TEXT:
            error = otf2->text(writer, NULL, event->time_ns, event->reference, (uint32_t)values[0]);
            break;
        case IBP_EVENT_METRIC:
            if (event->values > UINT8_MAX) return -EINVAL;
            error = otf2->metric(writer, NULL, event->time_ns, event->reference, (uint8_t)event->values, types, values);
            break;
        default:
            return -EINVAL;
        }
        values += event->values;
    }
    return error;
}

/* -- reading: OTF2 calls one of these functions for each event -- */

static int keep(struct ibp_events *into, enum ibp_event_kind kind, uint64_t time_ns, uint32_t reference,
                const uint64_t *values, uint16_t count)
{
    if (into->count == into->capacity || into->values_capacity - into->values_count < count) {
        into->overflown = 1;
        return OTF2_CALLBACK_INTERRUPT;
    }
    into->events[into->count++] =
        (struct ibp_event){.time_ns = time_ns, .reference = reference, .kind = kind, .values = count};
    if (count) memcpy(into->values + into->values_count, values, count * sizeof *values);
    into->values_count += count;
    return OTF2_CALLBACK_SUCCESS;
}

static int keep_enter(uint64_t location, uint64_t time_ns, uint64_t position, void *into, void *attributes,
                      uint32_t region)
{
    (void)location, (void)position, (void)attributes;
    return keep(into, IBP_EVENT_ENTER, time_ns, region, NULL, 0);
}

static int keep_leave(uint64_t location, uint64_t time_ns, uint64_t position, void *into, void *attributes,
                      uint32_t region)
{
    (void)location, (void)position, (void)attributes;
    return keep(into, IBP_EVENT_LEAVE, time_ns, region, NULL, 0);
}

static int keep_number(uint64_t location, uint64_t time_ns, uint64_t position, void *into, void *attributes,
                       uint32_t parameter, uint64_t value)
{
    (void)location, (void)position, (void)attributes;
    return keep(into, IBP_EVENT_NUMBER, time_ns, parameter, &value, 1);
}

static int keep_text(uint64_t location, uint64_t time_ns, uint64_t position, void *into, void *attributes,
                     uint32_t parameter, uint32_t text)
{
    const uint64_t value = text;

    (void)location, (void)position, (void)attributes;
    return keep(into, IBP_EVENT_TEXT, time_ns, parameter, &value, 1);
}

static int keep_metric(uint64_t location, uint64_t time_ns, uint64_t position, void *into, void *attributes,
                       uint32_t metric, uint8_t count, const uint8_t *types, const uint64_t *values)
{
    (void)location, (void)position, (void)attributes, (void)types;
    return keep(into, IBP_EVENT_METRIC, time_ns, metric, values, count);
}

int ibp_otf2_read(const struct ibp_otf2_reader *otf2, void *archive, void *reader, struct ibp_events *into)
{
    void *callbacks = otf2->callbacks_new();
    uint64_t count;
    int error;

    if (!callbacks) return -ENOMEM;
    error = otf2->set_enter(callbacks, keep_enter);
    if (!error) error = otf2->set_leave(callbacks, keep_leave);
    if (!error) error = otf2->set_number(callbacks, keep_number);
    if (!error) error = otf2->set_text(callbacks, keep_text);
    if (!error) error = otf2->set_metric(callbacks, keep_metric);
    if (!error) error = otf2->register_callbacks(archive, reader, callbacks, into);
    if (!error) error = otf2->read_all(archive, reader, &count);
    otf2->callbacks_delete(callbacks);
    return into->overflown ? -E2BIG : error;
}
