/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording on disk: its only description. The preload library writes these structs through a shared mapping.
 * Python reads them with cffi from the text between the two marker lines, which therefore holds only plain structs,
 * enums and integer defines. docs/formats/recording.md explains the format.
 *
 * A file belongs to one host and one run and is made of
 *
 *     ibp_file_header | operation names | segment | segment | ...
 *
 * A segment begins on a multiple of IBP_PAGE_BYTES with an ibp_segment, followed by an array of records of one kind. It
 * belongs to one process, whose IBP_SEGMENT_PROCESS it names by offset. Segments are reserved by an atomic addition to
 * ibp_file_header.end_bytes, so processes never wait for each other. A page that was reserved but not filled when a
 * process was killed has no IBP_SEGMENT_MAGIC: a reader skips it, page by page.
 *
 * A segment states its kind, the version of its records and their size. A record changes only by growing at its end,
 * which raises its version; any other change takes a new kind. So a reader skips unknown kinds, ignores the rest of a
 * longer record, and reads the missing members of a shorter record as zeros.
 *
 * Numbers are in the byte order of the host, which byte_order shows. All times are nanoseconds of the Unix clock, all
 * sizes bytes. A record counts once ibp_segment.used includes it, and is never moved or removed.
 */
#ifndef IBPROF_RECORDING_H
#define IBPROF_RECORDING_H

#include <assert.h>
#include <stdint.h>

/* -- cffi begins -- */

#define IBP_FORMAT_VERSION 2
#define IBP_OLDEST_FORMAT_VERSION 1 /* version of ibprof 0.1.0 */
#define IBP_OLDEST_HEADER_BYTES 2976 /* size of its ibp_file_header */
#define IBP_PAGE_BYTES 4096
#define IBP_FILE_MAGIC 0x4352464f52504249    /* "IBPROFRC" in a file of a little-endian host */
#define IBP_SEGMENT_MAGIC 0x53504249             /* "IBPS" in the same byte order */
#define IBP_BYTE_ORDER 0x01020304
#define IBP_OPERATION_NAME_BYTES 32
#define IBP_TEXT_BYTES 256
#define IBP_REGION_NAME_BYTES 96
#define IBP_SIZE_BINS 65
#define IBP_PEER_UNKNOWN 0xffffffff
#define IBP_PATH_BYTES 1024
#define IBP_FLUSH_SECONDS 30 /* default of IBPROF_FLUSH */
#define IBP_SNAPSHOT_GROUPS 32
#define IBP_PEER_ADDRESS 0x80000000 /* a peer's number is this plus the index of an ibp_address of the process */
#define IBP_ADDRESS_BYTES 56
#define IBP_GIDS_PER_PORT 4
#define IBP_GID_BYTES 16
#define IBP_PORT_ACTIVE 4 /* value of ibp_port.state; PortInfo of InfiniBand defines the numbers */
#define IBP_GRID_DIMENSIONS 8
#define IBP_REGION_ALL 0xffffffff
#define IBP_REGION_OFF 0xfffffffe
#define IBP_SITE_UNKNOWN 0
#define IBP_SITE_OTHER 0xffffffff /* a site beyond IBP_SITES_MAX */
#define IBP_SITES_MAX 4096 /* maximum of one process */
#define IBP_FUNCTION_BYTES 96
#define IBP_BUILD_ID_BYTES 32
/* Partners of a demand that are not ranks. A group has this bit, its size from bit 40 on, and a hash of its members. */
#define IBP_PARTNER_GROUP 0x8000000000000000
#define IBP_PARTNER_SIZE_SHIFT 40
#define IBP_PARTNER_SIZE_MASK 0x7fffff
#define IBP_PARTNER_UNKNOWN 0xffffffffffffffff
#define IBP_PARTNER_FAILED 0xfffffffffffffffe /* calls that returned an error, to any partner */
#define IBP_NO_ROOT 0xffffffff
#define IBP_BYTES_UNKNOWN 0xffffffffffffffff
/* Maximum number of samples of each kind in a process. With their private tables they take at most 256 KiB. */
#define IBP_SAMPLES_MAX 672
#define IBP_LONGEST_MAX 256 /* additional samples of the longest collectives */
#define IBP_LEVEL_LONG 255 /* the level of these samples */

