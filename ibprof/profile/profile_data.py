# SPDX-License-Identifier: Apache-2.0
"""The Profile: what one run sent, as arrays, independent of the file that it was read from.

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
from ibprof.text.call_names import CALLED_FROM
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable

_HEADER = recording_header()

UNKNOWN_PEER = _HEADER.constants["IBP_PEER_UNKNOWN"]
"""A peer that is no rank of MPI_COMM_WORLD (a spawned job, or a rank that could not be identified)."""

PORT_ACTIVE = _HEADER.constants["IBP_PORT_ACTIVE"]
"""State of a port whose link is up, as InfiniBand's PortInfo numbers states."""

SIZE_BINS = _HEADER.constants["IBP_SIZE_BINS"]
"""Bins of message sizes: bin 0 is empty messages, bin k those of 2^(k-1) to 2^k - 1 bytes."""


class Source(IntEnum):
    """Where bytes were seen. Bytes of two sources are never summed."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_source", "IBP_SOURCE_")
    NONE = auto()
    OPENMPI = auto()
    UCX = auto()
    LIBFABRIC = auto()
    VERBS = auto()
    NCCL = auto()

    @property
    def layer(self) -> str:
        """The layer where bytes were counted, in words."""
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
    """The kind of bytes: user data, MPI's own, or whole work requests, which do not separate the two."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_kind", "IBP_KIND_")
    USER = auto()
    CONTROL = auto()
    WIRE = auto()


class Direction(IntEnum):
    """Sent and fetched bytes make the matrix; received bytes are the same bytes seen at the other end."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_direction", "IBP_DIRECTION_")
    SENT = auto()
    FETCHED = auto()
    RECEIVED = auto()


class Opcode(IntEnum):
    """The operation of a work request. SEND and WRITE go to the remote port, the others come from there."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_opcode", "IBP_OPCODE_")
    SEND = auto()
    WRITE = auto()
    READ = auto()
    ATOMIC = auto()


OUTWARD_OPCODES = (Opcode.SEND, Opcode.WRITE)
"""Opcodes whose bytes go to the remote port."""


class MarkKind(IntEnum):
    """The event that a mark records."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_mark_kind", "IBP_MARK_")
    START = auto()
    CLOSE = auto()
    BEGIN = auto()
    END = auto()
    OFF = auto()
    ON = auto()
    STOP = auto()


class Side(IntEnum):
    """The end of a message at which a sample was taken."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_side", "IBP_SIDE_")
    SENDER = auto()
    RECEIVER = auto()


class Unsampled(IntEnum):
    """Why collectives or messages could not be sampled."""

    _generate_next_value_ = _HEADER.numbers_of("ibp_unsampled", "IBP_UNSAMPLED_")
    NO_NAME = auto()
    FULL = auto()
    ORDER = auto()
    UNSEEN = auto()


UNKNOWN_BYTES = _HEADER.constants["IBP_BYTES_UNKNOWN"]
"""Bytes of a sampled message whose size the sampling end does not know."""


@dataclass(frozen=True, slots=True)
class HardwareCounter:
    """A counter that a port's hardware or driver keeps, of all traffic from any process.

    Attributes:
        name: as in Linux's sysfs.
        before: when the first process of the host began to record.
        after: when that process ended; None if it was killed.
    """

    name: str
    before: int
    after: int | None


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a host's InfiniBand or RoCE device.

    Attributes:
        lid: None where the port has none (Ethernet, or not yet configured).
        node_guid, port_guid: `0x` and 16 hex digits.
        rate_gbps: of the active link.
        state: of the link, `PORT_ACTIVE` or another one of InfiniBand's PortInfo.
        hardware: counters of the port itself.
        pci: function of the device, as `0000:3b:00.0`; empty where it has none, or was not recorded.
        numa_node: of the device; None where unknown.
        near_cores: cores near the device, as the kernel lists them: `0-15,64-79`; empty where unknown.
        width: lanes of the link; as those that follow, 0 where unknown.
        pci_width, pci_width_max: lanes of the PCI link, and those that the device has.
        pci_gts, pci_gts_max: rate of a lane of it, GT/s, and that which the device has.
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
        """True where the link is up."""
        return self.state == PORT_ACTIVE


