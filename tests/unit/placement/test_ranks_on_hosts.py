# SPDX-License-Identifier: Apache-2.0
"""With several ranks on a host, placements reduce the loads of hosts' links. Expected times are calculated by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ibprof.native.libraries import load_kernels
from ibprof_converter.analysis.pipeline_options import FabricOptions, no_progress
from ibprof_converter.analysis.pipeline_stages import read_subnets
from ibprof_converter.placement.lower_bound import find_bounds
from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore
from ibprof_converter.placement.starting_placements import (
    divide_along,
    divide_by_traffic,
    packed_slots,
    starting_placements,
)
from ibprof_converter.placement.swap_search import search
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_testing.samples.placements import hosts_on_all_rails, make_demand, make_problem, shuffled_halo

TREE = "xgft:2:4,4:1,4"
"""16 hosts on 4 leaf switches. A leaf has as many uplinks as hosts. All links have 100 Gb/s."""

SECONDS_PER_BYTE = 8e-11


def problem_of(demand: RankTraffic, each: int, fabric: str = TREE) -> PlacementProblem:
    subnets = read_subnets(FabricOptions((fabric,)), no_progress)
    return make_problem(demand, subnets, hosts_on_all_rails(subnets)[1], each)


def place(problem: PlacementProblem, seconds: float = 1.0) -> PlacementScore:
    starts = starting_placements(problem.neighbours, problem.slots, problem.paths, 1)
    return search(problem, list(starts.values()), 1, seconds, find_bounds(problem)).score


def halo(side: int, size: int) -> RankTraffic:
    """Return the traffic of a periodic grid, whose ranks are numbered row by row."""
    grid = np.arange(side * side).reshape(side, side)
    moved = [np.roll(grid, step, axis).ravel() for axis in (0, 1) for step in (-1, 1)]
    return make_demand(np.tile(grid.ravel(), 4), np.concatenate(moved), np.array(size), side * side)


def test_a_halo_is_placed_in_blocks() -> None:
    """A host with a row of 16 ranks sends 2 * 16 messages. A host with a block of 4 x 4 ranks sends 4 * 4 messages."""
    problem = problem_of(halo(16, 10**9), 16)
    rows = problem.score(packed_slots(problem.slots, 256))
    assert rows.bottleneck_seconds == pytest.approx(32 * 10**9 * SECONDS_PER_BYTE)
    found = place(problem)
    assert found.bottleneck_seconds == pytest.approx(1.28)
    assert found.max_seconds <= 0.64 * (1 + 1e-9)


def test_a_known_placement_proves_itself_the_best() -> None:
    """Groups of four exchange most bytes, so each group must be on one host.

    Each host then sends its group's other bytes to the next host.
    """
    rank = np.arange(64)
    inside, across = rank // 4 * 4 + (rank + 1) % 4, (rank + 4) % 64
    demand = make_demand(np.tile(rank, 2), np.append(inside, across), np.repeat([10**10, 10**9], 64), 64)
    problem = problem_of(demand, 4)
    known = problem.score(packed_slots(problem.slots, 64)).bottleneck_seconds
    assert known == pytest.approx(4 * 10**9 * SECONDS_PER_BYTE)
    assert find_bounds(problem).bottleneck_seconds == 0
    assert find_bounds(problem, known).bottleneck_seconds == pytest.approx(known)
    assert find_bounds(problem, 20 * known).bottleneck_seconds < known  # slower placements may divide groups


def test_pairs_that_exchange_are_put_on_one_host() -> None:
    low = np.arange(32)
    demand = make_demand(np.append(low, low + 32), np.append(low + 32, low), np.array(10**9), 64)
    problem = problem_of(demand, 16)
    packed = packed_slots(problem.slots, 64)
    assert problem.load(packed)[problem.paths.between_switches : -1].sum() == 2 * 64 * 10**9
    found = place(problem)
    assert (found.bottleneck_seconds, found.sum_seconds) == (0, 0)


def test_roots_of_gathers_are_put_on_different_hosts() -> None:
    """All ranks send to the 8 ranks of the first host. So 120 ranks of other hosts send to this host."""
    source, root = np.divmod(np.arange(128 * 8), 8)
    problem = problem_of(make_demand(source, root, np.array(10**6), 128), 8)
    packed = problem.score(packed_slots(problem.slots, 128)).bottleneck_seconds
    assert packed == pytest.approx(8 * 120 * 10**6 * SECONDS_PER_BYTE)
    # On separate hosts, each root receives from 120 ranks of other hosts.
    assert place(problem).bottleneck_seconds == pytest.approx(120 * 10**6 * SECONDS_PER_BYTE)
    assert find_bounds(problem).bottleneck_seconds == pytest.approx(120 * 10**6 * SECONDS_PER_BYTE)


def test_a_halo_numbered_at_random_is_as_good_as_from_a_partitioner() -> None:
    """With SharedMap's partition, the busiest link needs 0.32 ms. The search must reach 0.32 ms too."""
    problem = problem_of(shuffled_halo((8, 4, 4), 1), 1, "xgft:2:16,8:1,8")
    assert place(problem, 4.0).max_seconds <= 0.32e-3 * (1 + 1e-9)


