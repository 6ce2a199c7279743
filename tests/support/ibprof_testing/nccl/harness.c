/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A mock of NCCL without a GPU. Like NCCL, it loads a profiler plug-in, and passes the events of collectives to the
 * plug-in, from a proxy thread for each communicator. Ranks really send the bytes of all steps, by TCP.
 *
 *     nccl_harness PLUGIN VERSION [key=value ...]
 *
 * torchrun's variables set rank, number of ranks, address and first port: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
 * Rank r listens at MASTER_ADDR, or at the r-th of HARNESS_HOSTS. Prints JSON: peer -> bytes.
 */
#define _GNU_SOURCE
#include "nccl/profiler_abi.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)
#define RANKS_MAX 64
#define COMMUNICATORS_MAX 8

static const struct ibp_nccl_profiler *plugin;
static int version, rank, ranks, mask;
static int channels = 2, steps = 4, chunk = 1000, collectives = 3, communicators = 1, before, is_null, late_us,
           late_rank = -1, compute_us, compute_rank = -1, wire_us, broadcasts;
static const char *algorithm = "RING", *ending = "finalize", *order = "usual";
static char addresses[RANKS_MAX][64];

struct communicator {
    int number;
    void *context;
    int listener;
    /* Connections to each peer, and from each peer; -1 without a connection. */
    int to[RANKS_MAX], from[RANKS_MAX];
    long sent[RANKS_MAX], received[RANKS_MAX];
};
static struct communicator all[COMMUNICATORS_MAX];

/* -- the network --------------------------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(int of_rank, int communicator)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    address.sin_port = htons((uint16_t)(atoi(getenv("MASTER_PORT")) + 1 + communicator * ranks + of_rank));
    CHECK(inet_pton(AF_INET, addresses[of_rank], &address.sin_addr) == 1);
    return address;
}

static void listen_at(struct communicator *c)
{
    struct sockaddr_in address = address_of(rank, c->number);
    const int one = 1;

    for (int i = 0; i < RANKS_MAX; i++) c->to[i] = c->from[i] = -1;
    c->listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    CHECK(!bind(c->listener, (struct sockaddr *)&address, sizeof address));
    CHECK(!listen(c->listener, RANKS_MAX));
}

static void write_all(struct communicator *c, int peer, long bytes)
{
    static char data[1 << 16];

    if (c->to[peer] < 0) {
        struct sockaddr_in address = address_of(peer, c->number);
        const int one = 1;

        for (int i = 0; i < 2000; i++) {
            c->to[peer] = socket(AF_INET, SOCK_STREAM, 0);
            if (!connect(c->to[peer], (struct sockaddr *)&address, sizeof address)) break;
            close(c->to[peer]);
            c->to[peer] = -1;
            usleep(5000);
        }
        CHECK(c->to[peer] >= 0);
        CHECK(!setsockopt(c->to[peer], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        CHECK(write(c->to[peer], &rank, sizeof rank) == sizeof rank);
    }
    for (long done = 0; done < bytes;) {
        const ssize_t now =
            write(c->to[peer], data, (size_t)(bytes - done < (long)sizeof data ? bytes - done : (long)sizeof data));

        CHECK(now > 0);
        done += now;
    }
    c->sent[peer] += bytes;
}

static void read_all(struct communicator *c, int peer, long bytes)
{
    char data[4096];

    while (c->from[peer] < 0) {
        const int connection = accept(c->listener, NULL, NULL);
        int other;

        CHECK(connection >= 0 && read(connection, &other, sizeof other) == sizeof other);
        c->from[other] = connection;
    }
    for (long done = 0; done < bytes;) {
        const ssize_t now =
            read(c->from[peer], data, (size_t)(bytes - done < (long)sizeof data ? bytes - done : (long)sizeof data));

        CHECK(now > 0);
        done += now;
    }
    c->received[peer] += bytes;
}

/* -- events of every version --------------------------------------------------------------------------------------- */

/* A buffer for an event, filled with arbitrary bytes, because narrow members must not be read as wide members. */
union event {
    struct ibp_nccl_event_1 v1;
    struct ibp_nccl_event_2 v2;
    struct ibp_nccl_event_3 v3;
    struct ibp_nccl_event_4 v4;
    struct ibp_nccl_event_5 v5;
    char bytes[256];
};

static void *start(void *context, union event *event, unsigned type, void *parent)
{
    void *handle = (void *)-1;

    if (version < 5)
        event->v1.type = (uint8_t)type;
    else
        event->v5.type = type;
    event->v1.parent = parent;
    event->v1.rank = rank;
    CHECK(!plugin->start(context, &handle, event));
    CHECK(handle != (void *)-1);
    return handle;
}

