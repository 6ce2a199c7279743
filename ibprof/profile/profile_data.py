# SPDX-License-Identifier: Apache-2.0
"""The Profile: the traffic of one run, as arrays, independent of files.

A recording (`ibprof.recording`) and an OTF2 archive (`ibprof.archive`) are two forms of the same Profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import recording_header
from ibprof.profile.row_arrays import RowArrays, no_sites
from ibprof.profile.scheduler_job import SchedulerJob
from ibprof.sites.code_location import Frame
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import CALLED_FROM, printable

_HEADER = recording_header()

UNKNOWN_PEER = _HEADER.constants["IBP_PEER_UNKNOWN"]
"""A peer outside MPI_COMM_WORLD (a spawned job, or a rank that could not be identified)."""

PORT_ACTIVE = _HEADER.constants["IBP_PORT_ACTIVE"]
"""Port state of an active link, as InfiniBand's PortInfo numbers states."""

SIZE_BINS = _HEADER.constants["IBP_SIZE_BINS"]
"""Bins of message sizes: bin 0 counts empty messages, bin k messages of 2^(k-1) to 2^k - 1 bytes."""


class Source(IntEnum):
    """The layer where bytes were counted. Bytes of two sources are never summed."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_source", "IBP_SOURCE_")
    NONE = auto()
    OPENMPI = auto()
    UCX = auto()
    LIBFABRIC = auto()
    VERBS = auto()
    NCCL = auto()

    @property
    def layer(self) -> str:
        """Name of the source in reports, such as `Open MPI's PML`."""
        return _LAYERS[self]


_LAYERS = {
    Source.NONE: "nowhere",
    Source.OPENMPI: "Open MPI's PML",
    Source.UCX: "UCX",
    Source.LIBFABRIC: "libfabric",
    Source.VERBS: "verbs",
    Source.NCCL: "NCCL's proxies",
}


class Kind(IntEnum):
    """The kind of bytes: user data, MPI's own data, or the sum of both kinds (work requests)."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_kind", "IBP_KIND_")
    USER = auto()
    CONTROL = auto()
    WIRE = auto()


class Direction(IntEnum):
    """Direction of bytes. A matrix sums SENT and FETCHED; RECEIVED counts the sent bytes again, at the receiver."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_direction", "IBP_DIRECTION_")
    SENT = auto()
    FETCHED = auto()
    RECEIVED = auto()


class Opcode(IntEnum):
    """The operation of a work request. SEND and WRITE move bytes to the remote port, READ and ATOMIC from that port."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_opcode", "IBP_OPCODE_")
    SEND = auto()
    WRITE = auto()
    READ = auto()
    ATOMIC = auto()


OUTWARD_OPCODES = (Opcode.SEND, Opcode.WRITE)
"""Opcodes that move bytes to the remote port."""


class MarkKind(IntEnum):
    """The event at which a rank recorded a `Mark`: recording starts, stops, pauses or resumes; or a region event."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_mark_kind", "IBP_MARK_")
    START = auto()
    CLOSE = auto()
    BEGIN = auto()
    END = auto()
    OFF = auto()
    ON = auto()
    STOP = auto()


class Side(IntEnum):
    """Role of the rank that took a sample.

    WAITER: waits for a message without receiving it (MPI_Probe), or for a NOTIFIER. NOTIFIER: other ranks wait for this
    rank's call (MPI_Win_post, MPI_Win_complete). SOURCE: no sample, but a record without times: the rank receives from
    `peer` in neighbourhood collectives.
    """

    _generate_next_value_ = _HEADER.numbers_of("ibp_side", "IBP_SIDE_")
    SENDER = auto()
    RECEIVER = auto()
    WAITER = auto()
    NOTIFIER = auto()
    SOURCE = auto()


class Unsampled(IntEnum):
    """The reason for not sampling a collective or a message."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_unsampled", "IBP_UNSAMPLED_")
    NO_NAME = auto()
    FULL = auto()
    ORDER = auto()
    UNSEEN = auto()


UNKNOWN_BYTES = _HEADER.constants["IBP_BYTES_UNKNOWN"]
"""Value of `bytes` in a message's sample if the sampling process does not know the size."""


