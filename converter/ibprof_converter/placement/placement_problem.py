# SPDX-License-Identifier: Apache-2.0
"""The problem of a placement search: traffic between ranks, slots, paths, and the score to minimise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, UsageError
from ibprof.native.libraries import Kernels, load_kernels, sum_exactly
from ibprof_converter.placement.slots import RAIL_LIMIT, RankSlots
from ibprof_converter.placement.switch_paths import SwitchPaths
from ibprof_converter.traffic.adapter_policies import share_out
from ibprof_converter.traffic.traffic_data import RankTraffic

_PATHS_LIMIT = 1 << 22
"""Largest number of paths that are kept in memory. The paths of 4,096 hosts on 256 leaf switches need about 30 MB."""

SlotOfRank = npt.NDArray[np.uint32]
"""The slot of each rank: uint32 [rank]. No two ranks have the same slot."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Traffic between ranks, as a list of neighbours for each rank. Two ranks that exchange bytes are neighbours.

    Attributes:
        first: uint64 [rank + 1], index of each rank's first neighbour.
        rank: uint32 [neighbour], rank number of the neighbour.
        sent, received: int64 [neighbour, row, rail], bytes to and from the neighbour, if the ranks' common rails are
            set `row`.
        row_of_rails: int32 [256], row of each set of rails (a bit mask); -1 if the set does not occur.
    """

    first: npt.NDArray[np.uint64]
    rank: npt.NDArray[np.uint32]
    sent: npt.NDArray[np.int64]
    received: npt.NDArray[np.int64]
    row_of_rails: npt.NDArray[np.int32]

    def of_groups(self, size: int) -> Neighbours:
        """Return the traffic between groups of `size` successive ranks."""
        groups = (len(self.first) - 1) // size
        owner, rank = self.owner().astype(np.int64) // size, self.rank.astype(np.int64) // size
        apart = np.flatnonzero(owner != rank)
        pairs, pair = np.unique(owner[apart] * groups + rank[apart], return_inverse=True)
        sent, received = (np.zeros((len(pairs), *amount.shape[1:]), np.int64) for amount in (self.sent, self.received))
        np.add.at(sent, pair, self.sent[apart])
        np.add.at(received, pair, self.received[apart])
        owner, rank = np.divmod(pairs, max(groups, 1))
        first = np.searchsorted(owner, np.arange(groups + 1)).astype(np.uint64)
        return Neighbours(first, rank.astype(np.uint32), sent, received, self.row_of_rails)

    def volume(self) -> npt.NDArray[np.int64]:
        """Return the sum of the bytes to and from each neighbour: int64 [neighbour]."""
        both: npt.NDArray[np.int64] = (self.sent[:, 0] + self.received[:, 0]).sum(axis=1)
        return both

    def owner(self) -> npt.NDArray[np.uint32]:
        """Return, for each entry of `rank`, the rank that has this neighbour: uint32 [neighbour]."""
        first = self.first.astype(np.int64)
        count = first[1:] - first[:-1]
        return np.repeat(np.arange(len(self.first) - 1), count).astype(np.uint32)


def find_neighbours(demand: RankTraffic, policy: str, sets_of_rails: npt.NDArray[np.uint8], rails: int) -> Neighbours:
    """Sum traffic by pair of ranks, and distribute it over the rails.

    Args:
        policy: rail policy, one of `RAIL_POLICIES`.
        sets_of_rails: uint8 [port], rails of each port as a bit mask.

    Raises:
        UsageError: there are more than `RAIL_LIMIT` rails.
        InconsistentError: the sum of all bytes exceeds 63 bits.
    """
    if rails > RAIL_LIMIT:
        raise UsageError(f"at most {RAIL_LIMIT} rails, found {rails}")
    if sum_exactly(demand.bytes) >= 1 << 63:
        raise InconsistentError("the traffic sums to 2^63 bytes or more")
    flows = np.flatnonzero((demand.source != demand.destination) & (demand.bytes > 0))
    source, destination = demand.source[flows].astype(np.int64), demand.destination[flows].astype(np.int64)
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    pairs, pair = np.unique(low * demand.ranks + high, return_inverse=True)
    sets = sorted({int(a & b) for a in np.unique(sets_of_rails) for b in np.unique(sets_of_rails)}, reverse=True)
    row_of_rails = np.full(256, -1, np.int32)
    # [pair, sender (0: the higher rank, 1: the lower rank), row, rail]
    amounts = np.zeros((len(pairs), 2, len(sets), rails), np.int64)
    for row, number in enumerate(sets):
        row_of_rails[number] = row
        # Bytes between ports without a common rail are counted on rail 0, where they have no route.
        usable = np.array([number >> rail & 1 for rail in range(rails)], np.bool_) if number else np.arange(rails) == 0
        shares = share_out(
            policy,
            np.broadcast_to(usable, (len(flows), rails)),
            demand.source[flows],
            demand.destination[flows],
            demand.bytes[flows],
            demand.messages[flows],
        )
        upwards = (source < destination).astype(np.intp)
        flat = (pair[shares.flow] * 2 + upwards[shares.flow]) * len(sets) + row
        np.add.at(amounts.reshape(-1), flat * rails + shares.rail, shares.bytes.astype(np.int64))
    one, other = np.divmod(pairs, max(demand.ranks, 1))
    owner, rank = np.concatenate([one, other]), np.concatenate([other, one])
    sent = np.concatenate([amounts[:, 1], amounts[:, 0]])
    received = np.concatenate([amounts[:, 0], amounts[:, 1]])
    order = np.lexsort((rank, owner))
    return Neighbours(
        first=np.searchsorted(owner[order], np.arange(demand.ranks + 1)).astype(np.uint64),
        rank=rank[order].astype(np.uint32),
        sent=np.ascontiguousarray(sent[order]),
        received=np.ascontiguousarray(received[order]),
        row_of_rails=row_of_rails,
    )


@dataclass(frozen=True, slots=True, order=True)
class PlacementScore:
    """Score of a placement; the smaller score is better. Two scores are compared by the first attribute that differs.

    Attributes:
        lost: bytes without a route.
        bottleneck_seconds: largest time of any link direction.
        max_seconds: largest time of a link direction between switches.
        sum_seconds: sum of the times of all link directions.
    """

    lost: int
    bottleneck_seconds: float
    max_seconds: float
    sum_seconds: float


class PlacementProblem:
    """Computes loads and scores of placements; traffic, slots and paths are given."""

    hosts_are_alike: bool
    """True if all placements have the same largest time of a host link."""

    def __init__(self, neighbours: Neighbours, slots: RankSlots, paths: SwitchPaths) -> None:
        self.neighbours = neighbours
        self.slots = slots
        self.paths = paths
        self.ranks = len(neighbours.first) - 1
        self._kernels: Kernels = load_kernels()
        arrays: dict[str, npt.NDArray[Any]] = {
            "first": neighbours.first,
            "neighbour": neighbours.rank,
            "sent": neighbours.sent,
            "received": neighbours.received,
            "host_of_slot": slots.host_of_slot,
            "port_of_slot": slots.port_of_slot,
            "host_first": slots.first_slot_of_host,
            "is_numbered": slots.is_numbered,
            "rails_of_port": slots.rails,
            "row_of_rails": neighbours.row_of_rails,
            "group_of_host": slots.group,
            "group_first": slots.first_slot_of_group,
            "leaf_of_port": paths.leaf_of_port,
            "leaf_switch": paths.leaf_switch,
            "lid": paths.lid,
            "position_first": paths.first_direction,
            "position": paths.position,
            "out_of_port": paths.out_of_port,
            "into_port": paths.into_port,
            "seconds_per_byte": paths.seconds_per_byte,
        }
        self._keep = arrays  # keep a reference: the C struct points into these arrays
        self._routes = self._kernels.ffi.new("struct ibp_routes *[]", [routes.handle for routes in paths.routes])
        self.c = self._kernels.ffi.new(
            "struct ibp_placement_problem *",
            {
                "ranks": self.ranks,
                "slots": slots.count,
                "ports": len(slots.lid),
                "rails": slots.lid.shape[1],
                "rows": neighbours.sent.shape[1],
                "leaves": paths.leaves,
                "ends": len(paths.rail),
                "between": paths.between_switches,
                "has_several": int(slots.has_several) << slots.is_whole,
                "together": slots.together,
                "routes": self._routes,
                **{name: self._kernels.pointer(array) for name, array in arrays.items()},
            },
        )
        self._keep_paths()
        own = paths.seconds_per_byte[paths.between_switches : -1]
        on_all = (slots.rails == (1 << slots.lid.shape[1]) - 1).all()
        # Hosts are alike if each has one slot and all rails, and all host links have the same rate.
        self.hosts_are_alike = bool(on_all and not slots.has_several and len(np.unique(own)) <= 1)

    def space_for_path(self) -> npt.NDArray[np.uint32]:
        """Return an array with space for one path."""
        return np.zeros(2 + max(len(routes.switch_node) for routes in self.paths.routes), np.uint32)

    def load(self, slot_of_rank: SlotOfRank) -> npt.NDArray[np.int64]:
        """Return the bytes on each link direction of `paths` with a placement: int64 [end]."""
        load = np.zeros(len(self.paths.rail), np.int64)
        pointer = self._kernels.pointer
        space = self.space_for_path()
        self._kernels.lib.ibp_placement_load(self.c, pointer(space), pointer(slot_of_rank), pointer(load))
        return load

    def score(self, slot_of_rank: SlotOfRank) -> PlacementScore:
        """Return the score of a placement."""
        return self.score_load(self.load(slot_of_rank))

    def score_load(self, load: npt.NDArray[np.int64]) -> PlacementScore:
        """Return the score of a placement from the bytes on each link direction."""
        score = self._kernels.ffi.new("struct ibp_placement_score *")
        self._kernels.lib.ibp_placement_score_load(self.c, self._kernels.pointer(load), score)
        return score_of(score)

    def host_seconds(self, load: npt.NDArray[np.int64]) -> float:
        """Return the largest time of a host's link direction, in seconds, from the bytes on each link direction."""
        own = slice(self.paths.between_switches, -1)
        return float((load[own] * self.paths.seconds_per_byte[own]).max(initial=0.0))

    def _keep_paths(self) -> None:
        pairs = self.paths.lid.shape[0] * self.paths.leaves * self.paths.lid.shape[1]
        if pairs > _PATHS_LIMIT:
            return
        kernels, space = self._kernels, self.space_for_path()
        first = np.zeros(pairs + 1, np.uint32)
        arguments = (self.c, kernels.pointer(space), kernels.pointer(first))
        paths = np.zeros(kernels.lib.ibp_placement_paths(*arguments, kernels.ffi.NULL), np.uint32)
        kernels.lib.ibp_placement_paths(*arguments, kernels.pointer(paths))
        self._keep |= {"path_first": first, "paths": paths}
        self.c.path_first, self.c.paths = kernels.pointer(first), kernels.pointer(paths)


def score_of(score: Any) -> PlacementScore:
    """Convert a `struct ibp_placement_score` of the C kernels."""
    return PlacementScore(int(score.lost), float(score.most), float(score.most_between), float(score.sum))