@dataclass(frozen=True, slots=True)
class PortPair:
    """Two ports that work requests were posted between: one of the host, and a remote one.

    Attributes:
        host: index into `Profile.hosts`.
        device, port: of the host; the device is empty where unknown.
        lid, remote_lid: path bits included; None on Ethernet.
        gid, remote_gid: as in `Port.gids`; empty where the path has none.
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
        name: as the kernel names it, such as `eth0`.
        device: the InfiniBand or RoCE device that it belongs to; empty where there is none.
        type: of its hardware, one of `HardwareType` or another of Linux.
        mtu: bytes.
        speed_mbps: None where unknown, or where it means nothing (pairs of virtual interfaces, bridges).
        numa_node: None where unknown.
        is_up: the link is up, as far as the kernel knows.
        hardware: its counters.
    """

    name: str
    device: str
    type: int
    mtu: int
    speed_mbps: int | None
    numa_node: int | None
    is_up: bool
    hardware: tuple[HardwareCounter, ...] = ()


@dataclass(frozen=True, slots=True)
class Transport:
    """A transport that a process had open when it ended MPI.

    Attributes:
        kind: `tcp`; `verbs`, `psm`, `cxi`, `knem` or `xpmem` for a device; `library` for one that is loaded.
        device: an interface of TCP, else a device or a library; empty where unknown.
        handles: connections, open files, or loaded libraries.
        sent_bytes, received_bytes: of its TCP connections, which not only MPI may use; 0 where the kernel counts none.
        segments, retransmitted: TCP segments sent, and those sent again.
        min_rtt_us: shortest round trip of its TCP connections; 0 where unknown.
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
    """A machine that ranks ran on.

    Attributes:
        name: of the host.
        ports: of its InfiniBand and RoCE devices.
        interfaces: network interfaces; empty in recordings of 0.1.0.
    """

    name: str
    ports: tuple[Port, ...]
    interfaces: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """Position of a process on a Cartesian grid of the program (MPI_Cart_create).

    Attributes:
        dimensions: number of dimensions.
        extents: processes along each.
        periodic: 1 where the dimension is a ring, else 0.
        place: coordinates of the process, from 0.
    """

    dimensions: int
    extents: tuple[int, ...]
    periodic: tuple[int, ...]
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """Part of what decides which adapters of its host a process uses.

    Attributes:
        name: a variable of its environment; `cores`, or `online`, those of its machine where it may not use all.
        text: its value; cores are as `0-15,64-79`.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Rank:
    """A recorded process.

    Attributes:
        rank: in MPI_COMM_WORLD; a process without MPI has a number after the last rank.
        host: index into `Profile.hosts`.
        stop_ns: Unix time of MPI_Finalize, None if the process did not reach it.
        finalized: whether its counters cover the whole run.
        lost_bytes, lost_messages: counted in total, but not by peer, because the recording was full.
        off_ns: time during which recording was switched off.
        marks_seen: number of marks, of which the first are in `Profile.marks`.
        queue_pairs_unseen: queue pairs that bypass verbs, so that their bytes are in no transfer.
        notes: what this process could not record, a sentence each.
        grids: its grids, in the order in which they were made.
        sees_host: its source sees messages between ranks of one host too.
        has_demands: what its calls asked for is in `Profile.demands`.
        has_times: the time inside its calls is in `Profile.times`.
        overlap_ns: what the sum of these times counts more than once, since several threads were inside calls at once.
        choices: what decides which adapters it uses; empty where its host has none, or nothing was recorded.
        transports: those that it used; empty where it was killed, or in recordings of 0.1.0.
        clock_offset_ns: Unix time minus the clock of its samples, when recording began; 0 without samples.
        boot: number of its machine's start, a hash; ranks of one start read one clock; 0 where unknown.
        clock_drift_ns: by how much that difference grew until recording ended.
        collectives, messages: how many it took part in, sampled or not; messages sent and received.
        unsampled_collectives, unsampled_messages: those that could not be sampled, by `Unsampled`; empty where nothing
            was sampled.
        cpu_ns: CPU time of the process, all its threads, while it was recorded; 0 where unknown.
        no_core_ns: time for which its first thread was ready to run but had no core; 0 where unknown.
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
    """A place in a program that called MPI.

    Attributes:
        file: of the source, as the compiler or the interpreter names it; empty where unknown.
        line: in it, from 1; 0 where unknown.
        function: that contains it; empty where unknown.
        object: the program, library or script that was loaded.
        address: where the call returns to, in `object`; 0 in a script.
        build_id: of the object, as hex digits; empty where it has none.
        name: `file.c:LINE`; without a line `function+0x1f`, or `object+0x1f`. docs/sites.md.
        inlined_in: the functions that the call was compiled into, from the inside, if not only `function`; empty where
            callers were recorded.
        callers: the places that called `function`, from the inside, as far as they were recorded: IBPROF_CALLERS. Those
            that it was inlined into are included. They have no callers of their own.
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
        """Its name, and those of its callers: `library.c:10 < solver.c:212`."""
        return CALLED_FROM.join((self.name, *(caller.name for caller in self.callers)))