static void stop(void *handle)
{
    if (handle) CHECK(!plugin->stop(handle));
}

static void record(void *handle, int state, size_t bytes, int steps_done)
{
    union {
        struct {
            size_t bytes;
            int steps;
        } op;
        char room[64];
    } arguments = {.op = {bytes, steps_done}};

    if (handle) CHECK(!plugin->record(handle, state, version < 4 && state > 7 ? NULL : &arguments));
}

static const char *text(const char *given)
{
    return is_null ? NULL : given;
}

/* If requested, the first collectives are broadcasts from rank 0. */
static int is_broadcast(long number)
{
    return number < broadcasts;
}

static void *start_collective(struct communicator *c, long number, size_t count)
{
    union event event;
    static const char *const algorithms[] = {"TREE", "RING"};

    memset(&event, 0xaa, sizeof event);
#define WITH_COMMUNICATOR(v)                                                                                           \
    event.v.coll.name = text("world");                                                                                 \
    event.v.coll.communicator = 0x1234 + (uint64_t)c->number
#define COMMON(v)                                                                                                      \
    event.v.coll.sequence = (uint64_t)number;                                                                          \
    event.v.coll.count = count;                                                                                        \
    event.v.coll.root = 0;                                                                                             \
    event.v.coll.channels = (uint8_t)channels
#define TEXTS(v)                                                                                                       \
    event.v.coll.function = text(is_broadcast(number) ? "Broadcast" : "AllReduce");                                    \
    event.v.coll.datatype = text("ncclFloat32");                                                                       \
    event.v.coll.algorithm = text(algorithm);                                                                          \
    event.v.coll.protocol = text("SIMPLE")
    switch (version) {
    case 1:
        WITH_COMMUNICATOR(v1);
        COMMON(v1);
        event.v1.coll.function = is_null ? 255 : is_broadcast(number) ? 0 : 4;
        event.v1.coll.datatype = 7;
        event.v1.coll.algorithm = !strcmp(algorithm, algorithms[1]);
        event.v1.coll.protocol = 2;
        break;
    case 2:
        WITH_COMMUNICATOR(v2);
        COMMON(v2);
        TEXTS(v2);
        break;
    case 3:
        WITH_COMMUNICATOR(v3);
        COMMON(v3);
        TEXTS(v3);
        break;
    case 4:
        COMMON(v4);
        TEXTS(v4);
        break;
    default:
        COMMON(v5);
        TEXTS(v5);
        event.v5.coll.parent_group = NULL;
    }
    return start(c->context, &event, IBP_NCCL_COLL, NULL);
}

/* -- a proxy ------------------------------------------------------------------------------------------------------- */

struct operation {
    void *handle;
    int channel, peer, is_send;
    size_t bytes;
};

static void start_operation(struct communicator *c, struct operation *o, void *parent)
{
    union event event;

    memset(&event, 0xaa, sizeof event);
    event.v1.proxy_op = (struct ibp_nccl_proxy_op){getpid(), (uint8_t)o->channel, o->peer, steps, chunk, o->is_send};
    o->handle = start(c->context, &event, IBP_NCCL_PROXY_OP, parent);
    if (version >= 4) record(o->handle, IBP_NCCL_IN_PROGRESS, 0, 0);
}

static void *start_step(struct communicator *c, const struct operation *o, int number)
{
    union event event;

    memset(&event, 0xaa, sizeof event);
    event.v1.proxy_step.step = number;
    return start(c->context, &event, IBP_NCCL_PROXY_STEP, o->handle);
}

static void note_network(struct communicator *c, void *step, size_t bytes)
{
    struct ibp_nccl_net_ib_1 data = {.type = 1, .qp = {.device = rank % 2, .bytes = bytes}};
    union event event;

    if (version < 3 || !(mask & IBP_NCCL_NET_PLUGIN)) return;
    memset(&event, 0xaa, sizeof event);
    event.v3.net_plugin = (struct ibp_nccl_net_plugin){(IBP_NCCL_NET_IB << 16) | 1, &data};
    stop(start(c->context, &event, IBP_NCCL_NET_PLUGIN, step));
}

