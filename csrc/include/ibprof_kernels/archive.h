/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Write or read many events of an OTF2 archive with one call.
 */
#ifndef IBPROF_KERNELS_ARCHIVE_H
#define IBPROF_KERNELS_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

enum ibp_event_kind {
    /* `reference` is a region */
    IBP_EVENT_ENTER = 0,
    IBP_EVENT_LEAVE = 1,
    /* `reference` is a parameter; the event's only value is the parameter's value */
    IBP_EVENT_NUMBER = 2,
    /* like IBP_EVENT_NUMBER, but the value is an OTF2 reference of a string */
    IBP_EVENT_TEXT = 3,
    /* `reference` is a metric; the event contains the metric's values, at most 255 */
    IBP_EVENT_METRIC = 4
};

/* An event of an OTF2 location, such as a process. The values of all events are in a separate array, in the order of
 * the events. */
struct ibp_event {
    uint64_t time_ns;
    uint32_t reference;
    /* enum ibp_event_kind */
    uint16_t kind;
    uint16_t values;
};

/* OTF2's functions that write events: OTF2_EvtWriter_Enter, ...Leave, ...ParameterUnsignedInt, ...ParameterString,
 * ...Metric. The caller loads these functions. OTF2's header defines their types. */
struct ibp_otf2_writer {
    int (*enter)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*leave)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*number)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint64_t value);
    int (*text)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint32_t text);
    int (*metric)(void *writer, void *attributes, uint64_t time_ns, uint32_t metric, uint8_t count,
                  const uint8_t *types, const uint64_t *values);
};

/* Write events with `writer`, an OTF2_EvtWriter. Return 0, an error code of OTF2, or -EINVAL for an invalid event. */
int ibp_otf2_write(const struct ibp_otf2_writer *otf2, void *writer, const struct ibp_event *events, size_t count,
                   const uint64_t *values);

/* OTF2's functions that read events: OTF2_EvtReaderCallbacks_New, ..._Delete, the ..._Set...Callback functions,
 * OTF2_Reader_RegisterEvtCallbacks, OTF2_Reader_ReadAllLocalEvents. */
struct ibp_otf2_reader {
    void *(*callbacks_new)(void);
    void (*callbacks_delete)(void *callbacks);
    int (*set_enter)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t));
    int (*set_leave)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t));
    int (*set_number)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint64_t));
    int (*set_text)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint32_t));
    int (*set_metric)(void *callbacks, int (*)(uint64_t, uint64_t, uint64_t, void *, void *, uint32_t, uint8_t,
                                               const uint8_t *, const uint64_t *));
    int (*register_callbacks)(void *archive, void *reader, void *callbacks, void *user_data);
    int (*read_all)(void *archive, void *reader, uint64_t *count);
};

/* Arrays for events and their values. */
struct ibp_events {
    struct ibp_event *events;
    size_t count;
    size_t capacity;
    uint64_t *values;
    size_t values_count;
    size_t values_capacity;
    int overflown;
};

/* Append the events of one location to `into`. `archive` is an OTF2_Reader, `reader` the OTF2_EvtReader of the
 * location. Return 0, an error code of OTF2, -E2BIG if a capacity is exceeded, or -ENOMEM. */
int ibp_otf2_read(const struct ibp_otf2_reader *otf2, void *archive, void *reader, struct ibp_events *into);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
