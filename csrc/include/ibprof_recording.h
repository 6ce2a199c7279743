/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The recording on disk: the one description of it. The preload library writes these structs through a shared mapping;
 * Python reads them with cffi from the text between the two marker lines, which therefore holds plain structs, enums and
 * integer defines alone. docs/formats/recording.md explains the whole to people.
 *
 * A file belongs to one host and one run and is made of
 *
 *     ibp_file_header | operation names | segment | segment | ...
 *
 * A segment begins on a multiple of IBP_PAGE_BYTES with an ibp_segment, is followed by an array of records of one kind and
 * belongs to one process (it names the offset of that process's IBP_SEGMENT_PROCESS). Segments are handed out by an atomic
 * addition to ibp_file_header.end_bytes, so processes never wait for one another. A page that was handed out and not yet
 * filled when a process was killed holds no IBP_SEGMENT_MAGIC: a reader steps over it, page by page.
 *
 * Numbers are in the byte order of the host; byte_order tells a reader of another kind. All times are nanoseconds of the
 * Unix clock, all sizes bytes. A record counts once ibp_segment.used includes it, and is never moved or removed.
 */
#ifndef IBPROF_RECORDING_H
#define IBPROF_RECORDING_H

#include <assert.h>
#include <stdint.h>

/* -- cffi begins -- */

#define IBP_FORMAT_VERSION 1
#define IBP_PAGE_BYTES 4096
#define IBP_FILE_MAGIC 0x4352464f52504249    /* "IBPROFRC" in a file of a little-endian host */
#define IBP_SEGMENT_MAGIC 0x53504249             /* "IBPS" likewise */
#define IBP_BYTE_ORDER 0x01020304
#define IBP_OPERATION_NAME_BYTES 32
#define IBP_TEXT_BYTES 256
#define IBP_REGION_NAME_BYTES 96
#define IBP_SIZE_BINS 65
#define IBP_PEER_UNKNOWN 0xffffffff
#define IBP_PATH_BYTES 1024
#define IBP_FLUSH_SECONDS 30 /* unless IBPROF_FLUSH says otherwise */
#define IBP_SNAPSHOT_GROUPS 32
#define IBP_PEER_ADDRESS 0x80000000 /* and more: the number of an ibp_address of the process, plus this */
#define IBP_ADDRESS_BYTES 56
#define IBP_GIDS_PER_PORT 4
#define IBP_GID_BYTES 16
#define IBP_GRID_DIMENSIONS 8
#define IBP_REGION_ALL 0xffffffff
#define IBP_REGION_OFF 0xfffffffe

enum ibp_segment_kind {
    IBP_SEGMENT_PROCESS = 1,
    IBP_SEGMENT_PORTS = 2,
    IBP_SEGMENT_REGIONS = 3,
    IBP_SEGMENT_COUNTERS = 4,
    IBP_SEGMENT_SIZES = 5,
    IBP_SEGMENT_MARKS = 6,
    IBP_SEGMENT_PAIRS = 7,
    IBP_SEGMENT_TRANSFERS = 8,
    IBP_SEGMENT_HARDWARE = 9,
    IBP_SEGMENT_ADDRESSES = 10,
    IBP_SEGMENT_SNAPSHOTS = 11,
    IBP_SEGMENT_LAUNCH = 12,
    IBP_SEGMENT_GRIDS = 13
};

/* Where bytes were seen. Bytes of different sources describe the same traffic and are never added up. */
enum ibp_source {
    IBP_SOURCE_NONE = 0,
    /* Open MPI's table of point-to-point calls: payload, by rank. */
    IBP_SOURCE_OPENMPI = 1,
    /* UCP calls: payload and MPI's own headers, by rank. */
    IBP_SOURCE_UCX = 2,
    /* Libfabric calls: likewise. */
    IBP_SOURCE_LIBFABRIC = 3,
    /* Work requests: wire payload with every header above InfiniBand's, by port. */
    IBP_SOURCE_VERBS = 4
};

enum ibp_kind {
    /* What the application gave to MPI, or what a collective sends on its behalf. */
    IBP_KIND_USER = 0,
    /* What MPI sends to manage a transfer that is counted elsewhere. */
    IBP_KIND_CONTROL = 1,
    /* Bytes of work requests: user data and headers, not told apart. */
    IBP_KIND_WIRE = 2
};

/* Sent and fetched counters make the matrix; received ones witness the same bytes at the other end. */
enum ibp_direction {
    /* This process sent them to the peer. */
    IBP_DIRECTION_SENT = 0,
    /* This process pulled them from the peer (MPI_Get, RDMA READ): the peer does not see it. */
    IBP_DIRECTION_FETCHED = 1,
    /* The peer sent them to this process. */
    IBP_DIRECTION_RECEIVED = 2
};

/* What a work request does. Each is counted where it was posted: sends and writes go from there to the remote port, reads and
 * what an atomic operation returns come from the remote port. */
enum ibp_opcode { IBP_OPCODE_SEND = 0, IBP_OPCODE_WRITE = 1, IBP_OPCODE_READ = 2, IBP_OPCODE_ATOMIC = 3 };

enum ibp_mark_kind {
    /* Recording began. */
    IBP_MARK_START = 0,
    /* IBPROF_REGION(): region is the one closed. */
    IBP_MARK_CLOSE = 1,
    /* A named region was entered. */
    IBP_MARK_BEGIN = 2,
    /* And left. */
    IBP_MARK_END = 3,
    /* Recording was switched off (MPI_Pcontrol(0), ibprof_off). */
    IBP_MARK_OFF = 4,
    /* And on again. */
    IBP_MARK_ON = 5,
    /* MPI_Finalize. */
    IBP_MARK_STOP = 6
};

enum ibp_process_flags {
    /* MPI_Finalize was reached: the counters are complete. */
    IBP_PROCESS_FINALIZED = 1,
    /* IBPROF named operations: the others are not in the counters. */
    IBP_PROCESS_FILTERED = 2
};

struct ibp_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    /* Of the first segment. */
    uint64_t segments_offset;
    /* First byte not handed out yet; grows by atomic addition. */
    uint64_t end_bytes;
    /* When the first process of this host began to record. */
    uint64_t start_ns;
    /* Names of IBP_OPERATION_NAME_BYTES each, right behind this header. */
    uint32_t operation_count;
    /* 1: some process found no space for more segments. */
    uint32_t full;
    char host[256];
    /* The launcher's name of the job, the same on all its hosts; empty for a lone process. */
    char job[256];
    /* IBPROF_RUN: one name a run, given by `ibprof run`; empty without it. */
    char run[64];
    /* What tells this launch on this host from every other one. */
    char launch[256];
    char library_version[32];
    /* Where IBPROF_OUTPUT is on a file system of several hosts, processes map a file of their node's own storage, and each
     * copies its segments to the file of the recording from time to time and at its end. Both are empty without that. */
    /* The mapped file. */
    char storage[IBP_PATH_BYTES];
    /* The file in IBPROF_OUTPUT, byte by byte at the same offsets. */
    char output[IBP_PATH_BYTES];
    /* Processes that joined, and in the upper half those of them that copied all: equal when it is done. */
    uint64_t members;
    /* IBPROF_FLUSH: between two copies, at least; 0 for the one at the end alone. */
    uint32_t flush_seconds;
    uint32_t reserved_too;
};

