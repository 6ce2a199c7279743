/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The format of recordings. The preload library writes these structs through a shared mapping. Python reads recordings
 * with cffi, which parses the text between the two marker lines. That text may therefore contain only simple structs,
 * enums and integer constants. docs/formats/recording.md explains the format.
 *
 * A recording is a folder of files. A file belongs to one host and one run, and consists of
 *
 *     ibp_file_header | operation names | segment | segment | ...
 *
 * A segment begins at a multiple of IBP_PAGE_BYTES with an ibp_segment, followed by an array of records of one kind. A
 * segment belongs to one process, and contains the offset of the process's IBP_SEGMENT_PROCESS. Processes reserve
 * segments by an atomic addition to ibp_file_header.end_bytes, so processes never wait for each other. If a process was
 * killed before it filled a reserved segment, the segment lacks IBP_SEGMENT_MAGIC. Readers skip such a segment page by
 * page.
 *
 * A segment contains the kind, the version and the size of its records. If a kind of records changes, members are only
 * added at the end, and the version is incremented. Any other change needs a new kind. Readers skip unknown kinds,
 * ignore unknown members at the end of a record, and read missing members as zeros.
 *
 * Numbers have the host's byte order. The member `byte_order` shows this order. Unless stated otherwise, times are Unix
 * times in nanoseconds, and sizes are in bytes. A record is valid as soon as ibp_segment.used includes it. Valid
 * records are never moved or removed.
 */
#ifndef IBPROF_RECORDING_H
#define IBPROF_RECORDING_H

#include <assert.h>
#include <stdint.h>

/* -- cffi begins -- */

#define IBP_FORMAT_VERSION 2
#define IBP_OLDEST_FORMAT_VERSION 1 /* version of ibprof 0.1.0 */
#define IBP_OLDEST_HEADER_BYTES 2976 /* size of ibp_file_header in ibprof 0.1.0 */
#define IBP_PAGE_BYTES 4096
#define IBP_FILE_MAGIC 0x4352464f52504249    /* "IBPROFRC" in a file of a little-endian host */
#define IBP_SEGMENT_MAGIC 0x53504249             /* "IBPS" in a file of a little-endian host */
#define IBP_BYTE_ORDER 0x01020304
#define IBP_OPERATION_NAME_BYTES 32
#define IBP_TEXT_BYTES 256
#define IBP_REGION_NAME_BYTES 96
#define IBP_SIZE_BINS 65
#define IBP_PEER_UNKNOWN 0xffffffff
#define IBP_PATH_BYTES 1024
#define IBP_FLUSH_SECONDS 30 /* default of IBPROF_FLUSH */
#define IBP_SNAPSHOT_GROUPS 32
#define IBP_PEER_ADDRESS 0x80000000 /* a peer with this bit is the index of an ibp_address, not a rank */
#define IBP_ADDRESS_BYTES 56
#define IBP_GIDS_PER_PORT 4
#define IBP_GID_BYTES 16
#define IBP_PORT_ACTIVE 4 /* value of ibp_port.state; PortInfo of InfiniBand defines the numbers */
#define IBP_GRID_DIMENSIONS 8
#define IBP_REGION_ALL 0xffffffff
#define IBP_REGION_OFF 0xfffffffe
#define IBP_SITE_UNKNOWN 0
#define IBP_SITE_OTHER 0xffffffff /* a site beyond IBP_SITES_MAX */
#define IBP_SITES_MAX 4096 /* maximum number of sites of a process */
#define IBP_FUNCTION_BYTES 96
#define IBP_BUILD_ID_BYTES 32
/* Values of ibp_demand.partner that are not ranks. The value for a group: the bit IBP_PARTNER_GROUP, the group's size
 * from bit 40 on, and a hash of the members. */
#define IBP_PARTNER_GROUP 0x8000000000000000
#define IBP_PARTNER_SIZE_SHIFT 40
#define IBP_PARTNER_SIZE_MASK 0x7fffff
#define IBP_PARTNER_UNKNOWN 0xffffffffffffffff
#define IBP_PARTNER_FAILED 0xfffffffffffffffe /* partner of all calls that returned an error */
#define IBP_NO_ROOT 0xffffffff
#define IBP_BYTES_UNKNOWN 0xffffffffffffffff
/* Maximum number of samples of each kind in a process. Samples and their tables in private memory need at most 256 KiB,
 * plus 120 bytes for each open receive with wildcards. */
