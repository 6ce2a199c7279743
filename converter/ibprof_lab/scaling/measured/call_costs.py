# SPDX-License-Identifier: Apache-2.0
"""Recorded times of MPI calls, and predicted times of collective operations by the rounds of their algorithms.

Recorded times are those of one rank: the rank with the smallest time inside MPI. This rank is assumed to arrive last at
each collective call, and never to wait. Its whole time in calls thus counts as communication.

A share is the slow-down of messages by shared links: the time of the most loaded link direction, divided by the time of
a single message on a host's link. MPI libraries choose an operation's algorithm by size and number of ranks; the
fastest algorithm is assumed.

Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005, sections 3 to 4.5. L + 2o is the paper's
alpha, and G is the paper's beta. The computing time of reductions is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.rank_placement import place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import NO_LID

DOUBLING = "doubling"
"""Pattern in which rank i communicates with rank i XOR 2^k in round k."""

RING = "ring"
"""Pattern in which each rank sends to the next rank."""

ALL_PAIRS = "all-pairs"
"""Pattern in which each rank sends to every other rank; the rounds overlap."""

ROOT = "root"
"""Pattern in which all messages go to or from one rank, whose link is the bottleneck."""

PATTERNS = (DOUBLING, RING, ALL_PAIRS, ROOT)

Shares = Callable[[str, int], float]
"""Function (pattern, number of ranks) -> share."""

Ints = npt.NDArray[np.int64]

_UNIT = 1 << 20
"""Message size, in bytes, with which shares are computed; the shares do not depend on this size."""

_MOST_PAIRS = 1 << 22
"""Largest number of listed pairs of ranks in `ALL_PAIRS`. If a job has more pairs, only some differences of rank
numbers, evenly spaced, are listed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of an algorithm; all its messages have one communication pattern.

    Attributes:
        pattern: communication pattern, from `PATTERNS`.
        rounds: number of messages that a rank sends one after the other.
        bytes: total bytes that a rank sends in all rounds.
    """

    pattern: str
    rounds: float
    bytes: float


Algorithms = Callable[[int, float], Sequence[Sequence[Stage]]]
"""Function (number of ranks p, bytes s) -> algorithms, each a list of stages; docs/formats/recording.md defines s."""


class MessageTimes(Protocol):
    """Model of a network that predicts the time of a message."""

    def times(self, length: float) -> tuple[float, float]:
        """Return a message's time in seconds, as two terms: one is constant, one is proportional to the length."""


def _rounds(p: int) -> int:
    return (p - 1).bit_length()


def _of_broadcast(p: int, s: float) -> Sequence[Sequence[Stage]]:
    scattered = (p - 1) / p * s
    return (
        [Stage(DOUBLING, _rounds(p), _rounds(p) * s)],
        [Stage(DOUBLING, _rounds(p), scattered), Stage(RING, p - 1, scattered)],
    )


_BY_OPERATIONS: dict[tuple[str, ...], Algorithms] = {
    ("BARRIER",): lambda p, _: ([Stage(DOUBLING, _rounds(p), 0.0)],),
    ("BCAST", "REDUCE"): _of_broadcast,
    ("ALLREDUCE",): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), _rounds(p) * s)],
        [Stage(DOUBLING, 2 * _rounds(p), 2 * (p - 1) / p * s)],
    ),
    ("ALLGATHER", "ALLGATHERV"): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), (p - 1) * s)],
        [Stage(RING, p - 1, (p - 1) * s)],
    ),
    ("ALLTOALL",): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), _rounds(p) * p / 2 * s)],
        [Stage(ALL_PAIRS, p - 1, (p - 1) * s)],
    ),
    ("ALLTOALLV", "ALLTOALLW"): lambda p, s: ([Stage(ALL_PAIRS, p - 1, s)],),
    ("GATHER", "GATHERV", "SCATTER", "SCATTERV"): lambda p, s: ([Stage(ROOT, _rounds(p), (p - 1) * s)],),
    ("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), (p - 1) * s)],
        [Stage(ALL_PAIRS, p - 1, (p - 1) * s)],
    ),
    ("SCAN", "EXSCAN"): lambda p, s: ([Stage(DOUBLING, _rounds(p), _rounds(p) * s)],),
}

ALGORITHMS = {name: algorithms for names, algorithms in _BY_OPERATIONS.items() for name in names}
"""Operation -> algorithms. Nonblocking operations are left out: their time passes in a later wait call."""