static void send_step(struct communicator *c, struct operation *o, int number)
{
    const size_t bytes = (size_t)chunk + (size_t)number;
    void *step = start_step(c, o, number);

    record(step, IBP_NCCL_SEND_GPU_WAIT, 0, 0);
    if (rank == late_rank) usleep((useconds_t)late_us);
    /* The GPU computes before a collective: all channels wait at once. */
    if (!number && !o->channel && (rank == compute_rank || compute_rank < 0)) usleep((useconds_t)compute_us);
    if (version >= 4)
        for (int i = 0; i < 3; i++) record(step, IBP_NCCL_SEND_PEER_WAIT, 77, 0);
    write_all(c, o->peer, (long)bytes);
    o->bytes += bytes;
    if (version < 4) record(o->handle, 2, version == 1 ? o->bytes - bytes : o->bytes, number + 1);
    record(step, IBP_NCCL_SEND_WAIT, bytes, 0);
    if (number == steps - 1 && !o->channel) usleep((useconds_t)wire_us);
    note_network(c, step, bytes);
    if (!strcmp(order, "parent-first") && number == steps - 1) stop(o->handle);
    stop(step);
    if (version < 4) record(o->handle, 3, o->bytes, number + 1);
}

static void receive_step(struct communicator *c, struct operation *o, int number)
{
    const size_t bytes = (size_t)chunk + (size_t)number;
    void *step = start_step(c, o, number);

    record(step, IBP_NCCL_RECV_WAIT, 0, 0);
    read_all(c, o->peer, (long)bytes);
    o->bytes += bytes;
    if (version < 4) record(o->handle, 5, o->bytes, number + 1);
    record(step, IBP_NCCL_RECV_FLUSH_WAIT, bytes, 0);
    record(step, IBP_NCCL_RECV_GPU_WAIT, 0, 0);
    stop(step);
}

/* Fill the operations of a ring, or of a binary tree, up and then down. In a broadcast nothing returns to the root. */
static int plan(struct operation *o, long number)
{
    int count = 0;

    for (int channel = 0; channel < channels; channel++) {
        if (!strcmp(algorithm, "RING")) { /* each channel first sends its data, whatever it receives */
            if (!is_broadcast(number) || rank < ranks - 1)
                o[count++] = (struct operation){.channel = channel, .peer = (rank + 1) % ranks, .is_send = 1};
            continue;
        }
        for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < ranks; child++)
            o[count++] = (struct operation){.channel = channel, .peer = child};
        if (rank) o[count++] = (struct operation){.channel = channel, .peer = (rank - 1) / 2, .is_send = 1};
        if (rank) o[count++] = (struct operation){.channel = channel, .peer = (rank - 1) / 2};
        for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < ranks; child++)
            o[count++] = (struct operation){.channel = channel, .peer = child, .is_send = 1};
    }
    for (int channel = 0; channel < channels && !strcmp(algorithm, "RING"); channel++)
        if (!is_broadcast(number) || rank)
            o[count++] = (struct operation){.channel = channel, .peer = (rank + ranks - 1) % ranks};
    return count;
}

static void *proxy(void *given)
{
    struct communicator *c = given;
    struct operation o[64 * 6];

    for (long number = 0; number < collectives; number++) {
        void *task = mask & IBP_NCCL_COLL ? start_collective(c, number, 1000) : NULL;
        const int count = ranks > 1 ? plan(o, number) : 0;

        stop(task); /* the host's part ends before the proxies begin */
        for (int i = 0; i < count; i++) start_operation(c, &o[i], task);
        for (int step = 0; step < steps; step++)
            for (int i = 0; i < count; i++)
                if (o[i].is_send)
                    send_step(c, &o[i], step);
                else
                    receive_step(c, &o[i], step);
        for (int i = 0; i < count; i++) stop(o[i].handle);
        if (!strcmp(order, "twice"))
            for (int i = 0; i < count; i++) stop(o[i].handle);
    }
    return NULL;
}

/* -- start, use in a forked child, and end ------------------------------------------------------------------------- */

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static void load(const char *path, int wanted)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    char name[32];

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(98);
    }
    for (version = wanted; version > 0 && !plugin; version -= !plugin) {
        snprintf(name, sizeof name, "ncclProfiler_v%d", version);
        plugin = dlsym(library, name);
    }
    CHECK(plugin && plugin->name);
}

static void begin(struct communicator *c)
{
    const uint64_t hash = 0x1234 + (uint64_t)c->number;
    int error;

    if (version < 4)
        error = plugin->init_1(&c->context, &mask);
    else if (version == 4)
        error = plugin->init_4(&c->context, &mask, text("world"), hash, 1, ranks, rank, logger);
    else
        error = plugin->init_5(&c->context, hash, &mask, text("world"), 1, ranks, rank, logger);
    CHECK(!error);
}

