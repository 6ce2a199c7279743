# SPDX-License-Identifier: Apache-2.0
"""Better placements: the kernel against a search in plain Python, its times against those of the report's loads, and
what it must gain on the cases that it is made for.
"""

from __future__ import annotations

import math
import statistics
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.placement import swap_search as search_module
from ibprof_converter.placement.launcher_files import placement_csv
from ibprof_converter.placement.lower_bound import bound_max_seconds
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank, score_load
from ibprof_converter.placement.starting_placements import fabric_aware_slots, packed_slots, random_slots, spread_slots
from ibprof_converter.placement.swap_search import ROUNDS, RoundSettings, SearchRound, search
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.loaded_links import load_links
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.placements import (
    hosts_on_all_rails,
    make_demand,
    make_problem,
    samplesort,
    shuffled_halo,
    transpose,
)

DUAL = ("dualrail/rail1", "dualrail/rail2")
WORD = (1 << 64) - 1


def rails(*samples: str) -> list[Subnet]:
    return [load_sample(sample, IBDIAGNET) for sample in samples]


class PlainSearch:
    """The search of the kernel, written for reading: loads are added up anew for each proposal."""

    def __init__(self, problem: PlacementProblem, start: SlotOfRank, how: RoundSettings, seed: int, work: int) -> None:
        self.problem, self.how, self.state, self.all_work = problem, how, seed, work
        self.slot_of_rank = start.tolist()
        self.rank_at = dict(zip(self.slot_of_rank, range(problem.ranks), strict=True))
        score = problem.score(start)
        self.scale = score.max_seconds
        self.best = [*self.slot_of_rank]
        self.best_score = score
        self.energy = math.fsum(self.costs(self.loads(self.slot_of_rank)))

    def loads(self, slot_of_rank: list[int]) -> np.ndarray:
        problem = self.problem
        neighbours, slots, paths = problem.neighbours, problem.slots, problem.paths
        load = np.zeros(len(paths.rail), np.int64)
        for number, (owner, other) in enumerate(zip(neighbours.owner(), neighbours.rank, strict=True)):
            here, there = slot_of_rank[owner], slot_of_rank[other]
            if slots.host_of_slot[here] == slots.host_of_slot[there]:
                continue
            a, b = slots.port_of_slot[here], slots.port_of_slot[there]
            row = neighbours.row_of_rails[slots.rails[a] & slots.rails[b]]
            for rail, amount in enumerate(neighbours.sent[number, row]):
                load[paths.between(rail, int(a), int(b))] += amount
        return load

    def costs(self, load: np.ndarray) -> list[float]:
        power = 2**self.how.doublings
        return [(each / self.scale) ** power for each in load * self.problem.paths.seconds_per_byte]

    def draw(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
        return z ^ z >> 31

    def below(self, limit: int) -> int:
        return (self.draw() >> 32) * limit >> 32

    def draw_slot(self, rank: int) -> int:
        neighbours, slots = self.problem.neighbours, self.problem.slots
        first, last = neighbours.first[rank : rank + 2].tolist()
        if first == last or self.draw() >> 63:
            return self.below(slots.count)
        other = neighbours.rank[first + self.below(last - first)]
        group = slots.group[slots.host_of_slot[self.slot_of_rank[other]]]
        begin, end = map(int, slots.first_slot_of_group[group : group + 2])
        return begin + self.below(end - begin)

    def propose(self, temperature: float) -> None:
        rank = self.below(self.problem.ranks)
        slot = self.draw_slot(rank)
        threshold = self.energy - self.energy * temperature * math.log(((self.draw() >> 11) + 1) / 2**53)
        host_of_slot = self.problem.slots.host_of_slot
        if host_of_slot[slot] == host_of_slot[self.slot_of_rank[rank]]:
            return
        changed = [*self.slot_of_rank]
        changed[rank] = slot
        if slot in self.rank_at:
            changed[self.rank_at[slot]] = self.slot_of_rank[rank]
        changed = self.problem.slots.number(np.array(changed, np.uint32)).tolist()
        load = self.loads(changed)
        energy = math.fsum(self.costs(load))
        if energy <= threshold:
            self.slot_of_rank, self.energy = changed, energy
            self.rank_at = dict(zip(changed, range(self.problem.ranks), strict=True))


@pytest.mark.parametrize("samples", [("testbed44",), DUAL, ("xgft3-512",)])
@pytest.mark.parametrize("slots", [1, 2])
def test_the_kernel_takes_the_steps_of_a_search_in_plain_python(samples: tuple[str, ...], slots: int) -> None:
    subnets = rails(*samples)
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(7, 3), subnets, chosen[::3][:9], slots)
    how = RoundSettings(3, 1.0, 1.0, 1.0)  # one temperature, since that of the kernel falls with its own count of work
    start = random_slots(problem.slots, problem.ranks, 1)
    plain = PlainSearch(problem, start, how, 42, 1 << 60)
    kernel = SearchRound(problem, start, problem.score(start), how, 42, 1 << 60)
    moved = 0
    for _ in range(150):
        before = [*plain.slot_of_rank]
        plain.propose(1.0)
        kernel.advance(1)
        moved += before != plain.slot_of_rank
        assert kernel.slot_of_rank.tolist() == plain.slot_of_rank
        assert kernel.energy == pytest.approx(plain.energy, rel=1e-9)
    assert moved > 20
    assert moved == kernel.accepted or slots > 1  # two slot_of_rank of one host are one place