#define IBP_SAMPLES_MAX 572
#define IBP_LONGEST_MAX 192 /* for each kind of samples: maximum number of samples with the largest scores */
#define IBP_SOURCES_MAX 143 /* maximum number of IBP_SIDE_SOURCE records; each uses the space of one message sample */
#define IBP_LEVEL_LONG 255 /* value of `level` in samples that were recorded because of their score */

enum ibp_segment_kind {
    IBP_SEGMENT_PROCESS = 1,
    IBP_SEGMENT_PORTS = 2,
    IBP_SEGMENT_REGIONS = 3,
    IBP_SEGMENT_COUNTERS_OF_1 = 4, /* only in files of format version 1 */
    IBP_SEGMENT_SIZES_OF_1 = 5,    /* only in files of format version 1 */
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
    /* ibprof cannot identify a communicator with spawned or connected processes, or a communicator whose creation
     * ibprof did not see. */
    IBP_UNSAMPLED_NO_NAME = 0,
    /* A table of communicators or requests was full. */
    IBP_UNSAMPLED_FULL = 1,
    /* The sequence number of the message is unknown, because the order of receives with wildcards is unknown. */
    IBP_UNSAMPLED_ORDER = 2,
    /* ibprof did not see the completion of the collective or message. */
    IBP_UNSAMPLED_UNSEEN = 3,
    IBP_UNSAMPLED_REASONS = 4
};

/* The role of the sampled call. */
enum ibp_side {
    IBP_SIDE_SENDER = 0,
    IBP_SIDE_RECEIVER = 1,
    /* A call that waits for a message without receiving it (MPI_Probe), or for a notification by MPI_Win_post or
     * MPI_Win_complete. */
    IBP_SIDE_WAITER = 2,
    /* A call that ends a wait of other processes: MPI_Win_post, MPI_Win_complete. */
    IBP_SIDE_NOTIFIER = 3,
    /* No sample and no times: the record states that this process receives from the peer in neighbourhood collectives.
     * In one of these records of each communicator, the peer is this process. */
    IBP_SIDE_SOURCE = 4
};

/* The layer where bytes were counted. The comments name the counted bytes, and how the source identifies a peer.
 * Different sources may count the same traffic, so readers never add bytes of different sources. */
enum ibp_source {
    IBP_SOURCE_NONE = 0,
    /* Open MPI's table of point-to-point functions: payload, by rank. */
    IBP_SOURCE_OPENMPI = 1,
    /* UCP calls: payload and MPI's headers, by rank. */
    IBP_SOURCE_UCX = 2,
    /* libfabric calls: payload and MPI's headers, by rank. */
    IBP_SOURCE_LIBFABRIC = 3,
    /* Work requests: bytes by port, including the headers of all layers above InfiniBand. */
    IBP_SOURCE_VERBS = 4,
    /* NCCL or RCCL: bytes that proxies pass to the network, by rank of an NCCL communicator. MPI does not send these
     * bytes. */
    IBP_SOURCE_NCCL = 5
};

enum ibp_kind {
    /* Bytes that the application passes to MPI, or that a collective sends for the application. */
    IBP_KIND_USER = 0,
    /* Bytes of MPI's protocol, or of messages whose user data are counted separately. */
    IBP_KIND_CONTROL = 1,
    /* Bytes of work requests: user data and headers together. */
    IBP_KIND_WIRE = 2
};

/* The traffic matrix is the sum of sent and fetched bytes. Received bytes are the same bytes: the receiver counts them
 * too, as a check. */
enum ibp_direction {
    /* Bytes that this process sent to the peer. */
    IBP_DIRECTION_SENT = 0,
    /* Bytes that this process read from the peer (MPI_Get, RDMA READ). The peer does not count these bytes. */
    IBP_DIRECTION_FETCHED = 1,
    /* Bytes that the peer sent to this process. */
    IBP_DIRECTION_RECEIVED = 2
};

/* The operation of a work request. The process that posts the request counts it. Data of sends and writes go to the
 * remote port. Data of reads, and results of atomic operations, come from the remote port. */
enum ibp_opcode { IBP_OPCODE_SEND = 0, IBP_OPCODE_WRITE = 1, IBP_OPCODE_READ = 2, IBP_OPCODE_ATOMIC = 3 };

enum ibp_mark_kind {
    /* The start of the recording. */
    IBP_MARK_START = 0,
    /* A call of IBPROF_REGION(), which assigned the traffic since the previous call of IBPROF_REGION() to `region`. */
    IBP_MARK_CLOSE = 1,
    /* The entry of a named region. */
    IBP_MARK_BEGIN = 2,
    /* The end of a named region. */
    IBP_MARK_END = 3,
    /* The program switched recording off (MPI_Pcontrol(0), ibprof_off). */
    IBP_MARK_OFF = 4,
    /* The program switched recording on again. */
    IBP_MARK_ON = 5,
    /* MPI_Finalize. */
    IBP_MARK_STOP = 6
};