enum ibp_segment_kind {
    IBP_SEGMENT_PROCESS = 1,
    IBP_SEGMENT_PORTS = 2,
    IBP_SEGMENT_REGIONS = 3,
    IBP_SEGMENT_COUNTERS_OF_1 = 4, /* read from files of format version 1, never written */
    IBP_SEGMENT_SIZES_OF_1 = 5,    /* likewise */
    IBP_SEGMENT_MARKS = 6,
    IBP_SEGMENT_PAIRS = 7,
    IBP_SEGMENT_TRANSFERS = 8,
    IBP_SEGMENT_HARDWARE = 9,
    IBP_SEGMENT_ADDRESSES = 10,
    IBP_SEGMENT_SNAPSHOTS = 11,
    IBP_SEGMENT_LAUNCH = 12,
    IBP_SEGMENT_GRIDS = 13,
    IBP_SEGMENT_ORIGINS = 14,
    IBP_SEGMENT_COUNTERS = 15,
    IBP_SEGMENT_SIZES = 16,
    IBP_SEGMENT_DEMANDS = 17,
    IBP_SEGMENT_OBJECTS = 18,
    IBP_SEGMENT_SITES = 19,
    IBP_SEGMENT_TIMES = 20,
    IBP_SEGMENT_CHOICES = 21,
    IBP_SEGMENT_COLLECTIVE_SAMPLES = 22,
    IBP_SEGMENT_MESSAGE_SAMPLES = 23,
    IBP_SEGMENT_INTERFACES = 24,
    IBP_SEGMENT_TRANSPORTS = 25,
    IBP_SEGMENT_NCCL_COMMUNICATORS = 26,
    IBP_SEGMENT_NCCL_TASKS = 27,
    IBP_SEGMENT_NCCL_FLOWS = 28,
    IBP_SEGMENT_NCCL_SAMPLES = 29
};

/* Kinds of samples. */
enum ibp_instance { IBP_INSTANCE_COLLECTIVE = 0, IBP_INSTANCE_MESSAGE = 1, IBP_INSTANCES = 2 };

/* Reasons why collectives or messages could not be sampled. */
enum ibp_unsampled {
    /* The communicator has no name: it was spawned, connected, or created by a call that ibprof does not see. */
    IBP_UNSAMPLED_NO_NAME = 0,
    /* A table of communicators or requests was full. */
    IBP_UNSAMPLED_FULL = 1,
    /* The order of receives with wildcards is unknown, and therefore the number of the message. */
    IBP_UNSAMPLED_ORDER = 2,
    /* The completion was not observed. */
    IBP_UNSAMPLED_UNSEEN = 3,
    IBP_UNSAMPLED_REASONS = 4
};

/* The side of a message at which a sample was taken, or another relation of two processes. */
enum ibp_side {
    IBP_SIDE_SENDER = 0,
    IBP_SIDE_RECEIVER = 1,
    /* A call waits for a message without receiving it (MPI_Probe), or for a notifier. */
    IBP_SIDE_WAITER = 2,
    /* A call lets other processes continue: MPI_Win_post, MPI_Win_complete. */
    IBP_SIDE_NOTIFIER = 3,
    /* Not a message, and without times: this process receives from the peer in neighbourhood collectives. Each process
     * also has such a record with itself as the peer, so that a process without sources has one too. */
    IBP_SIDE_SOURCE = 4
};

/* The layer at which bytes were counted. Bytes of different sources describe the same traffic and are never added. */
enum ibp_source {
    IBP_SOURCE_NONE = 0,
    /* Open MPI's table of point-to-point calls: payload, by rank. */
    IBP_SOURCE_OPENMPI = 1,
    /* UCP calls: payload and MPI's own headers, by rank. */
    IBP_SOURCE_UCX = 2,
    /* libfabric calls: payload and MPI's own headers, by rank. */
    IBP_SOURCE_LIBFABRIC = 3,
    /* Work requests: wire payload including all headers above InfiniBand's, by port. */
    IBP_SOURCE_VERBS = 4,
    /* Steps of the proxies of NCCL or RCCL: bytes that they pass to the network, by rank of a communicator. MPI does
     * not carry these bytes. */
    IBP_SOURCE_NCCL = 5
};

enum ibp_kind {
    /* Bytes that the application passes to MPI, or that a collective sends for the application. */
    IBP_KIND_USER = 0,
    /* Bytes that MPI sends to manage a transfer whose data are counted separately. */
    IBP_KIND_CONTROL = 1,
    /* Bytes of work requests: user data and headers, not distinguished. */
    IBP_KIND_WIRE = 2
};

/* Sent and fetched counters form the matrix. Received counters count the same bytes at the receiver, as a check. */
enum ibp_direction {
    /* This process sent them to the peer. */
    IBP_DIRECTION_SENT = 0,
    /* This process read them from the peer (MPI_Get, RDMA READ). The peer does not count them. */
    IBP_DIRECTION_FETCHED = 1,
    /* The peer sent them to this process. */
    IBP_DIRECTION_RECEIVED = 2
};

/* The operation of a work request, counted by the process that posts it. Sends and writes go to the remote port. Reads,
 * and results of atomic operations, come from the remote port. */