@dataclass(frozen=True, slots=True)
class HardwareCounter:
    """A counter of a port's hardware or driver, over the traffic of all processes.

    Attributes:
        name: the counter's name in Linux's sysfs.
        before: the value when the host's first process began to record.
        after: the value when the host's first process ended; None if that process was killed.
    """

    name: str
    before: int
    after: int | None


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a host's InfiniBand or RoCE device.

    Attributes:
        lid: the port's LID; None without a LID (Ethernet, or not yet configured).
        node_guid, port_guid: each is `0x` and 16 hex digits.
        rate_gbps: rate of the active link in Gb/s.
        state: the link's state, `PORT_ACTIVE` or another state of InfiniBand's PortInfo.
        hardware: the port's own counters.
        pci: the device's PCI function, such as `0000:3b:00.0`; empty where unknown.
        numa_node: the device's NUMA node; None where unknown.
        near_cores: cores near the device, as the kernel lists them (`0-15,64-79`); empty where unknown.
        width: lanes of the link; 0 where unknown.
        pci_width, pci_width_max: used and available lanes of the PCI link; 0 where unknown.
        pci_gts, pci_gts_max: used and available rate of a PCI lane in GT/s; 0 where unknown.
    """

    device: str
    port: int
    lid: int | None
    lmc: int
    node_guid: str
    port_guid: str
    gids: tuple[str, ...]
    rate_gbps: float
    link_layer: str
    state: int
    hardware: tuple[HardwareCounter, ...] = ()
    pci: str = ""
    numa_node: int | None = None
    near_cores: str = ""
    width: int = 0
    pci_width: int = 0
    pci_width_max: int = 0
    pci_gts: float = 0.0
    pci_gts_max: float = 0.0

    @property
    def is_active(self) -> bool:
        """True if the link is active."""
        return self.state == PORT_ACTIVE


@dataclass(frozen=True, slots=True)
class PortPair:
    """A port of a host, and the remote port of its work requests.

    Attributes:
        host: index into `Profile.hosts`.
        device, port: device and port of the host; an unknown device is empty.
        lid, remote_lid: the ports' LIDs, with path bits; None on Ethernet.
        gid, remote_gid: the ports' GIDs, as in `Port.gids`; empty for a path without GIDs.
    """

    host: int
    device: str
    port: int
    lid: int | None
    gid: str
    remote_lid: int | None
    remote_gid: str


class HardwareType(IntEnum):
    """Hardware types of interfaces, as Linux numbers them."""

    ETHERNET = 1
    INFINIBAND = 32
    LOOPBACK = 772


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface of a host.

    Attributes:
        name: the kernel's name of the interface, such as `eth0`.
        device: the interface's InfiniBand or RoCE device; empty if it has none.
        type: hardware type, one of `HardwareType` or another type of Linux.
        mtu: largest packet in bytes.
        speed_mbps: speed in Mb/s; None where unknown, and for virtual interfaces.
        numa_node: the interface's NUMA node; None where unknown.
        is_up: true if the link is up, according to the kernel.
        hardware: the interface's counters.
        virtual_mbps: the kernel's speed of a virtual interface in Mb/s; None for other interfaces.
    """

    name: str
    device: str
    type: int
    mtu: int
    speed_mbps: int | None
    numa_node: int | None
    is_up: bool
    hardware: tuple[HardwareCounter, ...] = ()
    virtual_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """A transport that a process had open at MPI_Finalize.

    Attributes:
        kind: `tcp`; `library` for a loaded library; `verbs`, `psm`, `cxi`, `knem` or `xpmem` for a device.
        device: name of the TCP interface, device or library; empty where unknown.
        handles: number of connections, open files, or loaded libraries.
        sent_bytes, received_bytes: bytes of all TCP connections of the process, not only MPI's; 0 without counts.
        segments, retransmitted: number of sent and of retransmitted TCP segments.
        min_rtt_us: shortest round trip of the TCP connections in µs; 0 where unknown.
    """

    kind: str
    device: str
    handles: int
    sent_bytes: int = 0
    received_bytes: int = 0
    segments: int = 0
    retransmitted: int = 0
    min_rtt_us: int = 0


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that runs ranks.

    Attributes:
        interfaces: network interfaces; empty in recordings of 0.1.0.
    """

    name: str
    ports: tuple[Port, ...]
    interfaces: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """Position of a process on a Cartesian grid of the program (MPI_Cart_create).

    Attributes:
        extents: number of processes along each dimension.
        periodic: 1 for a dimension that is a ring, else 0.
        place: coordinates of the process, from 0.
    """

    dimensions: int
    extents: tuple[int, ...]
    periodic: tuple[int, ...]
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """A setting that influences a process's choice of adapters.

    Attributes:
        name: an environment variable; `cores` for allowed cores; `online` for all cores, if only some are allowed.
        text: the setting's value; cores as `0-15,64-79`.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Rank:
    """A recorded process.

    Attributes:
        rank: rank in MPI_COMM_WORLD. Processes without MPI have numbers after the last rank.
        host: index into `Profile.hosts`.
        stop_ns: time of MPI_Finalize, in Unix time; None if the process did not reach MPI_Finalize.
        finalized: true if the counters cover the whole run.
        lost_bytes, lost_messages: bytes and messages counted without peers, because the recording could not grow.
        off_ns: time with recording switched off.
        marks_seen: number of marks. If there are too many to record, `Profile.marks` has only the first marks.
        queue_pairs_unseen: number of queue pairs that bypass verbs, without bytes in `Profile.transfers`.
        notes: data that the process could not record, a sentence each.
        grids: the process's grids, in the order of creation.
        sees_host: true if the source also counts messages inside a host.
        has_demands: true if `Profile.demands` has the bytes that the process's calls asked for.
        has_times: true if `Profile.times` has the time inside the process's calls.
        overlap_ns: time that `Profile.times` counts repeatedly, because several threads were inside calls at once.
        choices: settings for the choice of adapters; empty without adapters, or if nothing was recorded.
        transports: used transports; empty for a killed process, and in recordings of 0.1.0.
        clock_offset_ns: offset from the clock of samples to Unix time at the start of recording; 0 without samples.
        boot: hash of the machine's boot identifier; 0 where unknown. Ranks with equal values share a clock.
        clock_drift_ns: growth of `clock_offset_ns` until recording ended.
        collectives, messages: number of collectives, sampled or not; number of sent and received messages, sampled or
            not.
        unsampled_collectives, unsampled_messages: numbers of collectives and messages that were not sampled, by
            `Unsampled`; empty without samples.
        cpu_ns: processor time of all threads of the process during recording; 0 where unknown.
        no_core_ns: time in which the first thread was ready but had no core; 0 where unknown.
    """

    rank: int
    host: int
    pid: int
    start_ns: int
    stop_ns: int | None
    finalized: bool
    source: Source
    thread_level: int
    lost_bytes: int
    lost_messages: int
    off_ns: int
    marks_seen: int
    notes: tuple[str, ...]
    queue_pairs_unseen: int = 0
    grids: tuple[Grid, ...] = ()
    sees_host: bool = False
    has_demands: bool = False
    has_times: bool = False
    overlap_ns: int = 0
    choices: tuple[AdapterChoice, ...] = ()
    transports: tuple[Transport, ...] = ()
    clock_offset_ns: int = 0
    boot: int = 0
    clock_drift_ns: int = 0
    collectives: int = 0
    messages: int = 0
    unsampled_collectives: tuple[int, ...] = ()
    unsampled_messages: tuple[int, ...] = ()
    cpu_ns: int = 0
    no_core_ns: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """A call site: a line where a program calls MPI, or calls a function that leads to such a call.

    Attributes:
        file: the source file, as the compiler or the interpreter names it; empty where unknown.
        line: line in the source file, from 1; 0 where unknown.
        function: the calling function; empty where unknown.
        object: the loaded program, library or script.
        address: return address of the call in `object`; 0 in a script.
        build_id: build ID of the object, as hex digits; empty if it has none.
        name: the site's name, `file.c:LINE`; without a line, `function+0x1f` or `object+0x1f` (docs/sites.md).
        inlined_in: the functions that contain the call after inlining, innermost first; empty if callers were recorded.
        callers: call sites of `function` and of its callers, innermost first, at most IBPROF_CALLERS; without `callers`
            of the listed sites. A function into which a call was inlined counts as a caller.
    """

    file: str
    line: int
    function: str
    object: str
    address: int = 0
    build_id: str = ""
    name: str = ""
    inlined_in: tuple[Frame, ...] = ()
    callers: tuple[Site, ...] = ()

    @property
    def label(self) -> str:
        """Name of the site and of its callers, such as `library.c:10 < solver.c:212`."""
        return CALLED_FROM.join((self.name, *(caller.name for caller in self.callers)))