OTHER_SITES = Site("", 0, "(other sites)", "", name="(other sites)")
"""Stands for all sites beyond the limit of a recording."""


@dataclass(frozen=True, slots=True)
class Counters(RowArrays):
    """Bytes and messages, a row for each counter; arrays of one length.

    Rows are in the order of rank, region, operation, site, direction, kind, source, peer.

    Attributes:
        rank: int32, the counting rank.
        peer: uint32, the rank at the other end, or `UNKNOWN_PEER`.
        region, operation: int32, indices into the Profile's names.
        kind, direction, source: uint8, of the enums above.
        bytes, messages: uint64.
        site: int32, number from 1 in the Profile's sites, or 0 where unknown; may be left out where all are.
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
        partner: uint64, the rank of the root or the peer; or a number above `PARTNER_GROUP`, which all ranks of a group
            have, and no others.
        bytes: uint64, of one call's arguments, summed over the calls; docs/formats/recording.md.
        calls: uint64.
        site: as in `Counters`.
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

    Times of ranks come from clocks of their own, and are never compared as moments.

    Attributes:
        rank: int32, the calling rank.
        region, operation: int32, indices into the Profile's names.
        calls: uint64; those that had not returned when the run ended are included.
        time_ns: uint64, inside the calls, over all threads.
        error_ns: uint64, the standard error of `time_ns`: short calls are timed at random.
        site: as in `Counters`.
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
    """Moments of calls that all of their ranks sample: docs/formats/recording.md.

    Times are of the host's clock of samples (`Rank.clock_offset_ns`), the same for all ranks of a host.

    Attributes:
        rank: int32, of MPI_COMM_WORLD.
        communicator: uint64, its name, the same on all members.
        number: uint64, of the call or message among those that share all that a row's class names.
        region, operation, site: int32, of the call that started it, as in `Counters`.
        end_operation, end_site: int32, of the call that completed it: the same of a blocking call.
        level: uint8.
        bytes: uint64.
        enter_ns, exit_ns: int64, when the call that completed it was entered and left.
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


