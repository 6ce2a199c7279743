/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Threads share requests. One thread posts a request; a second thread tests, waits for, cancels or frees the request; a
 * third thread starts the request again. A thread takes an item (a message or a receive) from a common queue, makes one
 * call for the item, and puts the item back. A matched probe and the receive of the message are in different threads.
 *
 *     shared_requests MESSAGES [SEED]
 *
 * Each rank sends MESSAGES messages of each kind to the next rank, and notes them (tally.h).
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

#define THREADS 4
#define LARGEST 40000
#define STARTS 3

enum send_kind { ISEND, ISSEND, IBSEND, FREED, PERSISTENT, SENDS };
enum item_kind { SEND, RECEIVE, RECEIVE_FREED, RECEIVE_PERSISTENT, PROBED, CANCELLED };
enum tag { TAG_RECEIVED = 1, TAG_PERSISTENT, TAG_PROBED, TAG_NOBODY };

struct item {
    enum item_kind kind;
    enum send_kind send;
    int step, starts, tag, bytes;
    MPI_Request request;
    MPI_Message message;
    char *buffer;
};

static struct item *items;
static int *queue, waiting, unfinished, me, ranks, next, before;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct item *take(unsigned *random)
{
    struct item *item = NULL;

    pthread_mutex_lock(&lock);
    if (waiting) {
        const int place = rand_r(random) % waiting;

        item = &items[queue[place]];
        queue[place] = queue[--waiting];
    }
    pthread_mutex_unlock(&lock);
    return item;
}

static void put_back(const struct item *item, bool is_finished)
{
    pthread_mutex_lock(&lock);
    if (is_finished)
        unfinished--;
    else
        queue[waiting++] = (int)(item - items);
    pthread_mutex_unlock(&lock);
}

static bool is_all_finished(void)
{
    bool is_finished;

    pthread_mutex_lock(&lock);
    is_finished = !unfinished;
    pthread_mutex_unlock(&lock);
    return is_finished;
}

static void tally(const char *operation, long bytes)
{
    pthread_mutex_lock(&lock);
    tally_add(operation, me, next, bytes);
    pthread_mutex_unlock(&lock);
}

