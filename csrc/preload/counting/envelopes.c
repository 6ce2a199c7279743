/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/envelopes.h"
#include "counting/communicator_names.h"
#include "counting/open_requests.h"
#include "counting/samples.h"
#include "libmpi/communicators.h"
#include "libmpi/lock.h"
#include "platform/clock.h"
#include "platform/memory.h"

#define PLACES IBP_ENVELOPE_PLACES
#define USED_MAX (PLACES / 4 * 3)

_Static_assert(PLACES == 1 << (64 - 54), "the upper bits of a key are its place");

/* A table of free entries. ibprof never writes to this table. */
static struct ibp_envelope nothing[PLACES];
struct ibp_envelope *ibp_envelopes = nothing;

struct ibp_envelope ibp_envelope_of_none = {.next = IBP_NEVER, .messages = {.left = INT64_MAX}};

static uint32_t used;
static unsigned stream_level;
/* `is_disordered`: true if receives are not numbered. `is_stopped`: true if receives and sends are not numbered. */
static bool is_disordered, is_stopped;

bool ibp_envelopes_begin(void)
{
    struct ibp_envelope *const places = ibp_envelopes == nothing ? ibp_memory_map(sizeof nothing) : ibp_envelopes;

    if (places) ibp_envelopes = places;
    return places;
}

static struct ibp_envelope *probe(uint64_t key)
{
    uint64_t place = key >> 54;

    while (ibp_envelopes[place].key && ibp_envelopes[place].key != key) place = (place + 1) % PLACES;
    return &ibp_envelopes[place];
}

/* Return how many messages of an envelope were numbered so far. */
static uint64_t count_messages(struct ibp_envelope *envelope)
{
    ibp_messages_take_back(&envelope->messages);
    return envelope->next - (uint64_t)envelope->messages.left;
}

static void count(struct ibp_envelope *envelope)
{
    const uint64_t messages = count_messages(envelope);

    if (envelope->stream) ibp_sample_count(IBP_INSTANCE_MESSAGE, messages - envelope->counted);
}

static void set_next(struct ibp_envelope *envelope, uint64_t next)
{
    const uint64_t number = count_messages(envelope);

    envelope->next = next;
    envelope->messages.left = (int64_t)(next - number);
}

/* Remove the envelope at index `gap`. Later entries of the probe sequence fill the gap. No entry moves before its own
 * hash position. */
static void take_out(uint32_t gap)
{
    used--;
    ibp_repeats_take_back();
    ibp_open_requests_forget_envelopes();
    for (uint32_t next = (gap + 1) % PLACES; ibp_envelopes[next].key; next = (next + 1) % PLACES) {
        if ((next - (uint32_t)(ibp_envelopes[next].key >> 54)) % PLACES < (next - gap) % PLACES) continue;
        ibp_envelopes[gap] = ibp_envelopes[next];
        gap = next;
    }
    ibp_envelopes[gap] = (struct ibp_envelope){0};
}

static bool is_kept(const struct ibp_envelope *envelope, unsigned level, ibp_handle dropped)
{
    if (!envelope->key) return true;
    return envelope->communicator != dropped && envelope->stream_keeps >= level;
}

/* Remove the envelopes whose streams are not kept at a stream level (samples.h), and all envelopes of communicator
 * `dropped`. */
static void keep(unsigned level, ibp_handle dropped)
{
    for (uint32_t i = 0; i < PLACES; i++)
        while (!is_kept(&ibp_envelopes[i], level, dropped)) {
            count(&ibp_envelopes[i]);
            take_out(i);
        }
}

/* Raise the stream level (samples.h) until an entry of the table is free, or to the maximum. */
static void make_space(void)
{
    while (used == USED_MAX && stream_level < IBP_SAMPLE_LEVELS) {
        keep(++stream_level, 0);
        ibp_samples_raise_streams(stream_level);
    }
}

/* Return the stream of an envelope, a hash that is equal at sender and receiver. Return 0 if the communicator has no
 * name or the peer is unknown. */
static uint64_t find_stream(const struct ibp_named_communicator *named, uint32_t peer, int tag, enum ibp_side side)
{
    const uint64_t own = (uint64_t)ibp_mpi.rank;
    uint64_t hash;

    if (!named || peer == IBP_PEER_UNKNOWN) return 0;
    hash = ibp_sample_hash(named->name, side == IBP_SIDE_SENDER ? own : peer);
    hash = ibp_sample_hash(hash, side == IBP_SIDE_SENDER ? peer : own);
    return ibp_sample_hash(hash, (uint32_t)tag) | 1;
}

/* Return a hash that decides, together with a message's number, whether the message is sampled. The hash does not
 * depend on the sender, so ibprof samples all messages of one round of an exchange, or none. If a call completes
 * several messages, readers split the call's time by the samples of all these messages. If the program uses a new tag
 * for each round, every message has the number 0. For number 0, the hash is equal for 16 successive tags. */