def time_stage(stage: Stage, ranks: int, network: MessageTimes, share: Shares) -> float:
    """Return the time of a stage, in seconds."""
    if not stage.rounds:
        return 0.0
    start, moving = network.times(stage.bytes / stage.rounds)
    return stage.rounds * (start + moving * share(stage.pattern, ranks))


def time_collective(operation: str, ranks: int, size: float, network: MessageTimes, share: Shares) -> float:
    """Return the time of a collective operation with its fastest algorithm, in seconds; 0 for a single rank."""
    if ranks < 2:
        return 0.0
    return min(
        math.fsum(time_stage(stage, ranks, network, share) for stage in stages)
        for stages in ALGORITHMS[operation](ranks, size)
    )


def list_messages(pattern: str, ranks: int) -> tuple[Ints, Ints, Ints]:
    """Return sender, receiver and round of each message, int64 [message]; overlapping rounds all have the number 0."""
    all_ranks = np.arange(ranks, dtype=np.int64)
    if pattern == RING:
        return all_ranks, (all_ranks + 1) % ranks, np.zeros(ranks, np.int64)
    if pattern == DOUBLING:
        turns = [(all_ranks, all_ranks ^ (1 << turn)) for turn in range((ranks - 1).bit_length())]
        kept = [to < ranks for _, to in turns]
        return (
            np.concatenate([own[keep] for (own, _), keep in zip(turns, kept, strict=True)]),
            np.concatenate([to[keep] for (_, to), keep in zip(turns, kept, strict=True)]),
            np.repeat(np.arange(len(turns)), [keep.sum() for keep in kept]),
        )
    if pattern == ROOT:
        return all_ranks[1:], np.zeros(ranks - 1, np.int64), np.zeros(ranks - 1, np.int64)
    distances = np.arange(1, ranks)
    if ranks * (ranks - 1) > _MOST_PAIRS:
        distances = np.unique(np.linspace(1, ranks - 1, _MOST_PAIRS // ranks).astype(np.int64))
    return (
        np.tile(all_ranks, len(distances)),
        ((all_ranks + distances[:, None]) % ranks).ravel(),
        np.zeros(ranks * len(distances), np.int64),
    )


@dataclass(slots=True)
class LinkSharing:
    """Shares (slow-down of messages by shared links) for a subnet and a rank placement.

    Attributes:
        subnet: fabric and forwarding tables.
        rule: placement rule, a value of `--placement`.
        slots: number of consecutive ranks on a host; None for the smallest number that gives every rank a slot.
    """

    subnet: Subnet
    rule: str = "packed"
    slots: int | None = None
    _hosts: Hosts = field(init=False)
    _known: dict[tuple[str, int], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._hosts = find_hosts([self.subnet.fabric])

    @property
    def most_ranks(self) -> int | None:
        """Total number of slots of the hosts; None if there is no limit."""
        return len(self._hosts.name) * self.slots if self.slots else None

    def share(self, pattern: str, ranks: int) -> float:
        """Return the mean share over the rounds of a pattern.

        Raises:
            UsageError: the hosts have too few slots for the ranks.
            InconsistentError: a message has no route, the speed of a link is unknown, or no host has a link.
        """
        key = pattern, ranks
        if key not in self._known:
            self._known[key] = self._measure(pattern, ranks)
        return self._known[key]

    def _measure(self, pattern: str, ranks: int) -> float:
        fabric = self.subnet.fabric
        slots = self.slots or -(-ranks // len(self._hosts.name))
        lid = place_ranks_by_rule(self.rule, self._hosts, [fabric], ranks, slots).lid[:, 0]
        source, target, turn = list_messages(pattern, ranks)
        rounds = int(turn.max()) + 1
        is_known = (lid[source] != NO_LID) & (lid[target] != NO_LID)
        apart = is_known & (lid[source] != lid[target])
        loads = spread(
            self.subnet.routes, lid[source[apart]], lid[target[apart]], np.full(int(apart.sum()), _UNIT, np.uint64),
            turn[apart], rounds,
        )  # fmt: skip
        if loads.unrouted or not is_known.all():
            raise InconsistentError(f"{fabric.name}: some of the {ranks} ranks have no route to each other")
        rates = fabric.link_gbps
        of_hosts = rates[(fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)]
        if np.isnan(rates).any() or not len(of_hosts):
            raise InconsistentError(f"{fabric.name}: expected links of known speed")
        busiest = (loads.bytes.max(axis=1) / rates[:, None]).max(axis=0)
        share = busiest * float(np.median(of_hosts)) / _UNIT
        # A share is relative to one message. In `ALL_PAIRS` and `ROOT`, divide by the messages of a rank in its only
        # round.
        each = {ALL_PAIRS: len(source) / ranks, ROOT: float(ranks - 1)}.get(pattern, 1.0)
        return float(share.mean()) / each


MESSAGES = "messages"
"""Group of all operations except blocking collectives: point-to-point calls and waits."""

_VECTORS = ("ALLTOALLV", "ALLTOALLW")


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls of an operation, or of all operations in `MESSAGES`, on the rank `TimedRun.rank`.

    Attributes:
        calls: number of calls; in `MESSAGES`, mean number of messages that a rank sends.
        size: bytes of a call, as `Algorithms` defines them; in `MESSAGES`, mean bytes of a message.
        seconds: total time inside the calls.
    """

    calls: float
    size: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TimedRun:
    """Times and calls of a recorded run.

    Attributes:
        size: problem size n.
        processes: number of ranks p.
        seconds: wall time.
        computing: time outside MPI, in seconds.
        rank: rank whose times are used.
        groups: operation, or `MESSAGES` -> calls.
        notes: sentences about data that is not included.
    """

    name: str
    size: float
    processes: int
    seconds: float
    computing: float
    rank: int
    groups: dict[str, CallGroup]
    notes: tuple[str, ...] = ()

    @property
    def communicating(self) -> float:
        """Time inside MPI, s."""
        return self.seconds - self.computing


def read_calls(run: Profile, size: float) -> TimedRun:
    """Return the times and calls of a run.

    Raises:
        InconsistentError: times were not recorded, the run did not end, or ranks are missing.
    """
    walls = {
        rank.rank: (rank.stop_ns - rank.start_ns - rank.off_ns) / 1e9
        for rank in run.ranks
        if rank.rank < run.world_size and rank.stop_ns is not None and rank.has_times
    }
    if len(walls) < run.world_size:
        raise InconsistentError(
            f"{run.name}: expected a whole run with times of all {run.world_size} ranks, found times of {len(walls)}; "
            "record the run to its end with IBPROF_TIME=1"
        )
    inside = np.zeros(run.world_size)
    np.add.at(inside, run.times.rank, run.times.time_ns / 1e9)
    rank = int(np.argmin(inside))
    seconds, total = walls[rank], float(inside[rank])
    groups = {name: group for name, group in _list_groups(run, rank).items() if group.calls or group.seconds}
    notes = []
    if run.operations_asked:
        notes.append(f"only {run.operations_asked} were recorded: the time of other calls counts as computing")
    return TimedRun(run.name, size, run.world_size, seconds, max(seconds - total, 0.0), rank, groups, tuple(notes))


def _list_groups(run: Profile, rank: int) -> dict[str, CallGroup]:
    times = run.times
    of_rank = times.rank == rank
    found: dict[str, CallGroup] = {}
    waits = 0.0
    for number, name in enumerate(run.operations):
        rows = of_rank & (times.operation == number)
        calls, seconds = int(times.calls[rows].sum()), float(times.time_ns[rows].sum()) / 1e9
        if name in ALGORITHMS:
            found[name] = CallGroup(calls, _size_of(run, number, name), seconds)
        else:
            waits += seconds
    messages, size = _count_messages(run)
    found[MESSAGES] = CallGroup(messages, size, waits)
    return found


def _size_of(run: Profile, operation: int, name: str) -> float:
    """Return bytes per call, by the calls' arguments: the rank with the most; for `_VECTORS`, the mean over ranks."""
    demands = run.demands
    rows = demands.operation == operation
    if not rows.any():
        return 0.0
    asked, calls = np.zeros((2, run.world_size))
    np.add.at(asked, demands.rank[rows], demands.bytes[rows].astype(float))
    np.add.at(calls, demands.rank[rows], demands.calls[rows].astype(float))
    each = np.divide(asked, calls, out=np.zeros_like(asked), where=calls > 0)
    return float(each.mean() if name in _VECTORS else each.max())


def _count_messages(run: Profile) -> tuple[float, float]:
    """Return the mean number per rank, and the mean size, of messages outside blocking collectives."""
    counters = run.counters
    collective = np.array([name in ALGORITHMS for name in run.operations] or [False])
    rows = (
        ~collective[counters.operation]
        & (counters.kind == Kind.USER)
        & (counters.direction != Direction.RECEIVED)
        & (counters.source != Source.VERBS)
        & (counters.peer != counters.rank)
    )
    messages, amount = float(counters.messages[rows].sum()), float(counters.bytes[rows].sum())
    return messages / run.world_size, amount / messages if messages else 0.0