enum ibp_process_flags {
    /* Set if the process reached MPI_Finalize, so that the counters are complete. */
    IBP_PROCESS_FINALIZED = 1,
    /* Set if only the operations in IBPROF are counted. */
    IBP_PROCESS_FILTERED = 2,
    /* Set if the source also sees messages between ranks of one host. */
    IBP_PROCESS_SEES_HOST = 4,
    /* Set if the process has records of IBP_SEGMENT_DEMANDS. */
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
    /* The file could not be opened again because the process now runs as another user. */
    IBP_FULL_USER = 4
};

struct ibp_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    uint64_t segments_offset;
    /* Offset of the first byte that no process has reserved. Processes increase this offset by atomic additions. */
    uint64_t end_bytes;
    /* When the first process of this host began to record. */
    uint64_t start_ns;
    /* Number of operation names. The names follow this header; each name occupies IBP_OPERATION_NAME_BYTES bytes. */
    uint32_t operation_count;
    /* enum ibp_full: the first reason why a process could not add a segment. */
    uint32_t full;
    char host[256];
    /* The name that the launcher gave the job, equal on all hosts; empty for a single process. */
    char job[256];
    /* The value of IBPROF_RUN, which `ibprof run` sets to a name of the run; empty if IBPROF_RUN is not set. */
    char run[64];
    /* Identifier of this launch on this host. */
    char launch[256];
    char library_version[32];
    /* If IBPROF_OUTPUT is on a network file system, processes map a file on the storage of their node instead. Each
     * process copies its segments to `output` from time to time, and when the process ends. Otherwise, processes map
     * the file in IBPROF_OUTPUT, and `storage` and `output` are empty. */
    /* The mapped file. */
    char storage[IBP_PATH_BYTES];
    /* The file in IBPROF_OUTPUT, to which segments are copied at the same offsets. */
    char output[IBP_PATH_BYTES];
    /* Lower half: number of processes that have opened this file. Upper half: number of processes that have copied all
     * their data. The halves are equal when all processes have finished. */
    uint64_t members;
    /* IBPROF_FLUSH: minimum time between two copies; 0 if segments are copied only at the end. */
    uint32_t flush_seconds;
    /* Size of this header; 0 in format version 1. */
    uint32_t header_bytes;
};

struct ibp_segment {
    uint32_t magic;
    uint32_t kind; /* enum ibp_segment_kind */
    /* Offset of this segment in the file. */
    uint64_t offset;
    /* Size of the segment, including this header: a multiple of IBP_PAGE_BYTES. */
    uint64_t bytes;
    /* Offset of the process's IBP_SEGMENT_PROCESS. */
    uint64_t process;
    uint32_t record_bytes;
    /* Maximum number of records in the segment. */
    uint32_t capacity;
    /* Number of valid records. The process increments this number after it has set the members of a record. */
    uint32_t used;
    /* Version of the records, from 1; 0 in format version 1. */
    uint32_t version;
};