static uint64_t choice_of(const struct ibp_named_communicator *named, int tag, uint64_t number)
{
    return ibp_sample_hash(named->name, number ? UINT64_MAX : (uint32_t)tag >> 4);
}

static unsigned stratum_of(const struct ibp_named_communicator *named, int tag, unsigned class)
{
    return (unsigned)(ibp_sample_hash(choice_of(named, tag, 0), 2 + class) % IBP_SAMPLE_STRATA);
}

/* Return the number, at least `number`, of the next small message to be sampled. */
static uint64_t next_of(const struct ibp_named_communicator *named, int tag, uint64_t number)
{
    const unsigned level = ibp_sample_level(IBP_INSTANCE_MESSAGE, stratum_of(named, tag, 0));

    if (!number && ibp_sample_keeps(choice_of(named, tag, 0), 0) >= level) return 0;
    return ibp_sample_next(choice_of(named, tag, 1), number ? number : 1, level);
}

/* A budget limits the number of messages that are timed although the hash does not choose them. Each timed message
 * reduces the budget by TIMED_NS. The budget is SAVED_NS at first, and grows by the elapsed time, up to SAVED_NS. */
enum { TIMED_NS = 5000, SAVED_NS = 20000000 };
static int64_t saved_ns = SAVED_NS;

/* If the budget is sufficient for timing the next message, reduce the budget and return true. */
static bool times_next(void)
{
    static uint64_t last_ns;
    const uint64_t now_ns = ibp_clock_coarse_ns();

    if (last_ns) saved_ns += (int64_t)(now_ns - last_ns);
    last_ns = now_ns;
    if (saved_ns > SAVED_NS) saved_ns = SAVED_NS;
    if (saved_ns < TIMED_NS) return false;
    saved_ns -= TIMED_NS;
    return true;
}

/* Reduce the budget for messages that are not timed, too. So while messages are frequent, only messages that the hash
 * chooses are timed. */
static void pass(uint64_t messages)
{
    saved_ns -= (int64_t)(messages < SAVED_NS / TIMED_NS ? messages : SAVED_NS / TIMED_NS) * TIMED_NS;
    if (saved_ns < -SAVED_NS) saved_ns = -SAVED_NS;
}

/* Return the highest stream level (samples.h) that keeps a message. All messages of a stream have the same level,
 * except message 0. The level of message 0 depends only on the communicator and the tag. So if a program uses a new tag
 * for each round, all messages of a round have the same level. */
static unsigned stream_keeps(const struct ibp_named_communicator *named, int tag, uint64_t stream, uint64_t number)
{
    return (unsigned)__builtin_clzll(ibp_sample_hash(number ? stream : choice_of(named, tag, 0), 1) | 1);
}

/* Return the highest stream level (samples.h) that keeps any message of an envelope. */
static unsigned envelope_keeps(const struct ibp_named_communicator *named, int tag, uint64_t stream)
{
    const unsigned first = stream_keeps(named, tag, stream, 0), further = stream_keeps(named, tag, stream, 1);

    return first > further ? first : further;
}

/* Return the envelope of a key, created if needed. Return NULL if the table is full, or if the present stream level
 * (samples.h) drops the envelope. */
static struct ibp_envelope *enter(uint64_t key, ibp_handle communicator, uint64_t stream,
                                  const struct ibp_named_communicator *named, int tag, enum ibp_side side)
{
    struct ibp_envelope *envelope = probe(key);
    unsigned keeps;

    if (envelope->key) return envelope;
    if (used == USED_MAX) make_space();
    keeps = stream ? envelope_keeps(named, tag, stream) : 0;
    if (used == USED_MAX || keeps < stream_level) return NULL;
    envelope = probe(key);
    used++;
    *envelope = (struct ibp_envelope){
        .key = key,
        .stream = stream,
        .communicator = communicator,
        .side = (uint8_t)side,
        .stream_keeps = (uint8_t)keeps,
    };
    envelope->is_timed = stream && times_next();
    set_next(envelope, !stream ? IBP_NEVER : envelope->is_timed ? 0 : next_of(named, tag, 0));
    return envelope;
}

static bool is_without_order(const struct ibp_named_communicator *named, enum ibp_side side)
{
    return is_stopped || (side == IBP_SIDE_RECEIVER && (is_disordered || (named && named->is_disordered)));
}

/* Return whether another thread has used the envelope. If so, the order of the envelope's messages is unknown. */
static bool is_shared(struct ibp_envelope *envelope)
{
    static uint32_t threads;
    static IBP_THREAD_LOCAL uint32_t thread;

    if (!thread) thread = ++threads;
    if (!envelope->thread) envelope->thread = thread;
    return envelope->thread != thread;
}

/* Assign a sequence number to a message. If `is_counted` is false, the next message gets the same number. `next` is
 * valid for small messages only. For large messages, the level of the size class decides. */