enum ibp_opcode { IBP_OPCODE_SEND = 0, IBP_OPCODE_WRITE = 1, IBP_OPCODE_READ = 2, IBP_OPCODE_ATOMIC = 3 };

enum ibp_mark_kind {
    /* Recording began. */
    IBP_MARK_START = 0,
    /* IBPROF_REGION() was called: `region` is the closed region. */
    IBP_MARK_CLOSE = 1,
    /* A named region was entered. */
    IBP_MARK_BEGIN = 2,
    /* A named region was left. */
    IBP_MARK_END = 3,
    /* Recording was switched off (MPI_Pcontrol(0), ibprof_off). */
    IBP_MARK_OFF = 4,
    /* Recording was switched on again. */
    IBP_MARK_ON = 5,
    /* MPI_Finalize. */
    IBP_MARK_STOP = 6
};

enum ibp_process_flags {
    /* MPI_Finalize was reached: the counters are complete. */
    IBP_PROCESS_FINALIZED = 1,
    /* IBPROF selects operations: the counters contain only these. */
    IBP_PROCESS_FILTERED = 2,
    /* The source also sees messages between ranks of one host. */
    IBP_PROCESS_SEES_HOST = 4,
    /* Calls are entered in IBP_SEGMENT_DEMANDS. */
    IBP_PROCESS_DEMANDS = 8
};

/* Reasons why a recording could not grow. */
enum ibp_full {
    IBP_NOT_FULL = 0,
    /* No space on the file system, or too many segments. */
    IBP_FULL_SPACE = 1,
    /* The file was no longer found at its path. */
    IBP_FULL_MOVED = 2,
    /* The file could not be opened again for another reason. */
    IBP_FULL_CLOSED = 3,
    /* The file could not be opened again because the program changed its user. */
    IBP_FULL_USER = 4
};

struct ibp_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    /* Offset of the first segment. */
    uint64_t segments_offset;
    /* First byte that is not reserved; grows by atomic addition. */
    uint64_t end_bytes;
    /* When the first process of this host began to record. */
    uint64_t start_ns;
    /* Number of operation names. They follow this header, IBP_OPERATION_NAME_BYTES each. */
    uint32_t operation_count;
    /* enum ibp_full: the first reason why a process could not add a segment. */
    uint32_t full;
    char host[256];
    /* The launcher's name of the job, the same on all its hosts; empty for a single process. */
    char job[256];
    /* IBPROF_RUN: the name of the run, set by `ibprof run`; empty without it. */
    char run[64];
    /* Identifier of this launch on this host. */
    char launch[256];
    char library_version[32];
    /* Used where IBPROF_OUTPUT is on a network file system, else empty. Processes then map a file on their node's own
     * storage. Each copies its segments to the recording from time to time and at its end. */
    /* The mapped file. */
    char storage[IBP_PATH_BYTES];
    /* The file in IBPROF_OUTPUT, with the same bytes at the same offsets. */
    char output[IBP_PATH_BYTES];
    /* Lower half: number of processes that joined. Upper half: number of processes that have copied all their data. The
     * halves are equal when all processes have finished. */
    uint64_t members;
    /* IBPROF_FLUSH: minimum time between two copies; 0 when only the last copy is made. */
    uint32_t flush_seconds;
    /* Size of this header, after which the operation names begin; 0 in format version 1. */
    uint32_t header_bytes;
};

struct ibp_segment {
    uint32_t magic;
    uint32_t kind; /* enum ibp_segment_kind */
    /* Offset of this segment in its file, for readers and as a check. */
    uint64_t offset;
    /* Size of the segment, including this header: a multiple of IBP_PAGE_BYTES. */
    uint64_t bytes;
    /* Offset of the process's IBP_SEGMENT_PROCESS. */
    uint64_t process;
    uint32_t record_bytes;
    /* Number of records that fit. */
    uint32_t capacity;
    /* Number of valid records, published last. */
    uint32_t used;
    /* Version of the records: 1 for a kind's first form; 0 in format version 1. */
    uint32_t version;
};