/* A forked child may call the plug-in with inherited handles. It must not change its parent's recording, nor hang. */
static void use_in_child(struct communicator *c)
{
    struct operation sent = {.peer = (rank + 1) % ranks, .is_send = 1};
    void *task = start_collective(c, 0, 1000);
    const pid_t child = (start_operation(c, &sent, task), fork());
    int status = 0;

    if (!child) {
        void *step = start_step(c, &sent, 0);

        record(step, IBP_NCCL_SEND_GPU_WAIT, 0, 0);
        record(step, IBP_NCCL_SEND_WAIT, 5000000, 0);
        stop(step);
        stop(sent.handle);
        stop(start_collective(c, 1, 1000));
        CHECK(!plugin->finalize(c->context));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    stop(sent.handle);
    stop(task);
}

static void print_bytes(const char *name, size_t offset)
{
    const char *comma = "";

    printf("\"%s\": {", name);
    for (int peer = 0; peer < ranks; peer++) {
        long sum = 0;

        for (int i = 0; i < communicators; i++) sum += ((long *)((char *)&all[i] + offset))[peer];
        if (sum) printf("%s\"%d\": %ld", comma, peer, sum);
        if (sum) comma = ", ";
    }
    printf("}");
}

static void read_option(const char *option)
{
    static const struct {
        const char *name;
        int *number;
        const char **text;
    } known[] = {{"channels", &channels, NULL},
                 {"steps", &steps, NULL},
                 {"chunk", &chunk, NULL},
                 {"collectives", &collectives, NULL},
                 {"communicators", &communicators, NULL},
                 {"before", &before, NULL},
                 {"null", &is_null, NULL},
                 {"late_us", &late_us, NULL},
                 {"late_rank", &late_rank, NULL},
                 {"compute_us", &compute_us, NULL},
                 {"compute_rank", &compute_rank, NULL},
                 {"wire_us", &wire_us, NULL},
                 {"broadcasts", &broadcasts, NULL},
                 {"algorithm", NULL, &algorithm},
                 {"ending", NULL, &ending},
                 {"order", NULL, &order}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i].name);

        if (strncmp(option, known[i].name, length) || option[length] != '=') continue;
        if (known[i].number) *known[i].number = atoi(option + length + 1);
        if (known[i].text) *known[i].text = option + length + 1;
        return;
    }
    CHECK(!"a known option");
}

static void find_addresses(void)
{
    const char *hosts = getenv("HARNESS_HOSTS");
    char list[4096], *rest = list;

    snprintf(list, sizeof list, "%s", hosts ? hosts : "");
    for (int i = 0; i < ranks; i++) {
        const char *host = hosts ? strsep(&rest, ",") : getenv("MASTER_ADDR");

        snprintf(addresses[i], sizeof addresses[i], "%s", host ? host : "127.0.0.1");
    }
}

int main(int count, char **arguments)
{
    pthread_t threads[COMMUNICATORS_MAX];

    CHECK(count >= 3);
    rank = atoi(getenv("RANK") ? getenv("RANK") : "0");
    ranks = atoi(getenv("WORLD_SIZE") ? getenv("WORLD_SIZE") : "1");
    for (int i = 3; i < count; i++) read_option(arguments[i]);
    CHECK(ranks <= RANKS_MAX && communicators <= COMMUNICATORS_MAX && channels <= 64);
    if (getenv("HARNESS_FORGET_RANK")) unsetenv("RANK"), unsetenv("WORLD_SIZE");
    find_addresses();
    load(arguments[1], atoi(arguments[2]));
    for (int i = 0; i < before; i++) {
        struct communicator ended = {.number = communicators + i};

        begin(&ended);
        CHECK(!plugin->finalize(ended.context));
    }
    for (int i = 0; i < communicators; i++) {
        all[i].number = i;
        if (ranks > 1) listen_at(&all[i]);
        begin(&all[i]);
    }
    for (int i = 0; i < communicators; i++) CHECK(!pthread_create(&threads[i], NULL, proxy, &all[i]));
    for (int i = 0; i < communicators; i++) pthread_join(threads[i], NULL);
    if (!strcmp(order, "fork")) use_in_child(&all[0]);
    printf("{\"rank\": %d, \"mask\": %d, \"version\": %d, ", rank, mask, version);
    print_bytes("sent", offsetof(struct communicator, sent));
    printf(", ");
    print_bytes("received", offsetof(struct communicator, received));
    printf("}\n");
    fflush(stdout);
    if (!strcmp(ending, "kill")) raise(SIGKILL);
    if (!strcmp(ending, "_exit")) _exit(0);
    if (!strcmp(ending, "finalize"))
        for (int i = 0; i < communicators; i++) CHECK(!plugin->finalize(all[i].context));
    return 0;
}
