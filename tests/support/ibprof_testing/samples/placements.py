# SPDX-License-Identifier: Apache-2.0
"""Traffic of programs that are faster with a better placement of ranks, and placement problems with this traffic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.placement.placement_problem import PlacementProblem, find_neighbours
from ibprof_converter.placement.slots import assign_slots
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.traffic_data import ALL, RankTraffic

Integers = npt.NDArray[np.integer]


def make_demand(source: Integers, destination: Integers, amount: Integers, ranks: int) -> RankTraffic:
    """Make traffic from rows (source, destination, amount). Rows from a rank to itself are left out."""
    other = source != destination
    nothing = np.zeros(int(other.sum()), np.int32)
    return RankTraffic(
        source=source[other].astype(np.int32),
        destination=destination[other].astype(np.int32),
        bytes=np.broadcast_to(amount, source.shape)[other].astype(np.uint64),
        messages=np.ones(len(nothing), np.uint64),
        region=nothing,
        operation=nothing,
        regions=(ALL,),
        operations=(ALL,),
        ranks=ranks,
        unmapped={},
        origin="synthetic",
    )


def samplesort(ranks: int, seed: int) -> RankTraffic:
    """Return the traffic of a samplesort: all to all. Each rank receives a bucket, and buckets differ in size."""
    generator = np.random.default_rng(seed)
    bucket = generator.dirichlet(np.full(ranks, 30.0))
    source, destination = np.divmod(np.arange(ranks * ranks), ranks)
    jitter = 1 + 0.05 * generator.standard_normal(ranks * ranks)
    return make_demand(source, destination, (bucket[destination] * jitter * 1e9 / ranks).astype(np.int64), ranks)


def shuffled_halo(sides: Sequence[int], seed: int) -> RankTraffic:
    """Return the traffic of an exchange between neighbours in a periodic grid of ranks in random order."""
    ranks = int(np.prod(sides))
    number = np.random.default_rng(seed).permutation(ranks)
    grid = np.arange(ranks).reshape(sides)
    moved = [(axis, step) for axis in range(len(sides)) for step in (-1, 1)]
    source = np.concatenate([grid.ravel()] * len(moved))
    destination = np.concatenate([np.roll(grid, step, axis).ravel() for axis, step in moved])
    return make_demand(number[source], number[destination], np.array(1_000_000), ranks)


def transpose(ranks: int, communicators: int) -> RankTraffic:
    """Return the traffic of an all-to-all in each of n sub-communicators, which contain every n-th rank."""
    source, destination = np.divmod(np.arange(ranks * ranks), ranks)
    together = source % communicators == destination % communicators
    return make_demand(source[together], destination[together], np.array(1_000_000), ranks)


def hosts_on_all_rails(subnets: Sequence[Subnet]) -> tuple[Hosts, list[int]]:
    """Return the hosts of all rails, and the indices of the hosts that are on every rail."""
    hosts = find_hosts([subnet.fabric for subnet in subnets])
    return hosts, np.flatnonzero((hosts.lid > 0).all(axis=1)).tolist()


def make_problem(
    demand: RankTraffic,
    subnets: Sequence[Subnet],
    chosen: Sequence[int],
    each: int = 1,
    policy: str = "split",
    whole: int | None = None,
) -> PlacementProblem:
    """Make a placement problem from traffic and hosts. All hosts have the same number of slots."""
    hosts = find_hosts([subnet.fabric for subnet in subnets])
    slots = assign_slots(hosts, dict.fromkeys(chosen, each), demand.ranks, whole=whole)
    neighbours = find_neighbours(demand, policy, slots.rails, len(subnets))
    return PlacementProblem(neighbours, slots, find_switch_paths(subnets, slots.lid))