def test_how_the_work_is_cut_into_calls_does_not_change_the_result() -> None:
    subnets = rails(*DUAL)
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(shuffled_halo((4, 4, 2), 1), subnets, chosen)
    start = packed_slots(problem.slots, problem.ranks)
    results = []
    for step in (7_001, 10_000_000):
        one = SearchRound(problem, start, problem.score(start), ROUNDS[0], 5, 400_000)
        while not one.done:
            one.advance(step)
        results.append((one.best.tolist(), one.score, one.proposals))
    assert results[0] == results[1]


def test_the_same_seed_and_time_give_the_same_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_WORK_PER_SECOND", 20_000)  # so little that no machine is too busy for it
    subnets = rails(*DUAL)
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(40, 1), subnets, chosen)
    start = random_slots(problem.slots, 40, 9)
    first, again, other = (search(problem, [start], seed, seconds=60) for seed in (7, 7, 8))
    assert {first.stopped_by_clock, again.stopped_by_clock, other.stopped_by_clock} == {False}
    assert first.slot_of_rank.tolist() == again.slot_of_rank.tolist() != other.slot_of_rank.tolist()
    assert (first.score, first.proposals, first.accepted) == (again.score, again.proposals, again.accepted)


def seconds_of_the_report(
    problem: PlacementProblem, demand: RankTraffic, subnets: list[Subnet], slot_of_rank: SlotOfRank, file: Path
) -> float:
    """The largest time between switches, by the way that ibprof-report goes."""
    hosts, _ = hosts_on_all_rails(subnets)
    names = [problem.slots.name[site] for site in problem.slots.host_of_slot[slot_of_rank]]
    file.write_text(placement_csv(names))
    fabrics = [subnet.fabric for subnet in subnets]
    placed = map_to_lids(demand, hosts, fabrics, str(file), "split")
    greatest = 0.0
    for fabric, load in zip(fabrics, load_links(placed, subnets).by_rail, strict=True):
        between = (fabric.node_kind[fabric.link_node] == 1).all(axis=1)
        seconds = load[between].sum(axis=2) * 8 / (fabric.link_gbps[between, np.newaxis] * 1e9)
        greatest = max(greatest, float(seconds.max(initial=0)))
    return greatest


@pytest.mark.parametrize("samples", [DUAL, ("xgft3-512",), ("oversub-faulty",), ("quirks-small",)])
def test_times_are_those_of_the_reports_loads(samples: tuple[str, ...], tmp_path: Path) -> None:
    subnets = rails(*samples)
    _, chosen = hosts_on_all_rails(subnets)
    demand = samplesort(12, 2)
    for slots in (3,) if len(chosen) < 12 else (1, 3):
        problem = make_problem(demand, subnets, chosen, slots)
        for slot_of_rank in (random_slots(problem.slots, 12, 4), spread_slots(problem.slots, 12)):
            expected = seconds_of_the_report(problem, demand, subnets, slot_of_rank, tmp_path / "placement.csv")
            assert problem.score(slot_of_rank).max_seconds == pytest.approx(expected, rel=1e-12)