/* The only record of an IBP_SEGMENT_PROCESS. */
struct ibp_process {
    uint32_t pid;
    uint32_t flags; /* enum ibp_process_flags */
    /* Meaningless where world_size is 0. */
    uint32_t world_rank;
    /* 0 where MPI was not initialised: the process posted work requests. */
    uint32_t world_size;
    /* The level that MPI provides, from 0 (single) to 3 (multiple). */
    uint32_t thread_level;
    uint32_t source; /* enum ibp_source of the counters; none where only transfers were recorded */
    uint64_t start_ns;
    /* 0 until MPI_Finalize. */
    uint64_t stop_ns;
    /* Sent user bytes not counted by peer: no space was left for another counter. */
    uint64_t lost_bytes;
    uint64_t lost_messages;
    /* Number of marks; IBP_SEGMENT_MARKS keeps the first of them. */
    uint64_t marks_seen;
    /* Regions beyond the limit of names or of depth: their traffic counts in the enclosing region. */
    uint64_t regions_refused;
    /* Time during which recording was switched off. */
    uint64_t off_ns;
    /* Bytes of work requests without a record: no space was left. */
    uint64_t transfers_lost_bytes;
    uint64_t transfers_lost_messages;
    /* The open region. Bytes that no IBP_SEGMENT_TRANSFERS assigns to a region belong to it. */
    uint32_t transfers_region;
    /* Queue pairs that were created for posting outside of verbs and have not posted through verbs. */
    uint32_t queue_pairs_unseen;
    /* When the last copy of this process to the output began; 0 where the process maps the output. */
    uint64_t copy_begun_ns;
    /* When that copy was complete. While the two times differ, the copy mixes two moments. */
    uint64_t copied_ns;
    /* Redo log of closing a region. While redo_from is not 0, redo_bytes and redo_messages replace the values of
     * counter number redo_into (from 1, in the order of the segments). Counter number redo_from then counts as empty.
     * The same holds for demands and their calls, if redo_kind selects them. */
    uint32_t redo_from;
    uint32_t redo_into;
    uint64_t redo_bytes;
    uint64_t redo_messages;
    /* The first line of MPI_Get_library_version. */
    char mpi[IBP_TEXT_BYTES];
    /* The program and its arguments, cut to fit. */
    char command[IBP_TEXT_BYTES];
    /* IBPROF as given; empty when all operations are recorded. */
    char operations[1024];
    /* Traffic that this process could not see, one sentence a line. */
    char notes[1024];
    /* Since version 2. Kind of the records that the redo log numbers; 0 for counters. */
    uint32_t redo_kind; /* enum ibp_segment_kind */
    /* Since version 3. Mean number of calls that one sampled call stands for (ibp_time); 0 where times are not
     * recorded. */
    uint32_t times_weight;
    /* The clock of times at two moments, the second as late as possible, and the Unix clock at these moments. */
    uint64_t clock_ticks[2];
    uint64_t clock_ns[2];
    /* Since version 4. With several threads in MPI: ticks during which at least one thread was inside a call, calls
     * that never returned included. The sum of the calls' times exceeds this value where calls overlap. 0 where at most
     * one thread is in MPI. */
    uint64_t busy_ticks;
    /* Since version 5. The clock of samples (CLOCK_MONOTONIC) at the start and, as late as possible, at the end of
     * recording, and the Unix clock at these moments. */
    uint64_t sample_clock_ns[2];
    uint64_t sample_unix_ns[2];
    /* By enum ibp_instance: number of collectives, and of messages sent or received, sampled or not. */
    uint64_t instances[IBP_INSTANCES];
    /* The largest level of a sample. */
    uint64_t level[IBP_INSTANCES];
    /* Instances that could not be sampled, by reason. */
    uint64_t unsampled[IBP_INSTANCES][IBP_UNSAMPLED_REASONS];
    /* Since version 6. CPU time of the process from the start of recording to MPI_Finalize, and the time for which its
     * first thread was ready to run but had no core. 0 before MPI_Finalize, and where the kernel does not count. */
    uint64_t cpu_ns;
    uint64_t no_core_ns;
    /* Since version 7. All collectives with a score above this value have a sample; 0 where all collectives have
     * one. */
    uint64_t long_ns;
};

/* A port of an InfiniBand or RoCE device of this host. Recorded once a host, in the first process that records. */
struct ibp_port {
    char device[64];
    uint32_t port;
    /* 0 without a LID (Ethernet). */
    uint32_t lid;
    uint32_t lmc;
    /* IBP_PORT_ACTIVE, or another state. */
    uint32_t state;
    uint64_t node_guid;
    /* The lower half of the first GID. */
    uint64_t port_guid;
    double rate_gbps;
    char link_layer[32];
    char gids[IBP_GIDS_PER_PORT][40];
    /* Since version 2. The device's PCI function, such as 0000:3b:00.0; empty if there is none. */
    char pci[32];
    /* -1 where the kernel does not know it. */
    int32_t numa_node;
    uint32_t reserved;
    /* Cores near the device in the kernel's format, such as 0-15,64-79; empty where unknown. */
    char near_cores[256];
    /* Since version 3. Lanes of the link, such as 4 for "100 Gb/sec (4X EDR)"; 0 where unknown. */
    uint32_t width;
    /* Lanes of the PCI link, and lanes of the device; their rates in GT/s. 0 where unknown. */
    uint32_t pci_width;
    uint32_t pci_width_max;
    uint32_t reserved_3;
    double pci_gts;
    double pci_gts_max;
};

