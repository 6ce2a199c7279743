/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Events of an OTF2 archive, written and read in bulk.
 */
#ifndef IBPROF_KERNELS_ARCHIVE_H
#define IBPROF_KERNELS_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- cffi begins -- */

enum ibp_event_kind {
    /* reference is a region */
    IBP_EVENT_ENTER = 0,
    IBP_EVENT_LEAVE = 1,
    /* reference is a parameter; the event's single value is the parameter's value */
    IBP_EVENT_NUMBER = 2,
    /* as IBP_EVENT_NUMBER, but the value is the number of a string */
    IBP_EVENT_TEXT = 3,
    /* reference is a metric; the event's values are its numbers, at most 255 */
    IBP_EVENT_METRIC = 4
};

/* An event of one location. One array holds the values of all events, one event after the other. */
struct ibp_event {
    uint64_t time_ns;
    uint32_t reference;
    /* enum ibp_event_kind */
    uint16_t kind;
    uint16_t values;
};

/* OTF2's functions that write events, loaded by the caller and declared as in OTF2's header: OTF2_EvtWriter_Enter,
 * ...Leave, ...ParameterUnsignedInt, ...ParameterString, ...Metric. */
struct ibp_otf2_writer {
    int (*enter)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*leave)(void *writer, void *attributes, uint64_t time_ns, uint32_t region);
    int (*number)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint64_t value);
    int (*text)(void *writer, void *attributes, uint64_t time_ns, uint32_t parameter, uint32_t text);
    int (*metric)(void *writer, void *attributes, uint64_t time_ns, uint32_t metric, uint8_t count,
                  const uint8_t *types, const uint64_t *values);
};

/* Write events through OTF2_EvtWriter `writer`. Returns 0, OTF2's error, or -EINVAL for an invalid event. */
int ibp_otf2_write(const struct ibp_otf2_writer *otf2, void *writer, const struct ibp_event *events, size_t count,
                   const uint64_t *values);

/* OTF2's functions that read events: OTF2_EvtReaderCallbacks_New, ..._Delete, ..._SetEnterCallback and so on,
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

/* A buffer for events and their values. */
struct ibp_events {
    struct ibp_event *events;
    size_t count;
    size_t capacity;
    uint64_t *values;
    size_t values_count;
    size_t values_capacity;
    int overflown;
};

/* Append the events of one location, OTF2_EvtReader `reader` of OTF2_Reader `archive`, to `into`. Returns 0, OTF2's
 * error, -E2BIG when a capacity is exceeded, or -ENOMEM. */
int ibp_otf2_read(const struct ibp_otf2_reader *otf2, void *archive, void *reader, struct ibp_events *into);

/* -- cffi ends -- */

#pragma GCC visibility pop

#endif