OTHER_SITES = Site("", 0, "(other sites)", "", name="(other sites)")
"""Site that stands for all sites beyond the limit of a recording."""


@dataclass(frozen=True, slots=True)
class Counters(RowArrays):
    """Bytes and messages, a row for each counter; arrays of equal length.

    Rows are in the order of rank, region, operation, site, direction, kind, source, peer.

    Attributes:
        rank: int32, the counting rank.
        peer: uint32, the rank at the other end, or `UNKNOWN_PEER`.
        region, operation: int32, indices into the Profile's names.
        kind, direction, source: uint8, values of `Kind`, `Direction` and `Source`.
        bytes, messages: uint64.
        site: int32, number from 1 in the Profile's sites, 0 where unknown; optional if all sites are unknown.
    """

    rank: npt.NDArray[np.int32]
    peer: npt.NDArray[np.uint32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    direction: npt.NDArray[np.uint8]
    source: npt.NDArray[np.uint8]
    bytes: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.uint64]
    site: npt.NDArray[np.int32] = field(default_factory=no_sites)


@dataclass(frozen=True, slots=True)
class Demands(RowArrays):
    """Bytes that calls asked MPI to move, a row for each (rank, region, operation, site, partner), in that order.

    Attributes:
        rank: int32, the calling rank.
        region, operation: int32, indices into the Profile's names.
        partner: uint64, rank of the root or the peer, or a group of ranks (from `PARTNER_GROUP` on).
        bytes: uint64, bytes of the calls' arguments (docs/formats/recording.md).
        calls: uint64, number of calls.
        site: int32, as in `Counters`.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    partner: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint64]
    calls: npt.NDArray[np.uint64]
    site: npt.NDArray[np.int32] = field(default_factory=no_sites)


@dataclass(frozen=True, slots=True)
class CallTimes(RowArrays):
    """Calls and the time inside them, a row for each (rank, region, operation, site), in that order. See IBPROF_TIME.

    Each rank has its own clock: do not compare times of two ranks.

    Attributes:
        rank: int32, the calling rank.
        region, operation: int32, indices into the Profile's names.
        calls: uint64, number of calls, including calls that did not return.
        time_ns: uint64, time inside the calls, over all threads.
        error_ns: uint64, standard error of `time_ns`: only a random sample of short calls is timed.
        site: int32, as in `Counters`.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    calls: npt.NDArray[np.uint64]
    time_ns: npt.NDArray[np.uint64]
    error_ns: npt.NDArray[np.uint64]
    site: npt.NDArray[np.int32] = field(default_factory=no_sites)


