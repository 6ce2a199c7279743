# SPDX-License-Identifier: Apache-2.0
"""Time of collective operations by the rounds of their algorithms, including link sharing between messages.

The fastest algorithm of an operation counts, since MPI libraries choose by size and number of ranks. A share is the
time of the most loaded link direction, divided by the time of a single message on a host's link. It is the inverse of
an effective bandwidth; for the last round of `DOUBLING` this is a bisection bandwidth.

Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005, sections 3 to 4.5. Their alpha is L + 2o
here, their beta is G. The computation in reductions is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
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
"""Pattern in which each rank sends to every other rank, one per round."""

ROOT = "root"
"""Pattern in which all messages go to or from one rank, whose link is the bottleneck."""

PATTERNS = (DOUBLING, RING, ALL_PAIRS, ROOT)

Shares = Callable[[str, int], float]
"""Function of pattern and number of ranks: time of the most loaded link / time of a single message."""

Ints = npt.NDArray[np.int64]

_UNIT = 1 << 20
"""Bytes of each message; only ratios count."""

_MOST_PAIRS = 1 << 22
"""Largest number of pairs; with more ranks, shifts sample the pairs."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of an algorithm.

    Attributes:
        pattern: communication pattern, from `PATTERNS`.
        rounds: number of consecutive messages of a rank.
        bytes: total bytes that a rank sends in all rounds.
    """

    pattern: str
    rounds: float
    bytes: float


Algorithms = Callable[[int, float], Sequence[Sequence[Stage]]]
"""Algorithms for p ranks and s bytes, each as stages; s as in the table of docs/formats/recording.md."""


class MessageTimes(Protocol):
    """Times of a message."""

    def times(self, length: float) -> tuple[float, float]:
        """Return the part independent of the length and the part proportional to it, in seconds."""


def _rounds(p: int) -> int:
    return (p - 1).bit_length()


_Stages = Sequence[Sequence[Stage]]


def _of_broadcast(p: int, s: float) -> _Stages:
    scattered = (p - 1) / p * s
    return (
        [Stage(DOUBLING, _rounds(p), _rounds(p) * s)],
        [Stage(DOUBLING, _rounds(p), scattered), Stage(RING, p - 1, scattered)],
    )


def _of_all_reduce(p: int, s: float) -> _Stages:
    lg = _rounds(p)
    return [Stage(DOUBLING, lg, lg * s)], [Stage(DOUBLING, 2 * lg, 2 * (p - 1) / p * s)]


def _of_all_to_all(p: int, s: float) -> _Stages:
    lg = _rounds(p)
    return [Stage(DOUBLING, lg, lg * p / 2 * s)], [Stage(ALL_PAIRS, p - 1, (p - 1) * s)]


_BY_OPERATIONS: dict[tuple[str, ...], Algorithms] = {
    ("BARRIER",): lambda p, _: ([Stage(DOUBLING, _rounds(p), 0.0)],),
    ("BCAST", "REDUCE"): _of_broadcast,
    ("ALLREDUCE",): _of_all_reduce,
    ("ALLGATHER", "ALLGATHERV"): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), (p - 1) * s)],
        [Stage(RING, p - 1, (p - 1) * s)],
    ),
    ("ALLTOALL",): _of_all_to_all,
    ("ALLTOALLV", "ALLTOALLW"): lambda p, s: ([Stage(ALL_PAIRS, p - 1, s)],),
    ("GATHER", "GATHERV", "SCATTER", "SCATTERV"): lambda p, s: ([Stage(ROOT, _rounds(p), (p - 1) * s)],),
    ("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"): lambda p, s: (
        [Stage(DOUBLING, _rounds(p), (p - 1) * s)],
        [Stage(ALL_PAIRS, p - 1, (p - 1) * s)],
    ),
    ("SCAN", "EXSCAN"): lambda p, s: ([Stage(DOUBLING, _rounds(p), _rounds(p) * s)],),
}

ALGORITHMS = {name: algorithms for names, algorithms in _BY_OPERATIONS.items() for name in names}
"""Algorithms by operation. Nonblocking operations spend their time in a later wait, and are not included."""


def time_stage(stage: Stage, ranks: int, network: MessageTimes, share: Shares) -> float:
    """Return the time of a stage, in seconds."""
    if not stage.rounds:
        return 0.0
    start, moving = network.times(stage.bytes / stage.rounds)
    return stage.rounds * (start + moving * share(stage.pattern, ranks))


def time_collective(operation: str, ranks: int, size: float, network: MessageTimes, share: Shares) -> float:
    """Return the time of one collective operation by its fastest algorithm, in seconds; 0 for a single rank."""
    if ranks < 2:
        return 0.0
    return min(
        math.fsum(time_stage(stage, ranks, network, share) for stage in stages)
        for stages in ALGORITHMS[operation](ranks, size)
    )


def list_messages(pattern: str, ranks: int) -> tuple[Ints, Ints, Ints]:
    """Return sender, receiver and round of each message, int64 [message]; rounds that may overlap share a number."""
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
    """Shares on one subnet for a rank placement.

    Attributes:
        subnet: fabric and forwarding tables.
        rule: placement rule, as for `--placement`.
        slots: number of consecutive ranks on a host; None for as few as possible.
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
        """Number of ranks that fit on the hosts; None for any number."""
        return len(self._hosts.name) * self.slots if self.slots else None

    def share(self, pattern: str, ranks: int) -> float:
        """Return the share of a pattern, averaged over its rounds.

        Raises:
            UsageError: too many ranks for the hosts.
            InconsistentError: a message has no route, or no link has a known speed.
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
        # A rank sends the messages of all rounds in sequence; the unit of a share is the time of one of them.
        each = {ALL_PAIRS: len(source) / ranks, ROOT: float(ranks - 1)}.get(pattern, 1.0)
        return float(share.mean()) / each