/* A network interface of this host. Recorded once a host, like its ports. */
struct ibp_interface {
    char name[32];
    /* The InfiniBand or RoCE device of the interface; empty if there is none. */
    char device[64];
    /* Linux's number of the hardware type: 1 is Ethernet, 32 InfiniBand, 772 the loopback. */
    uint32_t type;
    uint32_t mtu;
    /* -1 where unknown. */
    int32_t speed_mbps;
    int32_t numa_node;
    uint32_t is_up;
    /* 0 for pairs of virtual interfaces and bridges: their speed has no meaning. */
    uint32_t is_physical;
};

/* A transport that a process had open when it ended MPI, by kind and device. */
struct ibp_transport {
    /* tcp; verbs, psm, cxi, knem or xpmem for a device file; library for a loaded library. */
    char kind[16];
    /* An interface for tcp, else a device or library; empty where unknown. */
    char device[64];
    /* Connections, open files, or loaded objects. */
    uint32_t handles;
    /* Shortest round trip of the connections so far; 0 where unknown. */
    uint32_t min_rtt_us;
    /* Bytes of the connections, which may include data other than MPI messages. 0 where the kernel does not count
     * them. */
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t segments;
    uint64_t retransmitted;
};

/* A setting that determines which adapters a process uses. */
struct ibp_choice {
    /* A variable of the environment, or one of three names. IBP_CHOICE_CORES: the cores that the process may run on,
     * such as 0-15,64-79. IBP_CHOICE_ONLINE: the cores of its machine, if they differ. IBP_CHOICE_BOOT: the kernel's
     * boot identifier, equal in all containers of a machine. */
    char name[64];
    char text[448];
};

struct ibp_region {
    char name[IBP_REGION_NAME_BYTES];
    uint64_t visits;
    /* Time spent in the region, including inner regions. */
    uint64_t wall_ns;
    /* When the region was first entered. */
    uint64_t first_ns;
    /* When the region was last left. */
    uint64_t last_ns;
};

/* The origin of traffic: an operation in a region, called at a site. Counters and other records refer to it by its
 * index in the process's origins, in the order of their segments. */
struct ibp_origin {
    /* Index into the process's regions, in the order of their segments. */
    uint32_t region;
    /* Index into the operation names of the file. */
    uint32_t operation;
    /* Number of the calling ibp_site, or IBP_SITE_UNKNOWN, or IBP_SITE_OTHER. */
    uint32_t site;
    uint32_t reserved;
};

enum ibp_object_kind {
    /* A program or library: its sites are addresses. */
    IBP_OBJECT_ELF = 0,
    /* A program's text, executed by an interpreter: its sites are lines. */
    IBP_OBJECT_SCRIPT = 1
};

/* A file from which a process called MPI. */
struct ibp_object {
    uint32_t kind; /* enum ibp_object_kind */
    uint32_t build_id_bytes;
    uint8_t build_id[IBP_BUILD_ID_BYTES];
    char path[IBP_PATH_BYTES];
};

/* A call site: a place in a program that called MPI. Sites are numbered from 1, in the order of their segments. */
struct ibp_site {
    /* Index into the process's objects. */
    uint32_t object;
    /* Line number in a script; 0 for a program or library. */
    uint32_t line;
    /* Return address of the call, as an address in the program or library; 0 for a script. */
    uint64_t address;
    /* Number of the site that called this site's function, if callers are recorded; IBP_SITE_OTHER beyond the limit; 0
     * without a caller. */
    uint32_t caller;
    uint32_t reserved;
    /* Function name in a script. */
    char function[IBP_FUNCTION_BYTES];
};

/* Bytes and messages to or from one peer. */
struct ibp_counter {
    uint32_t origin;
    /* Rank in MPI_COMM_WORLD, an address (IBP_PEER_ADDRESS), or IBP_PEER_UNKNOWN. */
    uint32_t peer;
    uint8_t kind; /* enum ibp_kind */
    uint8_t direction; /* enum ibp_direction */
    uint8_t source; /* enum ibp_source */
    uint8_t reserved;
    uint32_t reserved_too;
    uint64_t bytes;
    uint64_t messages;
};

/* Bytes that the calls of an origin asked MPI to move: a ledger, to compare the counters with.
 * docs/formats/recording.md defines the bytes of one call by its arguments; they are summed over the calls. */
struct ibp_demand {
    uint32_t origin;
    uint32_t reserved;
    /* Rank of the root or the peer in MPI_COMM_WORLD; or the group of the call's communicator (IBP_PARTNER_GROUP),
     * whose members are the ranks with demands of the same number. */
    uint64_t partner;
    uint64_t bytes;
    uint64_t calls;
};