def test_earlier_goals_are_kept_by_later_rounds() -> None:
    problem = problem_of(halo(8, 10**6), 4)
    starts = list(starting_placements(problem.neighbours, problem.slots, problem.paths, 1).values())
    short, long = (search(problem, starts, 1, seconds).score for seconds in (1e-9, 0.5))
    assert long <= short == min(problem.score(start) for start in starts)


def test_division_finds_cliques_and_fills_parts_exactly() -> None:
    """12 cliques of 4 ranks, and 4 slots on each host: the partition cuts no edge."""
    generator = np.random.default_rng(1)
    number = generator.permutation(48)
    source, destination = np.divmod(np.arange(48 * 48), 48)
    together = source // 4 == destination // 4
    demand = make_demand(number[source[together]], number[destination[together]], np.array(1000), 48)
    problem = problem_of(demand, 4)
    apart = np.where(np.arange(1, 48) % 4 == 0, 1.0, 0.0)
    slots = divide_by_traffic(problem.neighbours, np.arange(48, dtype=np.uint32), apart, 1)
    assert sorted(slots.tolist()) == list(range(48))
    assert problem.score(slots).sum_seconds == 0


@pytest.mark.parametrize("seed", range(3))
def test_two_grids_joined_by_few_edges_are_cut_there(seed: int) -> None:
    """The least cut is the single edge between a grid of 9 x 10 and a grid of 9 x 11."""
    number = np.random.default_rng(seed).permutation(189)
    pairs = [(row * 21 + column, row * 21 + column + 21) for row in range(8) for column in range(21)]
    pairs += [(row * 21 + column, row * 21 + column + 1) for row in range(9) for column in range(20) if column != 9]
    pairs.append((9, 10))
    source, destination = number[np.array(pairs).T]
    problem = problem_of(make_demand(source, destination, np.array(1000), 189), 16)
    apart = np.where(np.arange(188) == 89, 1.0, 0.0)
    is_first = divide_by_traffic(problem.neighbours, np.arange(189, dtype=np.uint32), apart, seed) < 90
    assert is_first.sum() == 90
    assert (is_first[source] != is_first[destination]).sum() == 1


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_divides_as_plain_python_does(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ranks = int(generator.integers(2, 90))
    source, destination = generator.integers(0, ranks, (2, 4 * ranks))
    neighbours = problem_of(make_demand(source, destination, generator.integers(1, 99, 4 * ranks), ranks), 8).neighbours
    apart = generator.integers(0, 4, ranks - 1).astype(np.float64)
    slots = generator.permutation(ranks).astype(np.uint32)
    owner, volume, kernels = neighbours.owner(), neighbours.volume().astype(np.float64), load_kernels()

    def divide(some: npt.NDArray[np.int64], size: int, depth: int) -> npt.NDArray[np.bool_]:
        inside = np.isin(owner, some) & np.isin(neighbours.rank, some)
        first = np.searchsorted(owner[inside], [*some, ranks]).astype(np.uint64)
        other = np.searchsorted(some, neighbours.rank[inside]).astype(np.uint32)
        arrays: tuple[npt.NDArray[Any], ...] = (first, other, volume[inside])
        graph = kernels.ffi.new("struct ibp_graph *", (len(some), *map(kernels.pointer, arrays)))
        part = np.zeros(len(some), np.uint8)
        kernels.lib.ibp_bisect(graph, size, (seed << 32) + (int(some[0]) << 6) + depth, kernels.pointer(part))
        return np.asarray(part == 0)

    found = divide_by_traffic(neighbours, slots, apart, seed)
    assert found.tolist() == divide_along(slots, apart, divide).tolist()