/* Test a request by one of several calls. */
static bool test(MPI_Request *request, unsigned *random)
{
    int flag = 0, index, count;
    MPI_Status status;

    switch (rand_r(random) % 5) {
    case 0:
        MPI_Test(request, &flag, &status);
        break;
    case 1:
        MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Testany(1, request, &index, &flag, &status);
        break;
    case 3:
        MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
        if (flag) MPI_Wait(request, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Testsome(1, request, &count, &index, &status);
        flag = count == 1;
    }
    return flag;
}

static bool post_send(struct item *item)
{
    MPI_Request *request = &item->request;

    switch (item->send) {
    case ISEND:
        tally("ISEND", item->bytes);
        MPI_Isend(item->buffer, item->bytes, MPI_BYTE, next, item->tag, MPI_COMM_WORLD, request);
        break;
    case ISSEND:
        tally("ISSEND", item->bytes);
        MPI_Issend(item->buffer, item->bytes, MPI_BYTE, next, item->tag, MPI_COMM_WORLD, request);
        break;
    case IBSEND:
        tally("IBSEND", item->bytes);
        MPI_Ibsend(item->buffer, item->bytes, MPI_BYTE, next, item->tag, MPI_COMM_WORLD, request);
        break;
    case FREED:
        tally("ISEND", item->bytes);
        MPI_Isend(item->buffer, item->bytes, MPI_BYTE, next, item->tag, MPI_COMM_WORLD, request);
        break;
    default:
        MPI_Send_init(item->buffer, item->bytes, MPI_BYTE, next, item->tag, MPI_COMM_WORLD, request);
    }
    return false;
}

/* Move a request that is started several times. Odd steps start it. */
static bool step_persistent(struct item *item, unsigned *random)
{
    if (item->step == 2 * STARTS + 1) {
        MPI_Request_free(&item->request);
        return true;
    }
    if (item->step % 2) {
        if (item->kind == SEND) tally("SEND_INIT", item->bytes);
        if (rand_r(random) % 2)
            MPI_Start(&item->request);
        else
            MPI_Startall(1, &item->request);
    } else if (!test(&item->request, random)) {
        item->step--;
    }
    return false;
}

static bool step_send(struct item *item, unsigned *random)
{
    if (!item->step) return post_send(item);
    if (item->send == PERSISTENT) return step_persistent(item, random);
    if (item->send == FREED) {
        MPI_Request_free(&item->request);
        return true;
    }
    return test(&item->request, random);
}

static bool step_probed(struct item *item, unsigned *random)
{
    MPI_Status status;
    int flag, bytes;

    if (!item->step) {
        MPI_Improbe(before, item->tag, MPI_COMM_WORLD, &flag, &item->message, &status);
        if (!flag) item->step--;
        return false;
    }
    if (item->step > 1) return test(&item->request, random);
    if (rand_r(random) % 2) {
        MPI_Imrecv(item->buffer, LARGEST, MPI_BYTE, &item->message, &item->request);
        return false;
    }
    MPI_Mrecv(item->buffer, LARGEST, MPI_BYTE, &item->message, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes < 1) abort();
    return true;
}

static bool step_cancelled(struct item *item)
{
    MPI_Status status;
    int is_cancelled;

    switch (item->step) {
    case 0:
        MPI_Irecv(item->buffer, LARGEST, MPI_BYTE, before, TAG_NOBODY, MPI_COMM_WORLD, &item->request);
        return false;
    case 1:
        MPI_Cancel(&item->request);
        return false;
    default:
        MPI_Wait(&item->request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        if (!is_cancelled) abort();
        return true;
    }
}

/* Make one call. Return whether the item is finished. */
static bool step(struct item *item, unsigned *random)
{
    switch (item->kind) {
    case SEND:
        return step_send(item, random);
    case PROBED:
        return step_probed(item, random);
    case CANCELLED:
        return step_cancelled(item);
    case RECEIVE_PERSISTENT:
        if (item->step) return step_persistent(item, random);
        MPI_Recv_init(item->buffer, LARGEST, MPI_BYTE, before, item->tag, MPI_COMM_WORLD, &item->request);
        return false;
    default:
        if (item->step && item->kind == RECEIVE) return test(&item->request, random);
        if (item->step) {
            MPI_Request_free(&item->request);
            return true;
        }
        MPI_Irecv(item->buffer, LARGEST, MPI_BYTE, before, item->tag, MPI_COMM_WORLD, &item->request);
        return false;
    }
}

static void *work(void *seed)
{
    unsigned random = (unsigned)(size_t)seed;

    while (!is_all_finished()) {
        struct item *item = take(&random);
        bool is_finished;

        if (!item) continue;
        is_finished = step(item, &random);
        item->step++;
        put_back(item, is_finished);
    }
    return NULL;
}

static void add(enum item_kind kind, enum send_kind send, enum tag tag, int bytes)
{
    struct item *item = &items[unfinished];

    *item = (struct item){.kind = kind, .send = send, .tag = tag, .bytes = bytes, .buffer = malloc(LARGEST)};
    if (!item->buffer) abort();
    memset(item->buffer, 1, LARGEST);
    queue[waiting++] = unfinished++;
}

/* Each message has a receive: two of three receives are requests, the third is a matched probe. */
static void add_all(int messages, unsigned seed)
{
    const int sizes[] = {1, 100, 4000, LARGEST};

    for (int i = 0; i < messages; i++) {
        for (int send = 0; send < SENDS; send++) {
            const int bytes = sizes[rand_r(&seed) % 4];
            const enum tag tag = send == PERSISTENT ? TAG_PERSISTENT : i % 3 == 2 ? TAG_PROBED : TAG_RECEIVED;

            add(SEND, (enum send_kind)send, tag, send == IBSEND ? 100 : bytes);
            if (tag == TAG_RECEIVED) add(i % 6 ? RECEIVE : RECEIVE_FREED, SENDS, tag, 0);
            if (tag == TAG_PROBED) add(PROBED, SENDS, tag, 0);
            if (tag == TAG_PERSISTENT) add(RECEIVE_PERSISTENT, SENDS, tag, 0);
        }
        add(CANCELLED, SENDS, TAG_NOBODY, 0);
    }
}

int main(int argc, char **argv)
{
    const int messages = argc > 1 ? atoi(argv[1]) : 60, most = messages * (2 * SENDS + 1);
    const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const int space = 2 * messages * (100 + MPI_BSEND_OVERHEAD);
    pthread_t threads[THREADS];
    int provided, size;
    void *buffered;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) return 77;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (me + 1) % ranks;
    before = (me + ranks - 1) % ranks;
    items = calloc((size_t)most, sizeof *items);
    queue = calloc((size_t)most, sizeof *queue);
    buffered = malloc((size_t)space);
    if (!items || !queue || !buffered) abort();
    MPI_Buffer_attach(buffered, space);
    add_all(messages, seed);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(seed * 100 + (size_t)me * THREADS + i))) abort();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    MPI_Buffer_detach(&buffered, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    tally_write(me);
    MPI_Finalize();
    return 0;
}