/* The only record of an IBP_SEGMENT_PROCESS. */
struct ibp_process {
    uint32_t pid;
    uint32_t flags; /* enum ibp_process_flags */
    /* Rank in MPI_COMM_WORLD, or the rank that the launcher gave. The rank has no meaning if world_size is 0. */
    uint32_t world_rank;
    /* Number of ranks. 0 if the process did not initialise MPI and has no rank from a launcher. */
    uint32_t world_size;
    /* The thread level that MPI provides, from 0 (MPI_THREAD_SINGLE) to 3 (MPI_THREAD_MULTIPLE). */
    uint32_t thread_level;
    uint32_t source; /* enum ibp_source of the counters; IBP_SOURCE_NONE if messages were not counted */
    uint64_t start_ns;
    /* 0 until MPI_Finalize. */
    uint64_t stop_ns;
    /* Sent user bytes that no counter of a peer contains, because the recording was full. */
    uint64_t lost_bytes;
    uint64_t lost_messages;
    /* Number of marks of this process. If there are too many marks, IBP_SEGMENT_MARKS contains only the first marks. */
    uint64_t marks_seen;
    /* How many times ibprof refused to enter a region, because of too many names or too deep nesting. The traffic of a
     * refused region counts for the enclosing region. */
    uint64_t regions_refused;
    /* Time during which recording was switched off. */
    uint64_t off_ns;
    /* Bytes of work requests. No record contains these bytes, because the recording was full. */
    uint64_t transfers_lost_bytes;
    uint64_t transfers_lost_messages;
    /* Index of the open region. If no record assigns a work request to a region, the request's bytes belong to the open
     * region. */
    uint32_t transfers_region;
    /* Number of queue pairs that permit posts without verbs, and have no posts through verbs so far. */
    uint32_t queue_pairs_unseen;
    /* When the process began its last copy of its segments to `output`. 0 before the first copy, and if `output` is
     * empty. */
    uint64_t copy_begun_ns;
    /* When the last complete copy began. If copy_begun_ns is later than this time, the process ended during a copy.
     * `output` then contains older and newer data. */
    uint64_t copied_ns;
    /* Redo log for moving a counter to another region. If redo_from is not 0, redo_bytes and redo_messages replace the
     * values of counter number redo_into, and counter number redo_from is empty. Counters are numbered from 1, in the
     * order of the segments. If redo_kind is IBP_SEGMENT_DEMANDS, the same applies to demands. */
    uint32_t redo_from;
    uint32_t redo_into;
    uint64_t redo_bytes;
    uint64_t redo_messages;
    /* The first line of MPI_Get_library_version. */
    char mpi[IBP_TEXT_BYTES];
    /* The program and its arguments, cut if they are too long. */
    char command[IBP_TEXT_BYTES];
    /* The value of IBPROF; empty if all operations are recorded. */
    char operations[1024];
    /* Notes on traffic that ibprof did not see in this process, one on each line. */
    char notes[1024];
    /* Since version 2. Kind of the records that the redo log changes; 0 for counters. */
    uint32_t redo_kind; /* enum ibp_segment_kind */
    /* Since version 3. One in `times_weight` calls, chosen at random, is timed (ibp_time); 0 if times are not
     * recorded. */
    uint32_t times_weight;
    /* Two pairs of simultaneous readings, of the clock of ticks and the Unix clock: one at the start of the recording,
     * one as late as possible. */
    uint64_t clock_ticks[2];
    uint64_t clock_ns[2];
    /* Since version 4. With several threads in MPI: ticks during which at least one thread was inside a call. Calls
     * that never returned are included. Otherwise 0. */
    uint64_t busy_ticks;
    /* Since version 5. Two pairs of simultaneous readings, of the clock of samples (CLOCK_MONOTONIC) and the Unix
     * clock: one at the start of the recording, one as late as possible. */
    uint64_t sample_clock_ns[2];
    uint64_t sample_unix_ns[2];
    /* For each ibp_instance: number of collectives, or number of messages sent or received, with or without a
     * sample. */
    uint64_t instances[IBP_INSTANCES];
    /* For each ibp_instance: the largest `level` in the records of samples, except for IBP_LEVEL_LONG. */
    uint64_t level[IBP_INSTANCES];
    /* For each ibp_instance and reason: number of collectives or messages that could not be sampled. */
    uint64_t unsampled[IBP_INSTANCES][IBP_UNSAMPLED_REASONS];
    /* Since version 6. CPU time of the process, and time in which its first thread was ready to run but had no core.
     * Both times begin with the recording and end at MPI_Finalize. `cpu_ns` and `no_core_ns` are 0 before MPI_Finalize,
     * or if the kernel does not measure the times. */
    uint64_t cpu_ns;
    uint64_t no_core_ns;
    /* Since version 7. Collectives with a score above this value have a sample. 0: all collectives have a sample. */
    uint64_t long_ns;
};

/* A port of an InfiniBand or RoCE device of this host. Only the first process of a host records ports. */
struct ibp_port {
    char device[64];
    uint32_t port;
    /* 0 if the port has no LID (Ethernet). */
    uint32_t lid;
    uint32_t lmc;
    /* The number of the port's state in PortInfo, such as IBP_PORT_ACTIVE. */
    uint32_t state;
    uint64_t node_guid;
    /* The lower half of the first GID. */
    uint64_t port_guid;
    double rate_gbps;
    char link_layer[32];
    char gids[IBP_GIDS_PER_PORT][40];
    /* Since version 2. The PCI address of the device, such as 0000:3b:00.0; empty if the device has no PCI function. */
    char pci[32];
    /* NUMA node of the device; -1 if the kernel does not know it. */
    int32_t numa_node;
    uint32_t reserved;
    /* Cores near the device, in the kernel's format, such as 0-15,64-79; empty if unknown. */
    char near_cores[256];
    /* Since version 3. Number of lanes of the link, such as 4 for "100 Gb/sec (4X EDR)"; 0 if unknown. */
    uint32_t width;
    /* `pci_width`, `pci_gts`: number of lanes of the device's PCI link, and rate in GT/s. `pci_width_max`,
     * `pci_gts_max`: the largest values that the device supports. 0 if unknown. */
    uint32_t pci_width;
    uint32_t pci_width_max;
    uint32_t reserved_3;
    double pci_gts;
    double pci_gts_max;
};

