/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "counting/message_order.h"
#include "counting/repeats.h"
#include "counting/samples.h"

#include <string.h>

struct waiting {
    struct ibp_posted_receive receive;
    /* The request of the receive; 0 for a blocking receive, and after the receive has completed. */
    uintptr_t request;
    struct ibp_instance_known known;
    /* Identifier of the receive. The identifier does not change when other receives are removed from the list. */
    unsigned number;
    bool is_complete, is_gone, is_cancelling;
    struct ibp_completing completing;
};

/* Waiting receives in the order of their posts. */
static struct waiting list[IBP_WAITING_RECEIVES_MAX];
static unsigned last_number;

uint32_t ibp_waiting_receives;

static bool is_any(const struct ibp_posted_receive *receive)
{
    return receive->source == IBP_ANY || receive->tag == IBP_ANY;
}

static bool overlap(const struct ibp_posted_receive *one, const struct ibp_posted_receive *other)
{
    return one->communicator == other->communicator &&
           (one->source == other->source || one->source == IBP_ANY || other->source == IBP_ANY) &&
           (one->tag == other->tag || one->tag == IBP_ANY || other->tag == IBP_ANY);
}

bool ibp_receive_waits(const struct ibp_posted_receive *receive)
{
    for (uint32_t i = 0; i < ibp_waiting_receives; i++)
        if (overlap(&list[i].receive, receive)) return true;
    return is_any(receive);
}

static struct waiting *find(unsigned number)
{
    for (uint32_t i = 0; i < ibp_waiting_receives; i++)
        if (list[i].number == number) return &list[i];
    return NULL;
}

unsigned ibp_receive_enter(const struct ibp_posted_receive *receive, uintptr_t request,
                           const struct ibp_instance_known *known)
{
    if (ibp_waiting_receives == IBP_WAITING_RECEIVES_MAX) return 0;
    if (!++last_number) last_number = 1;
    list[ibp_waiting_receives++] =
        (struct waiting){.receive = *receive, .request = request, .known = *known, .number = last_number};
    ibp_repeats_set_watched(IBP_WATCHED_RECEIVES, ibp_waiting_receives);
    return last_number;
}

void ibp_receive_set_known(unsigned number, const struct ibp_instance_known *known)
{
    struct waiting *const waiting = find(number);

    if (waiting) waiting->known = *known;
}