struct ibp_segment {
    uint32_t magic;
    uint32_t kind; /* enum ibp_segment_kind */
    /* Of this segment in its file: a check, and how a reader finds its place again. */
    uint64_t offset;
    /* Of the segment, this header included: a multiple of IBP_PAGE_BYTES. */
    uint64_t bytes;
    /* Offset of the process's own segment. */
    uint64_t process;
    uint32_t record_bytes;
    /* Records that fit. */
    uint32_t capacity;
    /* Records that are valid; published last. */
    uint32_t used;
    uint32_t reserved;
};

/* The one record of an IBP_SEGMENT_PROCESS. */
struct ibp_process {
    uint32_t pid;
    uint32_t flags; /* enum ibp_process_flags */
    /* Meaningless where world_size is 0. */
    uint32_t world_rank;
    /* 0: no MPI was initialised; the process is here because it posted work requests. */
    uint32_t world_size;
    /* As MPI provides it, 0 (single) to 3 (multiple). */
    uint32_t thread_level;
    uint32_t source; /* enum ibp_source that made the counters; none where only transfers were recorded */
    uint64_t start_ns;
    /* 0 until MPI_Finalize. */
    uint64_t stop_ns;
    /* Not counted by peer because there was no room for another counter. */
    uint64_t lost_bytes;
    uint64_t lost_messages;
    /* Of which the first are kept in IBP_SEGMENT_MARKS. */
    uint64_t marks_seen;
    /* Entered beyond a limit of names or of depth: their traffic is in the region around them. */
    uint64_t regions_refused;
    /* Time spent switched off. */
    uint64_t off_ns;
    /* Of work requests that had no room for a record. */
    uint64_t transfers_lost_bytes;
    uint64_t transfers_lost_messages;
    /* The region that is open: of what no IBP_SEGMENT_TRANSFERS says the region of. */
    uint32_t transfers_region;
    /* Made for posting past verbs, and never seen to post through it. */
    uint32_t queue_pairs_unseen;
    /* When this process last began to copy itself to the output; 0 where it maps that. */
    uint64_t copy_begun_ns;
    /* The same once it was done: while they differ, the copy is of two moments. */
    uint64_t copied_ns;
    /* Redo log of closing a region: while redo_from is not 0, counter number redo_into (from 1, in the order of the
     * segments) holds redo_bytes and redo_messages, and counter number redo_from is empty, whatever stands in them. */
    uint32_t redo_from;
    uint32_t redo_into;
    uint64_t redo_bytes;
    uint64_t redo_messages;
    /* MPI_Get_library_version, its first line. */
    char mpi[IBP_TEXT_BYTES];
    /* The program and its arguments, cut to fit. */
    char command[IBP_TEXT_BYTES];
    /* IBPROF as given; empty when all are recorded. */
    char operations[1024];
    /* What this process could not see, a sentence a line. */
    char notes[1024];
};