/* Time inside the calls of an origin, in ticks of a clock whose rate ibp_process shows. Waits are timed, and so are all
 * calls that may take long. Of short calls, some chosen at random are timed. The time is `ticks` plus the process's
 * times_weight times `sampled_ticks`. If a process is killed while it closes a region, the times of one origin may
 * count twice. */
struct ibp_time {
    uint32_t origin;
    uint32_t reserved;
    /* Number of calls, including calls that have not returned. */
    uint64_t calls;
    /* Number of calls that were timed as a whole. */
    uint64_t timed;
    /* Ticks of timed calls, and of all waits inside other calls. */
    uint64_t ticks;
    /* Number of calls chosen at random; their ticks without those in `ticks`; the sum of the squares of these ticks. */
    uint64_t sampled;
    uint64_t sampled_ticks;
    double sampled_squares;
};

/* A counter in format version 1. */
struct ibp_counter_of_1 {
    uint32_t region;
    uint16_t operation;
    uint8_t kind;
    uint8_t direction;
    uint32_t peer;
    uint32_t source;
    uint64_t bytes;
    uint64_t messages;
};

/* A network address, where a source identifies peers by address: an address of this process, or of a process that it
 * sent to. The peer is the process that recorded the same address as its own, in this file or another host's. */
struct ibp_address {
    /* 1 for an address of this process. */
    uint32_t own;
    /* Length of the address. The record of a longer address ends in a hash of the whole address. */
    uint32_t bytes;
    uint8_t address[IBP_ADDRESS_BYTES];
};

/* Messages sent, by size: bin 0 counts empty messages, bin k messages of 2^(k-1) to 2^k - 1 bytes. */
struct ibp_sizes {
    uint32_t origin;
    uint8_t kind;
    uint8_t direction;
    uint16_t reserved;
    uint64_t messages[IBP_SIZE_BINS];
};

/* Sizes in format version 1. */
struct ibp_sizes_of_1 {
    uint32_t region;
    uint16_t operation;
    uint8_t kind;
    uint8_t direction;
    uint64_t messages[IBP_SIZE_BINS];
};

struct ibp_mark {
    uint64_t time_ns;
    uint32_t kind; /* enum ibp_mark_kind */
    uint32_t region;
    /* Totals of user data since the start; 0 at BEGIN and END, to keep these marks cheap. */
    uint64_t sent_bytes;
    uint64_t sent_messages;
    uint64_t received_bytes;
    uint64_t received_messages;
};

/* Two ports between which a process posted work requests: its own port and a remote port, as named by the path of a
 * queue pair or an address handle. On InfiniBand a port is a LID with path bits. It is a GID on Ethernet, and where the
 * path has a global header. */
struct ibp_pair {
    /* Device of this process; empty where it is unknown. The remote port is then unknown too. */
    char device[64];
    uint32_t port;
    /* 0 without a LID (Ethernet). */
    uint32_t lid;
    uint32_t remote_lid;
    uint32_t reserved;
    /* All zeros where the path has no GID. */
    uint8_t gid[IBP_GID_BYTES];
    uint8_t remote_gid[IBP_GID_BYTES];
};

/* Work requests posted between a pair of ports. The records of a (pair, opcode) with IBP_REGION_ALL add up to the
 * total. A record with a region is the region's share; a record with IBP_REGION_OFF was posted while recording was off.
 * The rest belongs to the open region, ibp_process.transfers_region. */
struct ibp_transfer {
    /* Index into the process's pairs, in the order of its segments. */
    uint32_t pair;
    /* Index of a region, IBP_REGION_ALL or IBP_REGION_OFF. */
    uint32_t region;
    uint32_t opcode; /* enum ibp_opcode */
    /* With IBP_REGION_ALL: number of the thread that adds to this record; 0 for several threads. */
    uint32_t writer;
    uint64_t bytes;
    uint64_t messages;
};

/* A counter of a port's hardware or driver: all traffic of all processes. */
struct ibp_hardware {
    char device[64];
    uint32_t port;
    /* 1 when `after` is valid. */
    uint32_t read_again;
    /* Name in sysfs; tx_bytes and rx_bytes are counters of an Ethernet port's network interface. Port 0 is an
     * interface, with its name in `device`. */
    char name[32];
    /* Value when the recording of the host began. */
    uint64_t before;
    /* Value when the process that began the recording ended. */
    uint64_t after;
};

/* Bytes and messages of user data that a process sent and fetched until a moment, by group of peers (IBPROF_INTERVAL).
 * The difference of two snapshots was sent between their moments. A process keeps a fixed number of snapshots. When all
 * records are used, every other snapshot is dropped and its record reused, so records are not in the order of time. */