void ibp_receive_set_request(unsigned number, uintptr_t request)
{
    struct waiting *const waiting = find(number);

    if (waiting) waiting->request = request;
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

void ibp_message_set_number(struct ibp_instance_known *known, const struct ibp_numbered *numbered, int tag)
{
    known->name = numbered->communicator;
    known->number = numbered->number;
    known->size_or_peer = numbered->peer;
    known->root_or_tag = tag;
    known->stratum = numbered->stratum;
    known->keeps = numbered->keeps;
    known->stream_keeps = numbered->stream_keeps;
    known->is_timed = numbered->is_timed;
}

void ibp_message_post(struct ibp_instance_known *known, uint64_t key, uint64_t now_ns)
{
    enum { MOST_OF_A_ROUND = 64 };
    static struct {
        uint64_t key, last_ns, late_ns;
        uint32_t messages;
    } round;
    const uint64_t gap_ns = round.last_ns ? now_ns - round.last_ns : 0;

    round.last_ns = now_ns;
    if (key == round.key || ++round.messages > MOST_OF_A_ROUND) {
        round.key = key;
        round.messages = 0;
        round.late_ns = 0;
    }
    if (gap_ns > round.late_ns) round.late_ns = gap_ns;
    known->start_ns = now_ns;
    known->late_ns = round.late_ns;
}

/* Return the score of a message (struct ibp_message_sample). */
static uint64_t score(const struct ibp_instance_known *known, const struct ibp_completing *completing)
{
    const uint64_t stay_ns = completing->exit_ns - completing->enter_ns;

    if (!known->is_timed) return 0;
    return stay_ns > known->late_ns ? stay_ns : known->late_ns;
}

void ibp_message_keep(const struct ibp_instance_known *known, enum ibp_side side,
                      const struct ibp_completing *completing)
{
    const uint64_t score_ns = score(known, completing);
    struct ibp_message_sample *sample =
        ibp_sample_take(IBP_INSTANCE_MESSAGE, known->stratum, known->keeps, known->stream_keeps);

    if (!sample) sample = ibp_sample_take_long(IBP_INSTANCE_MESSAGE, score_ns);
    if (!sample) return;
    sample->score_ns = score_ns;
    sample->number = known->number;
    sample->origin = known->origin;
    sample->end_origin = completing->origin;
    sample->side = (uint16_t)side;
    sample->completed = (uint16_t)(completing->messages < UINT16_MAX ? completing->messages : UINT16_MAX);
    sample->peer = known->size_or_peer;
    sample->tag = known->root_or_tag;
    sample->bytes = known->bytes;
    sample->post_ns = known->start_ns;
    sample->enter_ns = completing->enter_ns;
    sample->exit_ns = completing->exit_ns;
    __atomic_store_n(&sample->communicator, known->name, __ATOMIC_RELEASE);
    ibp_samples_note_clock(completing->exit_ns);
}

/* Assign a sequence number to a receive whose envelope is known. If the receive is sampled and complete, record the
 * sample. If the receive is not complete, the completion of its request will record the sample. */
static void number(struct waiting *waiting)
{
    const struct ibp_posted_receive *const receive = &waiting->receive;
    const struct ibp_numbered numbered =
        ibp_envelope_number(receive->communicator, receive->source, receive->tag, IBP_SIDE_RECEIVER, 0);
    struct ibp_open_request *const entry = waiting->request ? ibp_open_request_find(waiting->request) : NULL;

    waiting->is_gone = true;
    if (numbered.is_sampled) ibp_message_set_number(&waiting->known, &numbered, receive->tag);
    if (waiting->is_complete) {
        if (numbered.is_sampled) ibp_message_keep(&waiting->known, IBP_SIDE_RECEIVER, &waiting->completing);
        return;
    }
    if (!entry || entry->order != waiting->number) return;
    entry->order = 0;
    if (numbered.is_sampled)
        entry->known = waiting->known;
    else if (entry->is_persistent)
        ibp_open_request_start(entry, false);
    else
        ibp_open_request_remove(entry);
}

/* Return whether the message of the receive at index `place` may match an earlier receive in the list. */
static bool is_preceded(uint32_t place)
{
    for (uint32_t i = 0; i < place; i++)
        if (!list[i].is_gone && overlap(&list[i].receive, &list[place].receive)) return true;
    return false;
}

/* Assign sequence numbers to all receives whose envelope and order are known, and remove these receives from the
 * list. */
static void resolve(void)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ibp_waiting_receives; i++)
        if (!list[i].is_gone && !is_any(&list[i].receive) && !is_preceded(i)) number(&list[i]);
    for (uint32_t i = 0; i < ibp_waiting_receives; i++)
        if (!list[i].is_gone) list[kept++] = list[i];
    ibp_waiting_receives = kept;
    ibp_repeats_set_watched(IBP_WATCHED_RECEIVES, ibp_waiting_receives);
}

void ibp_receive_complete(unsigned of, int source, int tag, const struct ibp_completing *completing)
{
    struct waiting *const waiting = find(of);

    if (!waiting) return;
    waiting->receive.source = source;
    waiting->receive.tag = tag;
    waiting->is_complete = true;
    waiting->request = 0;
    waiting->completing = *completing;
    resolve();
}

void ibp_receive_cancel(unsigned of)
{
    struct waiting *const waiting = find(of);

    if (waiting) waiting->is_gone = true;
    resolve();
}

void ibp_receive_try_cancel(unsigned of)
{
    struct waiting *const waiting = find(of);

    if (!waiting) return;
    waiting->receive.source = IBP_ANY; /* the receive gets no number before it completes, as a receive with wildcards */
    waiting->is_cancelling = true;
}

bool ibp_receive_is_cancelling(unsigned of)
{
    const struct waiting *const waiting = find(of);

    return waiting && waiting->is_cancelling;
}

void ibp_receives_disorder(ibp_handle communicator)
{
    ibp_envelopes_disorder(communicator);
    for (uint32_t i = 0; i < ibp_waiting_receives; i++) {
        struct ibp_open_request *const entry = list[i].request ? ibp_open_request_find(list[i].request) : NULL;

        if (communicator && list[i].receive.communicator != communicator) continue;
        list[i].is_gone = true;
        if (!entry || entry->order != list[i].number) continue;
        entry->order = 0;
        if (entry->is_persistent)
            ibp_open_request_start(entry, false);
        else
            ibp_open_request_remove(entry);
    }
    resolve();
}