/* A port of an InfiniBand or RoCE device of this host, once a host: in the first process that recorded. */
struct ibp_port {
    char device[64];
    uint32_t port;
    /* 0 where there is none (Ethernet). */
    uint32_t lid;
    uint32_t lmc;
    /* 4 is active. */
    uint32_t state;
    uint64_t node_guid;
    /* The lower half of the first GID. */
    uint64_t port_guid;
    double rate_gbps;
    char link_layer[32];
    char gids[IBP_GIDS_PER_PORT][40];
};

struct ibp_region {
    char name[IBP_REGION_NAME_BYTES];
    uint64_t visits;
    /* Spent in it, regions inside it included. */
    uint64_t wall_ns;
    /* Entered first. */
    uint64_t first_ns;
    /* Left last. */
    uint64_t last_ns;
};

/* Bytes and messages to or from one peer. The region is an index into the process's regions, in the order of its segments. */
struct ibp_counter {
    uint32_t region;
    /* Index into the operation names of the file. */
    uint16_t operation;
    uint8_t kind; /* enum ibp_kind */
    uint8_t direction; /* enum ibp_direction */
    /* Rank in MPI_COMM_WORLD, an address (IBP_PEER_ADDRESS), or IBP_PEER_UNKNOWN. */
    uint32_t peer;
    uint32_t source; /* enum ibp_source */
    uint64_t bytes;
    uint64_t messages;
};

/* An address on the network, where a source knows peers by it: of this process, or of one that it sent to. It is the rank of
 * the process, in this file or another host's, that has the same one as its own. */
struct ibp_address {
    /* 1 for one of this process. */
    uint32_t own;
    /* Of the address; what does not fit ends in a hash of the whole. */
    uint32_t bytes;
    uint8_t address[IBP_ADDRESS_BYTES];
};

/* Messages sent by size: bin 0 is empty ones, bin k those of 2^(k-1) to 2^k - 1 bytes. */
struct ibp_sizes {
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
    /* Totals since the start, user data; 0 at BEGIN and END, which are to be cheap. */
    uint64_t sent_bytes;
    uint64_t sent_messages;
    uint64_t received_bytes;
    uint64_t received_messages;
};