static struct ibp_numbered number(ibp_handle communicator, int peer, int tag, enum ibp_side side, unsigned class,
                                  bool is_counted)
{
    const uint64_t key = ibp_envelope_key(communicator, peer, tag, side);
    struct ibp_named_communicator *const named = ibp_name_find(communicator);
    struct ibp_numbered numbered = {.peer = IBP_PEER_UNKNOWN};
    struct ibp_envelope *envelope;
    uint64_t stream = 0;
    unsigned level;

    if (peer >= 0) {
        numbered.peer = ibp_communicator_peer(ibp_communicator_known(communicator), peer);
        envelope = probe(key);
        stream = named && envelope->key ? envelope->stream : find_stream(named, numbered.peer, tag, side);
        if (!stream || is_without_order(named, side)) {
            if (!is_counted) return numbered;
            ibp_sample_count(IBP_INSTANCE_MESSAGE, 1);
            ibp_sample_refuse(IBP_INSTANCE_MESSAGE, stream                 ? IBP_UNSAMPLED_ORDER
                                                    : ibp_names_are_full() ? IBP_UNSAMPLED_FULL
                                                                           : IBP_UNSAMPLED_NO_NAME);
            return numbered;
        }
    }
    envelope = enter(key, communicator, stream, named, tag, side);
    if (!envelope) {
        if (stream && is_counted) ibp_sample_count(IBP_INSTANCE_MESSAGE, 1);
        return numbered;
    }
    if (named) named->has_envelopes = true;
    numbered.envelope = envelope;
    if (is_counted && ibp_threads_multiple && is_shared(envelope) && envelope->next != IBP_NEVER)
        set_next(envelope, IBP_NEVER);
    if (class || !envelope->messages.left) ibp_messages_take_back(&envelope->messages);
    if (envelope->messages.left && (!class || !stream || envelope->next == IBP_NEVER)) {
        envelope->messages.left -= is_counted;
        return numbered;
    }
    numbered.number = count_messages(envelope);
    numbered.stream = stream;
    numbered.communicator = named->name;
    numbered.stratum = (uint8_t)stratum_of(named, tag, class);
    numbered.keeps = (uint8_t)ibp_sample_keeps(choice_of(named, tag, numbered.number), numbered.number);
    level = ibp_sample_level(IBP_INSTANCE_MESSAGE, numbered.stratum);
    numbered.stream_keeps = (uint8_t)stream_keeps(named, tag, stream, numbered.number);
    numbered.is_timed = envelope->is_timed || (class && is_counted && times_next());
    numbered.is_sampled = numbered.is_timed || (numbered.keeps >= level && numbered.stream_keeps >= stream_level);
    if (!is_counted) return numbered;
    if (envelope->messages.left) {
        envelope->messages.left--;
        return numbered;
    }
    envelope->is_timed = times_next();
    envelope->next = envelope->is_timed ? numbered.number + 1 : next_of(named, tag, numbered.number + 1);
    envelope->messages.left = (int64_t)(envelope->next - numbered.number - 1);
    if (!envelope->is_timed) pass((uint64_t)envelope->messages.left + 1);
    return numbered;
}

struct ibp_numbered ibp_envelope_number(ibp_handle communicator, int peer, int tag, enum ibp_side side, unsigned class)
{
    return number(communicator, peer, tag, side, class, true);
}

struct ibp_numbered ibp_envelope_peek(ibp_handle communicator, int peer, int tag, enum ibp_side side)
{
    return number(communicator, peer, tag, side, 0, false);
}

void ibp_envelope_stop(ibp_handle communicator, int peer, int tag, enum ibp_side side)
{
    struct ibp_envelope *envelope;

    (void)ibp_envelope_number(communicator, peer, tag, side, 0);
    envelope = probe(ibp_envelope_key(communicator, peer, tag, side));
    if (envelope->key) set_next(envelope, IBP_NEVER);
}

void ibp_envelopes_disorder(ibp_handle communicator)
{
    struct ibp_named_communicator *const named = communicator ? ibp_name_find(communicator) : NULL;

    if (!communicator) is_disordered = true;
    if (named) named->is_disordered = true;
    for (uint32_t i = 0; i < PLACES; i++)
        if (ibp_envelopes[i].key && ibp_envelopes[i].side == IBP_SIDE_RECEIVER &&
            (!communicator || ibp_envelopes[i].communicator == communicator))
            set_next(&ibp_envelopes[i], IBP_NEVER);
}

void ibp_envelopes_stop(void)
{
    is_stopped = true;
    for (uint32_t i = 0; i < PLACES; i++)
        if (ibp_envelopes[i].key) set_next(&ibp_envelopes[i], IBP_NEVER);
}

void ibp_envelopes_forget(ibp_handle communicator)
{
    const struct ibp_named_communicator *const named = ibp_name_find(communicator);

    if (named && named->has_envelopes) keep(stream_level, communicator);
}

void ibp_envelopes_end(void)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        if (!ibp_envelopes[i].key) continue;
        count(&ibp_envelopes[i]);
        ibp_envelopes[i].counted = count_messages(&ibp_envelopes[i]);
    }
}