struct ibp_snapshot {
    /* 0 in a dropped record. */
    uint64_t time_ns;
    /* Group g consists of group_ranks ranks from rank g * group_ranks on. The last group consists of all peers that are
     * not ranks. With 0, group g is the peer with the process's ibp_address g, and the last group is all other
     * peers. */
    uint32_t group_ranks;
    uint32_t reserved;
    uint64_t bytes[IBP_SNAPSHOT_GROUPS];
    uint64_t messages[IBP_SNAPSHOT_GROUPS];
    /* Since version 2. Sums of the process's ibp_time, including the elapsed part of a call that is timed as a whole. 0
     * where times are not recorded. */
    uint64_t ticks;
    uint64_t sampled_ticks;
};

/* A Cartesian grid of the program's ranks (MPI_Cart_create), and this process's coordinates on it. */
struct ibp_grid {
    /* Number of dimensions, up to IBP_GRID_DIMENSIONS; larger grids are not recorded. */
    uint32_t dimensions;
    /* One bit for each dimension. */
    uint32_t periodic;
    int32_t extent[IBP_GRID_DIMENSIONS];
    int32_t place[IBP_GRID_DIMENSIONS];
};

/* How the job was started, recorded by a host's first process: texts that name the job's hosts. A text that is longer
 * than a record continues in the next record of the same name, and ends where a record's text is not full. */
struct ibp_launch {
    /* A variable of the environment, or "command line" for the launcher's arguments, with 0x1f after each argument. */
    char name[64];
    uint8_t text[448];
};

/* A collective call of this process. All members of a communicator sample the same calls, chosen by a hash of
 * (communicator, number): docs/formats/recording.md. Times are nanoseconds of the process's clock of samples. */
struct ibp_collective_sample {
    /* The communicator's name, equal on all members; 0 in a free record. */
    uint64_t communicator;
    /* Number of the call among the calls on this communicator. */
    uint64_t number;
    /* Origins of the call that started the collective and of the call that completed it; equal for a blocking call. */
    uint32_t origin;
    uint32_t end_origin;
    /* One of 2^level calls of the same stratum is sampled. IBP_LEVEL_LONG: one of the longest calls. */
    uint32_t level;
    /* Number of processes in the communicator; in both groups of an intercommunicator. */
    uint32_t size;
    /* Number of this process in the communicator. */
    uint32_t member;
    /* A rank of the communicator; IBP_NO_ROOT for an operation without a root. */
    uint32_t root;
    /* Bytes as in ibp_demand; 0 where unknown. */
    uint64_t bytes;
    /* When the starting call was entered. */
    uint64_t start_ns;
    /* When the completing call was entered, and when it returned. */
    uint64_t enter_ns;
    uint64_t exit_ns;
    /* Since version 2. Duration of a blocking call, or the time from the previous collective's start to its own start,
     * whichever is longer: a late process does not wait long. 0 for other calls. */
    uint64_t score_ns;
};

/* A message that this process sent or received. The other side samples the same message. Partitioned messages of tag t
 * have the tag -2 - t. In the epochs of a window (MPI_Win_post and others), posts have tag 0 and completions tag 1. */
struct ibp_message_sample {
    /* Name of the communicator; 0 in a free record. */
    uint64_t communicator;
    /* Number of the message among the messages with this sender, receiver, communicator and tag. For a source: how many
     * records its graph has; 0 in recordings before 0.2.0. */
    uint64_t number;
    /* Origins of the call that posted the message and of the call that completed it. */
    uint32_t origin;
    uint32_t end_origin;
    uint32_t level;
    uint16_t side; /* enum ibp_side */
    /* Since version 2. Upper bound of the number of messages and collectives, sampled or not, that the completing call
     * completed; 0 where unknown. In version 1, the upper half of `side`, which is 0. */
    uint16_t completed;
    /* Rank of the other process in MPI_COMM_WORLD. */
    uint32_t peer;
    int32_t tag;
    /* IBP_BYTES_UNKNOWN where unknown. */
    uint64_t bytes;
    /* When the posting call was entered. */
    uint64_t post_ns;
    /* When the completing call was entered, and when it returned. */
    uint64_t enter_ns;
    uint64_t exit_ns;
};

/* A communicator of NCCL or RCCL, as known to one of its ranks in this process. */
struct ibp_nccl_communicator {
    /* The library's number of the communicator, equal on all of its ranks. */
    uint64_t hash;
    /* The program's name for it; empty if there is none. */
    char name[64];
    uint32_t rank;
    /* 0 where unknown: versions 1 to 3 of the interface lack them. */
    uint32_t ranks, nodes;
    /* Version of the profiler interface. */
    uint32_t interface;
    /* Unix time; `stop_ns` is 0 until the communicator ends. */
    uint64_t start_ns, stop_ns;
    /* The clock of ticks at two moments, the second as late as possible, and the Unix clock at these moments. */
    uint64_t clock_ticks[2];
    uint64_t clock_ns[2];
    /* Proxy operations without memory: no flow contains their steps. */
    uint64_t operations_lost;
    /* Only in the process's first record, which stands for operations of unknown communicators: ticks during which any
     * proxy was working. */
    uint64_t busy_ticks;
};