/* Two ports that a process posted work requests between, its own and a remote one, as the path of a queue pair or an address
 * handle names them: by LID on InfiniBand, path bits included, by GID on Ethernet and where the path has a global header. */
struct ibp_pair {
    /* Of this process; empty where it is not known, as the remote port then. */
    char device[64];
    uint32_t port;
    /* 0 where there is none (Ethernet). */
    uint32_t lid;
    uint32_t remote_lid;
    uint32_t reserved;
    /* Zeros where the path names none. */
    uint8_t gid[IBP_GID_BYTES];
    uint8_t remote_gid[IBP_GID_BYTES];
};

/* What was posted between a pair of ports. The sum of a (pair, opcode)'s records with IBP_REGION_ALL is all of it; a record
 * with a region holds what of that belongs to the region, one with IBP_REGION_OFF what was posted while switched off. What is
 * in no such record belongs to the region that is open, ibp_process.transfers_region. */
struct ibp_transfer {
    /* Index into the process's pairs, in the order of its segments. */
    uint32_t pair;
    /* Index of a region, IBP_REGION_ALL or IBP_REGION_OFF. */
    uint32_t region;
    uint32_t opcode; /* enum ibp_opcode */
    /* With IBP_REGION_ALL: number of the thread that adds to this record, 0 for several. */
    uint32_t writer;
    uint64_t bytes;
    uint64_t messages;
};

/* A counter that a port's hardware or driver keeps, of all traffic, whoever sends it. */
struct ibp_hardware {
    char device[64];
    uint32_t port;
    /* `after` holds. */
    uint32_t read_again;
    /* As in sysfs; tx_bytes and rx_bytes are of the network interface of an Ethernet port. */
    char name[32];
    /* When the recording of the host began. */
    uint64_t before;
    /* When the process that began it ended. */
    uint64_t after;
};

/* Bytes and messages of user data that a process sent and fetched from its start to a moment, by group of peers: IBPROF_INTERVAL.
 * What was sent in between is the difference of two of them. A process keeps a fixed number; when it has made them all, every
 * other one is dropped and its record used again, so they are not in the order of time. */
struct ibp_snapshot {
    /* 0 where it was dropped. */
    uint64_t time_ns;
    /* Group g is ranks g * group_ranks and on, the last one all peers that are no rank. 0: group g is the peer of the process's
     * ibp_address g, and the last one all others. */
    uint32_t group_ranks;
    uint32_t reserved;
    uint64_t bytes[IBP_SNAPSHOT_GROUPS];
    uint64_t messages[IBP_SNAPSHOT_GROUPS];
};

/* A Cartesian grid that the program laid its ranks out on (MPI_Cart_create), and where this process is on it. */
struct ibp_grid {
    /* Up to IBP_GRID_DIMENSIONS; grids of more are not kept. */
    uint32_t dimensions;
    /* A bit a dimension. */
    uint32_t periodic;
    int32_t extent[IBP_GRID_DIMENSIONS];
    int32_t place[IBP_GRID_DIMENSIONS];
};

/* How the job was started, in a host's first process: texts that name the job's hosts. One that is longer than a record goes
 * on in the next one of the same name; it ends where a record's text is not full. */
struct ibp_launch {
    /* A variable of the environment, or "command line" of the launcher, with 0x1f behind each argument. */
    char name[64];
    uint8_t text[448];
};

/* -- cffi ends -- */

#define IBP_STATIC_ASSERT _Static_assert
IBP_STATIC_ASSERT(sizeof(struct ibp_segment) == 48, "a segment's header has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_counter) == 32, "a counter is half a cache line");
IBP_STATIC_ASSERT(sizeof(struct ibp_address) == 64, "an address has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_mark) == 48, "a mark has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_pair) == 112, "a pair of ports has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_transfer) == 32, "a transfer is half a cache line");
IBP_STATIC_ASSERT(sizeof(struct ibp_snapshot) == 528, "a snapshot has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_grid) == 72, "a grid has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_hardware) == 120, "a hardware counter has no padding");
IBP_STATIC_ASSERT(sizeof(struct ibp_region) == IBP_REGION_NAME_BYTES + 32, "a region has no padding");

#endif