/* A network interface of this host. Only the first process of a host records interfaces. */
struct ibp_interface {
    char name[32];
    /* The InfiniBand or RoCE device of the interface; empty if the interface has no such device. */
    char device[64];
    /* Linux's number of the hardware type: 1 for Ethernet, 32 for InfiniBand, 772 for loopback. */
    uint32_t type;
    uint32_t mtu;
    /* -1 if unknown. */
    int32_t speed_mbps;
    int32_t numa_node;
    uint32_t is_up;
    /* 0 for virtual interfaces such as bridges, whose `speed_mbps` is not the speed of a link. */
    uint32_t is_physical;
};

/* A transport that the process used when MPI ended: its kind and device. */
struct ibp_transport {
    /* "tcp"; "verbs", "psm", "cxi", "knem" or "xpmem" for an open device file; "library" for a loaded library. */
    char kind[16];
    /* The network interface for "tcp"; otherwise the device or library. Empty if unknown. */
    char device[64];
    /* Number of connections, open files, or loaded libraries. */
    uint32_t handles;
    /* Shortest round trip time that the kernel measured on any TCP connection of this record; 0 if unknown. */
    uint32_t min_rtt_us;
    /* Bytes of the TCP connections, including data that are no MPI messages. 0 if the kernel does not count bytes. */
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t segments;
    uint64_t retransmitted;
};