/* Collectives, sends or receives of one communicator, function, algorithm and protocol, in one region. */
struct ibp_nccl_task {
    /* Index into the process's communicators, in the order of their segments. */
    uint32_t communicator;
    /* Index into the process's regions. */
    uint32_t region;
    /* Names that the library uses; empty where unknown. */
    char function[24];
    char algorithm[16];
    char protocol[8];
    /* The largest number of channels of one of these tasks. */
    uint32_t channels;
    uint32_t reserved;
    uint64_t calls;
    /* Number of elements times their size, as passed to the calls; 0 for unknown types. */
    uint64_t bytes;
    /* Ticks during which a proxy worked on at least one of these tasks. */
    uint64_t busy_ticks;
};

/* Data that a proxy sent to, or received from, a rank of the task's communicator on one channel. Ticks are waiting
 * times, summed over the proxy operations. */
struct ibp_nccl_flow {
    /* Index into the process's tasks. */
    uint32_t task;
    /* Rank in the communicator, or IBP_PEER_UNKNOWN. */
    uint32_t peer;
    uint8_t channel;
    uint8_t is_send;
    uint16_t reserved;
    uint32_t reserved_too;
    /* A bit for each device that NCCL's InfiniBand transport reported. */
    uint64_t devices;
    uint64_t bytes;
    /* Network transfers. */
    uint64_t steps;
    uint64_t operations;
    /* Waiting until this process's GPU provided the data, or took them. */
    uint64_t gpu_ticks;
    /* Waiting until the receiver had space. */
    uint64_t peer_ticks;
    /* Waiting until the network had delivered; for a receive, also until the peer sent. */
    uint64_t network_ticks;
    /* Sends only: from the beginning of an operation until its first data came from the GPU. */
    uint64_t arrival_ticks;
};

/* A task's operations on one channel. In a ring all ranks that use the channel sample the same operations, chosen by a
 * hash of (communicator, channel, number). Times are Unix times. */
struct ibp_nccl_sample {
    /* Index into the process's tasks. */
    uint32_t task;
    uint8_t channel;
    /* One of 2^level operations is sampled. */
    uint8_t level;
    uint16_t reserved;
    /* Number of the operation, from 1, among those of rings in which all ranks send and receive, on this communicator
     * and channel in one direction. For other tasks among their sends on the channel. 0 in a free record. */
    uint64_t number;
    /* When the GPU provided the first data to send; 0 without a send. */
    uint64_t arrival_ns;
    /* When the last operation ended; 0 if none has. */
    uint64_t stop_ns;
};

/* -- cffi ends -- */

#define IBP_CHOICE_CORES "cores"
#define IBP_CHOICE_ONLINE "online"
#define IBP_CHOICE_BOOT "boot"
#define IBP_STATIC_ASSERT _Static_assert
IBP_STATIC_ASSERT(sizeof(struct ibp_segment) == 48, "a segment's header has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_origin) == 16, "an origin has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_counter) == 32, "a counter is half a cache line");
IBP_STATIC_ASSERT(sizeof(struct ibp_demand) == 32, "a demand is half a cache line");
IBP_STATIC_ASSERT(sizeof(struct ibp_sizes) == 528, "sizes have no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_counter_of_1) == 32, "as in format version 1");
IBP_STATIC_ASSERT(sizeof(struct ibp_sizes_of_1) == 528, "as in format version 1");
IBP_STATIC_ASSERT(sizeof(struct ibp_file_header) >= IBP_OLDEST_HEADER_BYTES, "a header only grows");
IBP_STATIC_ASSERT(sizeof(struct ibp_address) == 64, "an address has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_mark) == 48, "a mark has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_pair) == 112, "a pair of ports has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_transfer) == 32, "a transfer is half a cache line");
IBP_STATIC_ASSERT(sizeof(struct ibp_snapshot) == 544, "a snapshot has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_grid) == 72, "a grid has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_hardware) == 120, "a hardware counter has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_interface) == 120, "an interface has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_transport) == 120, "a transport has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_collective_sample) == 80, "a sample of a collective has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_message_sample) == 72, "a sample of a message has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_communicator) == 152, "a communicator has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_task) == 88, "a task has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_flow) == 80, "a flow has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_sample) == 32, "a sample of NCCL has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_region) == IBP_REGION_NAME_BYTES + 32, "a region has no padding");

#endif