@dataclass(frozen=True, slots=True)
class CollectiveSamples(CallSamples):
    """Moments of collectives, a row for each member's call; in the order of communicator, number, member.

    An instance that all `size` members have stands for 2 to the power of its members' largest level. An instance that
    one of them lacks was dropped there. `number` counts the collectives on the communicator. `bytes` are those of the
    call's arguments as in `Demands`; 0 where unknown. In addition, each rank has its longest instances: they stand for
    themselves.

    Attributes:
        size: uint32, number of processes in the communicator.
        member: uint32, number of this process among them.
        root: int64, a rank of the communicator; -1 where there is none.
        start_ns: int64, when the call that started it was entered.
        is_long: bool, one of the longest of its rank, or one that the rank entered latest: a rank has all of these.
        is_chosen: bool, the hash chooses it; others are kept since they are long, and have level 0.
    """

    size: npt.NDArray[np.uint32]
    member: npt.NDArray[np.uint32]
    root: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    is_long: npt.NDArray[np.bool_]
    is_chosen: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MessageSamples(CallSamples):
    """Moments of messages, a row at each end; in the order of communicator, sender, receiver, tag, number, side.

    `number` counts the messages of one sender, receiver, communicator and tag. `bytes` are `UNKNOWN_BYTES` at the
    receiver.

    Attributes:
        peer: uint32, rank of the other end.
        tag: int32.
        side: uint8, `Side` of `rank`.
        post_ns: int64, when the call that posted it was entered.
    """

    peer: npt.NDArray[np.uint32]
    tag: npt.NDArray[np.int32]
    side: npt.NDArray[np.uint8]
    post_ns: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Transfers(RowArrays):
    """Work requests posted to queue pairs; arrays of one length. Source: the verbs library.

    These are the bytes of `Counters` at a lower layer, with headers of the layers between: never added to them. Rows
    are in the order of rank, region, opcode, pair.

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
    """Bytes that each rank sent and fetched over time, by group of peers; arrays of one length. See IBPROF_INTERVAL.

    The bytes and messages of a rank's rows sum to those of its `Counters` of user data that are not received. Rows are
    in the order of rank, begin_ns, first_peer. Intervals without traffic have no row.

    Attributes:
        rank: int32.
        begin_ns, end_ns: uint64, Unix times. Equal where a rank was killed and the end of the interval is unknown.
        first_peer, last_peer: uint32, ranks at the other end; both are `UNKNOWN_PEER` for peers that are no rank, or
            have no group.
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
    """Time of each rank inside MPI calls over time; arrays of one length. See IBPROF_INTERVAL and IBPROF_TIME.

    The times of a rank sum to those of its `CallTimes`, but for rounding. Rows are in the order of rank, begin_ns.
    Intervals without time inside calls have no row.

    Attributes:
        rank: int32.
        begin_ns, end_ns: uint64, Unix times, as in `Intervals`.
        time_ns: uint64, inside calls, over all threads; short calls are estimated.
    """

    rank: npt.NDArray[np.int32]
    begin_ns: npt.NDArray[np.uint64]
    end_ns: npt.NDArray[np.uint64]
    time_ns: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RegionTimes(RowArrays):
    """Visits and time of each rank in each region; arrays of one length, a row per (rank, region), in that order.

    Attributes:
        rank, region: int32.
        visits, wall_ns, first_ns, last_ns: uint64; the last two are Unix times.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    visits: npt.NDArray[np.uint64]
    wall_ns: npt.NDArray[np.uint64]
    first_ns: npt.NDArray[np.uint64]
    last_ns: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class MessageSizes(RowArrays):
    """Messages by size; arrays of one length, a row per (rank, region, operation, site, direction, kind), in order.

    Attributes:
        messages: uint64 [row, `SIZE_BINS`].
        site: as in `Counters`.
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
    """A marked moment on one rank, with that rank's totals of user data since its start.

    The totals are 0 at BEGIN and END, which must be cheap.
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
        name: of the file or folder it was read from.
        mpi: the MPI library's own name and version.
        command: of rank 0, or of the first recorded rank.
        job: the launcher's name of the job.
        scheduler: the batch system's names of the job; those of rank 0.
        world_size: ranks in MPI_COMM_WORLD, recorded or not; without MPI the number of recorded processes.
        operations_asked: value of IBPROF; empty if all operations were recorded.
        hosts: machines of the recorded ranks.
        ranks: recorded processes, by rank.
        job_hosts: hosts of the job by its launcher or batch system, if known.
        regions, operations: distinct names; regions with the same name on different ranks are one.
        marks: by rank, each rank's in the order in which they were made.
        pairs: distinct pairs of ports; for those of ranks see `communication_matrix.Matrix.to_frame`.
        transfers: between them.
        intervals: traffic over time, if it was recorded.
        interval_times: time inside calls over time, if both were recorded.
        demands: what calls asked for.
        times: calls and the time inside them; empty where times were not recorded.
        collective_samples, message_samples: moments of some of them; empty where times were not recorded.
        sites: distinct places that called MPI.
        sites_without_lines: objects whose places have no lines, and why; a sentence each.
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
        """True where NCCL's proxies were recorded, and no MPI."""
        return bool(self.ranks) and all(rank.source == Source.NCCL for rank in self.ranks)

    @property
    def library(self) -> str:
        """`MPI` or `NCCL`: what moved the bytes."""
        return "NCCL" if self.is_of_nccl else "MPI"

    @property
    def ranks_recorded(self) -> int:
        """Number of recorded ranks of MPI_COMM_WORLD; without MPI, of processes."""
        return sum(rank.rank < self.world_size for rank in self.ranks)