/* A setting that affects which adapters a process uses. */
struct ibp_choice {
    /* Name of the setting: an environment variable, or one of three names. IBP_CHOICE_CORES: the cores on which the
     * process may run, such as 0-15,64-79. IBP_CHOICE_ONLINE: the cores of the machine; recorded if the process may not
     * run on all of these cores. IBP_CHOICE_BOOT: the kernel's identifier of the machine's boot, equal in all
     * containers of the machine. */
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

/* The origin of traffic: an operation, a region and a call site. Counters and other records refer to an origin by its
 * index in the process, in the order of segments. */
struct ibp_origin {
    /* Index of the region in the process, in the order of segments. */
    uint32_t region;
    /* Index of the operation's name in the file. */
    uint32_t operation;
    /* Number of the ibp_site (from 1), IBP_SITE_UNKNOWN or IBP_SITE_OTHER. */
    uint32_t site;
    uint32_t reserved;
};

enum ibp_object_kind {
    /* A program or library. Its sites are addresses. */
    IBP_OBJECT_ELF = 0,
    /* A script that an interpreter executes. Its sites are lines. */
    IBP_OBJECT_SCRIPT = 1
};

/* A program, library or script from which a process called MPI. */
struct ibp_object {
    uint32_t kind; /* enum ibp_object_kind */
    uint32_t build_id_bytes;
    uint8_t build_id[IBP_BUILD_ID_BYTES];
    char path[IBP_PATH_BYTES];
};

/* A call site: the address or line from which a program called MPI. Sites are numbered from 1, in the order of
 * segments. */
struct ibp_site {
    /* Index of the object among the objects of the process. */
    uint32_t object;
    /* Line number in a script; 0 for a program or library. */
    uint32_t line;
    /* Return address of the call, as an address in the program or library; 0 for a script. */
    uint64_t address;
    /* With IBPROF_CALLERS: number of the site that called the function which contains this site. IBP_SITE_OTHER if
     * there were too many sites; 0 without a caller. */
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

/* A demand: the bytes that the calls of an origin asked MPI to move. docs/formats/recording.md defines which bytes
 * follow from the arguments of a call. */
struct ibp_demand {
    uint32_t origin;
    uint32_t reserved;
    /* Rank of the root or the peer in MPI_COMM_WORLD, or the group of the communicator (IBP_PARTNER_GROUP). The members
     * of a group are all ranks that have demands with this partner. */
    uint64_t partner;
    uint64_t bytes;
    uint64_t calls;
};

/* Time inside the calls of an origin, in ticks. `clock_ticks` and `clock_ns` of ibp_process show the rate of ticks. All
 * waits, and all calls that may take long, are timed. Some of the other calls are chosen at random and timed. The
 * estimated time is ticks + times_weight * sampled_ticks, with times_weight of ibp_process. If a process is killed
 * while times are moved to another region, the times of one origin may count twice. */
struct ibp_time {
    uint32_t origin;
    uint32_t reserved;
    /* Number of calls, including calls that have not returned. */
    uint64_t calls;
    /* Number of calls that were timed from entry to return. */
    uint64_t timed;
    /* Ticks of calls that were timed from entry to return, plus ticks of the waits in all other calls. */
    uint64_t ticks;
    /* `sampled`: number of randomly chosen calls. `sampled_ticks`: ticks of these calls, without their waits (`ticks`
     * contains the waits). `sampled_squares`: sum over these calls of the squared ticks of the call. */
    uint64_t sampled;
    uint64_t sampled_ticks;
    double sampled_squares;
};

/* The form of ibp_counter in format version 1. */
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

/* A network address of this process, or of a peer to which this process sent messages. Addresses are recorded if the
 * source knows peers only by address. The address of a peer belongs to the process that recorded the same address with
 * `own` set. The record with `own` may be in another host's file. */
struct ibp_address {
    /* 1 for an address of this process; 0 for an address of a peer. */
    uint32_t own;
    /* Length of the address. If an address is too long, the record ends with a hash of the whole address. */
    uint32_t bytes;
    uint8_t address[IBP_ADDRESS_BYTES];
};

/* Number of sent messages by size. Bin 0 counts empty messages, bin k messages of 2^(k-1) to 2^k - 1 bytes. */
struct ibp_sizes {
    uint32_t origin;
    uint8_t kind;
    uint8_t direction;
    uint16_t reserved;
    uint64_t messages[IBP_SIZE_BINS];
};

/* The form of ibp_sizes in format version 1. */
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
    /* Totals of user data since the start. Totals are 0 in marks of IBP_MARK_BEGIN and IBP_MARK_END, because the
     * computation would take long. */
    uint64_t sent_bytes;
    uint64_t sent_messages;
    uint64_t received_bytes;
    uint64_t received_messages;
};

/* A port of this host and a remote port, between which a process posted work requests. The path of a queue pair or
 * address handle names these ports. On Ethernet, and on paths with a global header, GIDs identify the ports. On other
 * paths, LIDs with path bits identify the ports. */
struct ibp_pair {
    /* Device on this host. If the name is empty, the device and the remote port are unknown. */
    char device[64];
    uint32_t port;
    /* 0 if the port has no LID (Ethernet). */
    uint32_t lid;
    uint32_t remote_lid;
    uint32_t reserved;
    /* Both GIDs are zeros if the path has no GID. */
    uint8_t gid[IBP_GID_BYTES];
    uint8_t remote_gid[IBP_GID_BYTES];
};

/* Work requests between a pair of ports. For a pair and an opcode, the total is the sum of the records with
 * IBP_REGION_ALL. A record with a region contains the bytes of this region. A record with IBP_REGION_OFF contains the
 * bytes that were posted while recording was off. The rest of the total belongs to the open region,
 * ibp_process.transfers_region. */
struct ibp_transfer {
    /* Index into the process's pairs, in the order of its segments. */
    uint32_t pair;
    /* Index of a region, IBP_REGION_ALL or IBP_REGION_OFF. */
    uint32_t region;
    uint32_t opcode; /* enum ibp_opcode */
    /* With IBP_REGION_ALL: the number of the thread that adds to this record; 0 if several threads add. */
    uint32_t writer;
    uint64_t bytes;
    uint64_t messages;
};

/* A counter of a port's hardware or driver. The counter includes the traffic of all processes. */
struct ibp_hardware {
    char device[64];
    uint32_t port;
    /* 1 when `after` is valid. */
    uint32_t read_again;
    /* Name in sysfs. tx_bytes and rx_bytes are counters of an Ethernet port's network interface. If `port` is 0,
     * `device` is the name of a network interface. */
    char name[32];
    /* Value when the recording on this host began. */
    uint64_t before;
    /* Value when the process that created the file ended. */
    uint64_t after;
};

/* A snapshot (IBPROF_INTERVAL): for each group of peers, the user data that a process has sent and fetched so far. The
 * difference of two snapshots is the traffic from the first snapshot to the second. A process keeps a limited number of
 * snapshots. When all records are used, ibprof drops every second snapshot and reuses the records. So records are not
 * sorted by time. */
struct ibp_snapshot {
    /* 0 if the snapshot was dropped. */
    uint64_t time_ns;
    /* Group g contains group_ranks ranks, from rank g * group_ranks on. The last group contains all peers that are not
     * ranks. If group_ranks is 0, group g is the peer with ibp_address number g, and the last group contains all other
     * peers. */
    uint32_t group_ranks;
    uint32_t reserved;
    uint64_t bytes[IBP_SNAPSHOT_GROUPS];
    uint64_t messages[IBP_SNAPSHOT_GROUPS];
    /* Since version 2. Sums over all ibp_time of the process. Calls in progress are included with their elapsed time.
     * Without recorded times: 0. */
    uint64_t ticks;
    uint64_t sampled_ticks;
};

/* A Cartesian grid of ranks (MPI_Cart_create), and the coordinates of this process. */
struct ibp_grid {
    /* Grids with more than IBP_GRID_DIMENSIONS dimensions are not recorded. */
    uint32_t dimensions;
    /* Bit d is set if dimension d is periodic. */
    uint32_t periodic;
    int32_t extent[IBP_GRID_DIMENSIONS];
    int32_t place[IBP_GRID_DIMENSIONS];
};

/* A text that contains names of the job's hosts: an environment variable, or the launcher's command line. Only the
 * first process of a host records these texts. A long text continues in the next record with the same name. */
struct ibp_launch {
    /* Name of an environment variable, or "command line" for the launcher's arguments. Each argument ends with 0x1f. */
    char name[64];
    uint8_t text[448];
};

/* A sample of a collective call of this process. All members of a communicator sample the same calls, chosen by a hash
 * of (communicator, number); see docs/formats/recording.md. Times are nanoseconds of the process's clock of samples. */
struct ibp_collective_sample {
    /* A hash that identifies the communicator, equal on all members; 0 if the record is free. */
    uint64_t communicator;
    /* Sequence number of the call on this communicator. */
    uint64_t number;
    /* `origin`: origin of the call that started the collective. `end_origin`: origin of the call that completed the
     * collective. For a blocking call, both origins are equal. */
    uint32_t origin;
    uint32_t end_origin;
    /* One of 2^level calls of the same stratum is sampled. All calls of a stratum have the same operation, class of
     * message size and class of communicator size. IBP_LEVEL_LONG: sampled because its score is one of the largest. */
    uint32_t level;
    /* Number of processes in the communicator, including both groups of an intercommunicator. */
    uint32_t size;
    /* Index of this process among the `size` processes of the communicator. */
    uint32_t member;
    /* The root's rank in the communicator; IBP_NO_ROOT if the operation has no root. */
    uint32_t root;
    /* Bytes of the call, counted as in ibp_demand; 0 if unknown. */
    uint64_t bytes;
    /* When the starting call was entered. */
    uint64_t start_ns;
    /* When the completing call was entered, and when it returned. */
    uint64_t enter_ns;
    uint64_t exit_ns;
    /* Since version 2. Score of a blocking call: its duration or, if longer, the time from the entry of the previous
     * collective to the entry of this call. So calls of a late process, which does not wait, have high scores too.
     * Other calls have the score 0. */
    uint64_t score_ns;
};

/* A sample of a message that this process sent or received. The peer samples the same message. A partitioned message
 * with tag t is recorded with tag -2 - t. For epochs of a window, the notification by MPI_Win_post has tag 0, and the
 * notification by MPI_Win_complete has tag 1. */
struct ibp_message_sample {
    /* A hash that identifies the communicator, equal on all members; 0 if the record is free. */
    uint64_t communicator;
    /* Sequence number of the message in its envelope (sender, receiver, communicator, tag). For IBP_SIDE_SOURCE: number
     * of records with this side and `communicator` in the process; 0 in recordings before 0.2.0. */
    uint64_t number;
    /* `origin`: origin of the call that posted the message. `end_origin`: origin of the call that completed the
     * message. */
    uint32_t origin;
    uint32_t end_origin;
    uint32_t level;
    uint16_t side; /* enum ibp_side */
    /* Since version 2. Upper bound on the number of messages and collectives, sampled or not, that the completing call
     * completed; 0 if unknown. In version 1, this member was the upper half of `side`, and always 0. */
    uint16_t completed;
    /* Rank of the other process in MPI_COMM_WORLD. */
    uint32_t peer;
    int32_t tag;
    /* Size of the message, or IBP_BYTES_UNKNOWN. */
    uint64_t bytes;
    /* When the posting call was entered. */
    uint64_t post_ns;
    /* When the completing call was entered, and when it returned. */
    uint64_t enter_ns;
    uint64_t exit_ns;
    /* Since version 2. The duration of the completing call or, if longer, the longest pause so far between two
     * successive posts of the message's round. A round ends when the envelope of its first message occurs again, or
     * after 64 further messages. The score is 0 if any message with this message's envelope was not timed. */
    uint64_t score_ns;
};

/* A communicator of NCCL or RCCL, recorded for each of its ranks in this process. */
struct ibp_nccl_communicator {
    /* The number that NCCL gave the communicator, equal on all of its ranks. */
    uint64_t hash;
    /* The name that the program gave the communicator; empty without a name. */
    char name[64];
    uint32_t rank;
    /* 0 if unknown, as in versions 1 to 3 of the interface. */
    uint32_t ranks, nodes;
    /* Version of the profiler interface. */
    uint32_t interface;
    /* When the communicator began and ended; `stop_ns` is 0 until its end. */
    uint64_t start_ns, stop_ns;
    /* Two pairs of simultaneous readings, of the clock of ticks and the Unix clock: one at the start of the
     * communicator, one as late as possible. */
    uint64_t clock_ticks[2];
    uint64_t clock_ns[2];
    /* Number of proxy operations that were not recorded, because no space was left. No ibp_nccl_flow contains their
     * steps. */
    uint64_t operations_lost;
    /* Ticks during which at least one proxy operation of the process was in progress. Set only in the first record of a
     * process. The first record also counts the operations of unknown communicators. */
    uint64_t busy_ticks;
};

/* A task: all collectives, sends or receives with the same communicator, function, algorithm, protocol and region. */
struct ibp_nccl_task {
    /* Index of the NCCL communicator in the process, in the order of segments. */
    uint32_t communicator;
    /* Index of the region among the regions of the process. */
    uint32_t region;
    /* Names of function, algorithm and protocol, as NCCL or RCCL reports them; a name is empty if unknown. */
    char function[24];
    char algorithm[16];
    char protocol[8];
    /* Maximum over the task's calls of the number of channels that the call used. */
    uint32_t channels;
    uint32_t reserved;
    uint64_t calls;
    /* Sum over the calls of (number of elements * size of an element); 0 for unknown types. */
    uint64_t bytes;
    /* Ticks during which at least one proxy operation of this task was in progress. */
    uint64_t busy_ticks;
};

/* A flow: the data of one task and channel that a proxy sent to, or received from, one rank. Ticks are sums of the
 * waiting times of the flow's proxy operations. */
struct ibp_nccl_flow {
    /* Index into the process's tasks. */
    uint32_t task;
    /* Rank in the communicator, or IBP_PEER_UNKNOWN. */
    uint32_t peer;
    uint8_t channel;
    uint8_t is_send;
    uint16_t reserved;
    uint32_t reserved_too;
    /* A bit for each device that NCCL's InfiniBand transport reported; bit 63 for all devices from 63 on. */
    uint64_t devices;
    uint64_t bytes;
    /* Number of network transfers. */
    uint64_t steps;
    uint64_t operations;
    /* Sends: time that operations waited until the GPU of this process provided the data. Receives: until this GPU took
     * the data. */
    uint64_t gpu_ticks;
    /* Time that operations waited until the receiver had free buffers. */
    uint64_t peer_ticks;
    /* Time that operations waited until the network transferred the data. Receives: includes the time until the peer
     * sent the data. */
    uint64_t network_ticks;
    /* Only for sends: time from the start of an operation to the first data from the GPU. */
    uint64_t arrival_ticks;
};

/* A sample of a task's proxy operations on one channel. In a ring, all ranks that use the channel sample the same
 * operations, chosen by a hash of (communicator, channel, number). */
struct ibp_nccl_sample {
    /* Index into the process's tasks. */
    uint32_t task;
    uint8_t channel;
    /* One of 2^level operations is sampled. */
    uint8_t level;
    uint16_t reserved;
    /* Sequence number of the operation, from 1; 0 if the record is free. Each channel of a communicator has three
     * sequences: receives of full rings, sends of full rings, and sends of all other tasks. In a full ring, all ranks
     * send and receive. */
    uint64_t number;
    /* When the GPU provided the first data to send; 0 if nothing was sent. */
    uint64_t arrival_ns;
    /* When the last of the sampled operations ended; 0 if no operation has ended. */
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
IBP_STATIC_ASSERT(sizeof(struct ibp_message_sample) == 80, "a sample of a message has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_communicator) == 152, "a communicator has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_task) == 88, "a task has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_flow) == 80, "a flow has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_nccl_sample) == 32, "a sample of NCCL has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_region) == IBP_REGION_NAME_BYTES + 32, "a region has no padding");

#endif