@dataclass(frozen=True, slots=True)
class CallSamples(RowArrays):
    """Begin and end of sampled collectives and messages. See docs/formats/recording.md.

    All ranks of a collective or message compute the same hash, which chooses samples.

    Times are readings of the host's sample clock (`Rank.clock_offset_ns`), which all ranks of a host share.

    Attributes:
        rank: int32, rank in MPI_COMM_WORLD.
        communicator: uint64, the communicator's name, equal on all members.
        number: uint64, sequence number; see the subclass.
        operation, site: int32, as in `Counters`, of the starting call; for a persistent collective, of the call that
            made the request.
        region, end_operation, end_site: int32, of the completing call.
        level: uint8, sampling level: 1 of 2^level collectives or messages is sampled.
        bytes: uint64.
        enter_ns, exit_ns: int64, entry and return of the completing call.
        is_long: bool, true for the rank's longest samples, and for late entries and posts. Long collectives are always
            sampled. Long messages are sampled if the rank had at most one message in 5 µs on average.
        is_chosen: bool, true if chosen at random; false if sampled only for its length (`level` is 0).
    """

    rank: npt.NDArray[np.int32]
    communicator: npt.NDArray[np.uint64]
    number: npt.NDArray[np.uint64]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    site: npt.NDArray[np.int32]
    end_operation: npt.NDArray[np.int32]
    end_site: npt.NDArray[np.int32]
    level: npt.NDArray[np.uint8]
    bytes: npt.NDArray[np.uint64]
    enter_ns: npt.NDArray[np.int64]
    exit_ns: npt.NDArray[np.int64]
    is_long: npt.NDArray[np.bool_]
    is_chosen: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CollectiveSamples(CallSamples):
    """Begin and end of collectives, a row for each member's call; in the order of communicator, number, member.

    A collective that all `size` members sampled represents 2^level collectives; use the largest level of the rows.
    Leave out a collective if a member's row is missing. `number` counts the collectives on the communicator. `bytes`
    are as in `Demands`; 0 where unknown.

    Attributes:
        size: uint32, number of processes in the communicator.
        member: uint32, rank of the process in the communicator.
        root: int64, a rank of the communicator; -1 without a root.
        start_ns: int64, entry of the starting call.
    """

    size: npt.NDArray[np.uint32]
    member: npt.NDArray[np.uint32]
    root: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MessageSamples(CallSamples):
    """Begin and end of messages, a row at each end; in the order of communicator, sender, receiver, tag, number, side.

    `number` counts the messages of one sender, receiver, communicator and tag. `bytes` are `UNKNOWN_BYTES` at the
    receiver.

    Attributes:
        peer: uint32, rank of the other end.
        tag: int32.
        side: uint8, `Side` of `rank`.
        completed: uint16, upper bound of the messages that the completing call completed; 0 where unknown.
        post_ns: int64, entry of the posting call.
    """

    peer: npt.NDArray[np.uint32]
    tag: npt.NDArray[np.int32]
    side: npt.NDArray[np.uint8]
    completed: npt.NDArray[np.uint16]
    post_ns: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Transfers(RowArrays):
    """Work requests posted to queue pairs; arrays of equal length. Source: the verbs library.

    Work requests carry the bytes of `Counters` again, with headers: never add `Transfers` to `Counters`. Rows are in
    the order of rank, region, opcode, pair.

    Attributes:
        rank: int32, the posting rank.
        region: int32, index into the Profile's names.
        opcode: uint8, `Opcode`.
        pair: int32, index into `Profile.pairs`.
        bytes, messages: uint64.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    opcode: npt.NDArray[np.uint8]
    pair: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Intervals(RowArrays):
    """Bytes that each rank sent and fetched over time, by group of peers; arrays of equal length. See IBPROF_INTERVAL.

    The bytes sum to the rank's sent and fetched user data in `Counters`. Rows are in the order of rank, begin_ns,
    first_peer. Intervals without traffic have no row.

    Attributes:
        rank: int32.
        begin_ns, end_ns: uint64, Unix times; equal if the rank was killed and the end is unknown.
        first_peer, last_peer: uint32, range of ranks at the other end; both `UNKNOWN_PEER` if unknown.
        bytes, messages: uint64.
    """

    rank: npt.NDArray[np.int32]
    begin_ns: npt.NDArray[np.uint64]
    end_ns: npt.NDArray[np.uint64]
    first_peer: npt.NDArray[np.uint32]
    last_peer: npt.NDArray[np.uint32]
    bytes: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class IntervalTimes(RowArrays):
    """Time of each rank inside MPI calls over time; arrays of equal length. See IBPROF_INTERVAL and IBPROF_TIME.

    The sum of a rank's times equals the sum of its `CallTimes`, apart from rounding. Rows are in the order of rank,
    begin_ns. Intervals without time inside calls have no row.

    Attributes:
        rank: int32.
        begin_ns, end_ns: uint64, Unix times, as in `Intervals`.
        time_ns: uint64, time inside calls, over all threads; short calls are estimated.
    """

    rank: npt.NDArray[np.int32]
    begin_ns: npt.NDArray[np.uint64]
    end_ns: npt.NDArray[np.uint64]
    time_ns: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RegionTimes(RowArrays):
    """Visits and time of each rank in each region; arrays of equal length, a row per (rank, region), in that order.

    Attributes:
        rank, region: int32.
        visits, wall_ns: uint64.
        first_ns, last_ns: uint64, Unix times of the first entry and the last exit.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    visits: npt.NDArray[np.uint64]
    wall_ns: npt.NDArray[np.uint64]
    first_ns: npt.NDArray[np.uint64]
    last_ns: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class MessageSizes(RowArrays):
    """Messages by size; a row for each (rank, region, operation, site, direction, kind), in that order.

    Attributes:
        messages: uint64 [row, `SIZE_BINS`].
        site: int32, as in `Counters`.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    direction: npt.NDArray[np.uint8]
    messages: npt.NDArray[np.uint64]
    site: npt.NDArray[np.int32] = field(default_factory=no_sites)


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked time of one rank, with totals of the rank's user data until this time.

    The totals are 0 at BEGIN and END, where reading totals would take too long.
    """

    rank: int
    time_ns: int
    kind: MarkKind
    region: int
    sent_bytes: int
    sent_messages: int
    received_bytes: int
    received_messages: int