CASES = {
    "samplesort": samplesort(128, 0),
    "halo": shuffled_halo((8, 4, 4), 1),
    "transpose": transpose(128, 8),
}


@pytest.mark.parametrize("own", [False, True], ids=["free", "own"])
@pytest.mark.parametrize("case", CASES)
def test_it_beats_random_and_packed_on_the_dual_rail_fabric(case: str, own: bool) -> None:
    subnets = rails(*DUAL)
    _, chosen = hosts_on_all_rails(subnets)
    if own:  # the job's own hosts are scattered
        chosen = sorted(np.random.default_rng(5).choice(chosen, 128, replace=False).tolist())
    problem = make_problem(CASES[case], subnets, chosen)
    rules = [packed_slots(problem.slots, 128), spread_slots(problem.slots, 128)]
    aware = fabric_aware_slots(problem.neighbours, problem.slots, problem.paths)
    found = search(problem, [*rules, *aware.values()], seed=1, seconds=5.0)
    randoms = [problem.score(random_slots(problem.slots, 128, seed)).max_seconds for seed in range(20)]
    best = found.score.max_seconds
    assert best < min(randoms)
    assert best < problem.score(rules[0]).max_seconds
    if not own:
        assert best < 0.7 * statistics.median(randoms)
    assert bound_max_seconds(problem) <= best
    assert sorted(set(found.slot_of_rank.tolist())) == sorted(found.slot_of_rank.tolist())
    again = problem.score(found.slot_of_rank)
    assert (again.lost, again.max_seconds) == (0, best)
    assert again.squares == pytest.approx(found.score.squares)


def test_sub_communicators_that_fit_on_leaf_switches_need_no_link_between_them() -> None:
    subnets = rails("xgft3-1296")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(transpose(128, 8), subnets, chosen)
    grouped = fabric_aware_slots(problem.neighbours, problem.slots, problem.paths)["grouped"]
    assert problem.score(grouped).max_seconds == 0


def test_the_result_is_never_worse_than_a_start() -> None:
    subnets = rails("xgft3-512")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(40, 1), subnets, chosen)
    start = random_slots(problem.slots, 40, 9)
    found = search(problem, [start], seed=1, seconds=1e-9)
    assert found.score <= problem.score(start)


def every_placement(slot_of_rank: int, ranks: int) -> list[SlotOfRank]:
    return [np.array(each, np.uint32) for each in permutations(range(slot_of_rank), ranks)]


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_no_placement_is_below_the_bound_and_the_best_of_all_is_found(seed: int, slots: int) -> None:
    subnets = rails("quirks-small" if seed % 2 else "xgft3-512")
    _, chosen = hosts_on_all_rails(subnets)
    generator = np.random.default_rng(seed)
    picked = sorted(generator.choice(chosen, 6 // slots, replace=False).tolist())
    source, destination = generator.integers(0, 5, (2, 14))
    demand = make_demand(source, destination, generator.integers(1, 1000, 14), 5)
    problem = make_problem(demand, subnets, picked, slots)
    scores = [problem.score(slot_of_rank) for slot_of_rank in every_placement(problem.slots.count, 5)]
    best = min(scores)
    assert bound_max_seconds(problem) <= best.max_seconds * (1 + 1e-12)
    found = search(problem, [packed_slots(problem.slots, 5)], seed=1, seconds=0.5)
    assert found.score.max_seconds == pytest.approx(best.max_seconds)


def test_the_bound_is_more_than_nothing_where_leaves_are_too_small() -> None:
    subnets = rails("xgft3-1296")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(128, 0), subnets, chosen)
    packed = problem.score(packed_slots(problem.slots, 128)).max_seconds
    assert 0.9 * packed < bound_max_seconds(problem) <= packed


def test_what_does_not_arrive_is_reported_and_avoided() -> None:
    subnets = rails("xgft3-1296-partial")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(16, 1), subnets, chosen)
    start = random_slots(problem.slots, 16, 3)
    score = problem.score(start)
    assert score.lost > 0
    found = search(problem, [start], seed=1, seconds=2.0)
    assert found.score.lost < score.lost


def test_loads_without_times_of_paths_that_do_not_arrive() -> None:
    score = score_load(np.array([5, 7, 9]), np.array([1.0, 2.0, 1000.0]))
    assert (score.lost, score.max_seconds, score.squares) == (9, 14.0, 221.0)
