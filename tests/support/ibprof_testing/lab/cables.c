// SPDX-License-Identifier: Apache-2.0
// Cables with a length: a frame enters an end, and leaves the other end a fixed time later.
//
//     cables NAMESPACE DEVICE NAMESPACE DEVICE MICROSECONDS  [...]
//
// An end is a TAP device in a network namespace. Linux has `tc netem` for such delays, but many virtual machines have
// kernels without `tc netem`. Prints "ready" when all devices exist. Ends and removes the devices when standard input
// is closed, so no cable outlives the process that started it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 5, MOST_CABLES = 64, LANES = 2 * MOST_CABLES, FRAMES = 512, FRAME_BYTES = 1536, BURST = 32 };
static const long long NS = 1000000000LL;

struct frame {
    long long due_ns;
    size_t bytes;
    unsigned char data[FRAME_BYTES];
};

// One direction of a cable: frames leave in the order of their arrival.
struct lane {
    int in, out;
    long long delay_ns;
    unsigned first, end; // never wrapped; the index in the ring is the value modulo FRAMES
    struct frame *ring;
};

static struct lane lanes[LANES];
static struct pollfd ends[LANES + 1];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS + now.tv_nsec;
}

static int open_end(const char *namespace, const char *device)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET)) fail(path);
    close(there);
    int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (end < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (ioctl(end, TUNSETIFF, &request)) fail(device);
    return end;
}

static void add_lane(int number, int in, int out, long long delay_ns)
{
    struct frame *ring = calloc(FRAMES, sizeof *ring);
    if (!ring) fail("ring");
    lanes[number] = (struct lane){in, out, delay_ns, 0, 0, ring};
    ends[number] = (struct pollfd){in, POLLIN, 0};
}

// If the lane is full, further frames stay in the device's own queue, as with a busy wire.
static void take_in(struct lane *lane)
{
    for (int count = 0; count < BURST && lane->end - lane->first < FRAMES; count++) {
        struct frame *frame = &lane->ring[lane->end % FRAMES];
        ssize_t bytes = read(lane->in, frame->data, FRAME_BYTES);
        if (bytes <= 0) return;
        frame->bytes = (size_t)bytes;
        frame->due_ns = now_ns() + lane->delay_ns;
        lane->end++;
    }
}

// Send the due frames; return when the next frame is due, at the latest `next_ns`.
static long long put_out(struct lane *lane, long long next_ns)
{
    while (lane->first != lane->end) {
        struct frame *frame = &lane->ring[lane->first % FRAMES];
        if (frame->due_ns > now_ns()) return frame->due_ns < next_ns ? frame->due_ns : next_ns;
        // A frame that the device does not take is lost, as on any network. TCP repeats lost frames.
        ssize_t sent = write(lane->out, frame->data, frame->bytes);
        (void)sent;
        lane->first++;
    }
    return next_ns;
}

static void run(int count)
{
    for (;;) {
        const long long never_ns = now_ns() + NS;
        long long next_ns = never_ns;
        for (int number = 0; number < count; number++) next_ns = put_out(&lanes[number], next_ns);
        long long wait_ns = next_ns - now_ns();
        if (wait_ns < 0) wait_ns = 0;
        struct timespec timeout = {wait_ns / NS, wait_ns % NS};
        for (int number = 0; number < count; number++) {
            const struct lane *lane = &lanes[number];
            ends[number].fd = lane->end - lane->first < FRAMES ? lane->in : -1;
        }
        if (ppoll(ends, (nfds_t)count + 1, &timeout, NULL) < 0 && errno != EINTR) fail("ppoll");
        if (ends[count].revents) return;
        for (int number = 0; number < count; number++)
            if (ends[number].revents) take_in(&lanes[number]);
    }
}

int main(int argc, char **argv)
{
    const int count = argc / WORDS;
    if (count < 1 || argc != count * WORDS + 1 || count > MOST_CABLES) {
        fprintf(stderr, "usage: cables NAMESPACE DEVICE NAMESPACE DEVICE MICROSECONDS  [...] (up to %d)\n",
                MOST_CABLES);
        return 2;
    }
    for (int cable = 0; cable < count; cable++) {
        char **words = argv + 1 + cable * WORDS;
        const int a = open_end(words[0], words[1]), b = open_end(words[2], words[3]);
        const long long delay_ns = (long long)(strtod(words[4], NULL) * 1000);
        add_lane(2 * cable, a, b, delay_ns);
        add_lane(2 * cable + 1, b, a, delay_ns);
    }
    ends[2 * count] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    prctl(PR_SET_TIMERSLACK, 1UL);
    mlockall(MCL_CURRENT);
    // Run before the ranks, since a wire waits for no processor. Without this right, delays vary more.
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1})) perror("sched_setscheduler");
    puts("ready");
    fflush(stdout);
    run(2 * count);
    return 0;
}