@dataclass(frozen=True, slots=True, repr=False)
class Profile(NotebookView):
    """Traffic of one run.

    Attributes:
        name: name of the file or folder.
        mpi: the MPI library's own name and version.
        command: command of rank 0, or of the first recorded rank.
        job: the launcher's name of the job.
        scheduler: the batch system's names of the job, as rank 0 recorded them.
        world_size: number of ranks in MPI_COMM_WORLD, recorded or not; without MPI, of recorded processes.
        operations_asked: value of IBPROF; empty if all operations were recorded.
        hosts: machines of the recorded ranks.
        ranks: recorded processes, by rank.
        job_hosts: hosts of the job, from its launcher or batch system; empty if unknown.
        regions, operations: distinct names. Ranks share the regions of equal name.
        marks: marks, sorted by rank, then by creation.
        pairs: distinct pairs of ports.
        transfers: work requests between pairs of ports.
        intervals: traffic over time, if recorded.
        interval_times: time inside calls over time, if intervals and times were recorded.
        demands: bytes that calls asked MPI to move.
        times: calls and the time inside them; empty if times were not recorded.
        collective_samples, message_samples: begin and end of sampled calls; empty if times were not recorded.
        sites: distinct call sites.
        sites_without_lines: a sentence on each object without line numbers, with the reason.
    """

    renderer_module: ClassVar[str] = "ibprof.profile.profile_summary"

    name: str
    mpi: str
    command: str
    job: str
    world_size: int
    operations_asked: str
    hosts: tuple[Host, ...]
    ranks: tuple[Rank, ...]
    regions: tuple[str, ...]
    operations: tuple[str, ...]
    counters: Counters
    region_times: RegionTimes
    sizes: MessageSizes
    marks: tuple[Mark, ...]
    job_hosts: tuple[str, ...] = ()
    pairs: tuple[PortPair, ...] = ()
    transfers: Transfers = field(default_factory=Transfers.empty)
    intervals: Intervals = field(default_factory=Intervals.empty)
    demands: Demands = field(default_factory=Demands.empty)
    times: CallTimes = field(default_factory=CallTimes.empty)
    sites: tuple[Site, ...] = ()
    sites_without_lines: tuple[str, ...] = ()
    interval_times: IntervalTimes = field(default_factory=IntervalTimes.empty)
    collective_samples: CollectiveSamples = field(default_factory=CollectiveSamples.empty)
    message_samples: MessageSamples = field(default_factory=MessageSamples.empty)
    scheduler: SchedulerJob = field(default_factory=SchedulerJob)

    def __repr__(self) -> str:
        recorded = f"{self.ranks_recorded:,} of {self.world_size:,} ranks recorded"
        return printable(f"<Profile {self.name}: {recorded}, on {len(self.hosts):,} host(s)>")

    @property
    def is_of_nccl(self) -> bool:
        """True if NCCL's proxies were recorded, but no MPI."""
        return bool(self.ranks) and all(rank.source == Source.NCCL for rank in self.ranks)

    @property
    def library(self) -> str:
        """The library that moved the bytes, `MPI` or `NCCL`."""
        return "NCCL" if self.is_of_nccl else "MPI"

    @property
    def ranks_recorded(self) -> int:
        """Number of recorded ranks of MPI_COMM_WORLD, or of recorded processes without MPI."""
        return sum(rank.rank < self.world_size for rank in self.ranks)
