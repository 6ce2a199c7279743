# SPDX-License-Identifier: Apache-2.0
"""The placement search takes the steps of a search in plain Python, and predicts the report's times."""

from __future__ import annotations

import math
import statistics
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.cli.place import placement_csv
from ibprof_converter.placement import swap_search as search_module
from ibprof_converter.placement.lower_bound import bound_max_seconds, find_bounds
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank
from ibprof_converter.placement.slots import hold_together
from ibprof_converter.placement.starting_placements import (
    fabric_aware_slots,
    packed_slots,
    random_slots,
    spread_slots,
    starting_placements,
)
from ibprof_converter.placement.swap_search import Energy, Goal, SearchRound, search
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import load_links
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
    """The kernel's search in plain Python, which recomputes all loads for each proposal."""

    def __init__(self, problem: PlacementProblem, start: SlotOfRank, how: Energy, seed: int) -> None:
        self.problem, self.how, self.state = problem, how, seed
        self.slot_of_rank = start.tolist()
        self.rank_at = dict(zip(self.slot_of_rank, range(problem.ranks), strict=True))
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
        return [each**power for each in load * self.how.unit]

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
        kind = self.draw() >> 62 if last > first else 0
        if kind == 0 or (kind == 1 and not slots.has_several):
            return self.below(slots.count)
        host = slots.host_of_slot[self.slot_of_rank[neighbours.rank[first + self.below(last - first)]]]
        if slots.has_several and kind > 1:
            begin, end = map(int, slots.first_slot_of_host[host : host + 2])
        else:
            begin, end = map(int, slots.first_slot_of_group[slots.group[host] : slots.group[host] + 2])
        return begin + self.below(end - begin)

    def change(self, rank: int, slot: int, hosts: bool) -> list[int] | None:
        """Return the slots of the ranks after the change; None if the change is impossible."""
        slots, changed = self.problem.slots, [*self.slot_of_rank]
        here, there = (int(slots.host_of_slot[each]) for each in (changed[rank], slot))
        if here == there:
            return None
        if not hosts and not (slots.is_whole and slot not in self.rank_at):
            size = slots.together
            old, new = self.slot_of_rank[rank] // size * size, slot // size * size
            for place in range(size):
                changed[self.rank_at[old + place]] = new + place
                if new + place in self.rank_at:
                    changed[self.rank_at[new + place]] = old + place
            return changed
        a, b = (int(slots.first_slot_of_host[host]) for host in (here, there))
        if slots.first_slot_of_host[here + 1] - a != slots.first_slot_of_host[there + 1] - b:
            return None
        for other, at in enumerate(self.slot_of_rank):
            if slots.host_of_slot[at] in {here, there}:
                changed[other] = at - a + b if slots.host_of_slot[at] == here else at - b + a
        return changed if self.rank_at else None

    def propose(self, temperature: float) -> None:
        rank = self.below(self.problem.ranks)
        hosts = self.problem.slots.has_several and self.draw() % (2 if self.problem.slots.is_whole else 8) == 0
        changed = self.change(rank, self.draw_slot(rank), hosts)
        if changed is None:
            return
        threshold = self.energy - self.energy * temperature * math.log(((self.draw() >> 11) + 1) / 2**53)
        changed = self.problem.slots.number(np.array(changed, np.uint32)).tolist()
        load, now = self.loads(changed), self.loads(self.slot_of_rank)
        if ((load > now) & (load > self.how.limit)).any():
            return
        energy = math.fsum(self.costs(load))
        if energy <= threshold:
            self.slot_of_rank, self.energy = changed, energy
            self.rank_at = dict(zip(changed, range(self.problem.ranks), strict=True))


SEARCHED = [("testbed44",), DUAL, ("xgft3-512",)]


@pytest.mark.parametrize(
    ("samples", "slots", "goal", "together"),
    [
        *(
            pytest.param(samples, slots, goal, 1, marks=[] if (place + slots + turn) % 3 == 0 else pytest.mark.full)
            for place, samples in enumerate(SEARCHED)
            for slots in (1, 2)
            for turn, goal in enumerate(Goal)
        ),
        *((samples, 4, Goal.BOTTLENECK, 2) for samples in SEARCHED[:2]),
    ],
)
def test_the_kernel_takes_the_steps_of_a_search_in_plain_python(
    samples: tuple[str, ...], slots: int, goal: Goal, together: int
) -> None:
    subnets = rails(*samples)
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(7 * together, 3), subnets, chosen[::3][:9], slots)
    held = hold_together(problem.slots, together)
    problem = PlacementProblem(problem.neighbours, held, problem.paths)
    start = random_slots(problem.slots, problem.ranks, 1)
    score = problem.score(start)
    how = Energy.towards(goal, problem, score, 3)
    heat = 1.0 if goal is Goal.BOTTLENECK else 10.0
    plain = PlainSearch(problem, start, how, 42)
    kernel = SearchRound(problem, start, score, how, (heat, heat), 42, 1 << 60)
    moved = 0
    for _ in range(80):
        before = [*plain.slot_of_rank]
        plain.propose(heat)
        kernel.advance(1)
        moved += before != plain.slot_of_rank
        assert kernel.slot_of_rank.tolist() == plain.slot_of_rank
        assert kernel.energy == pytest.approx(plain.energy, rel=1e-9)
        if goal is not Goal.BOTTLENECK:
            assert problem.score(kernel.slot_of_rank).bottleneck_seconds <= max(
                score.bottleneck_seconds, problem.score(kernel.slot_of_rank).max_seconds
            )
        assert held.keeps_groups(kernel.slot_of_rank)
    assert moved > (10 if goal is Goal.BOTTLENECK else 0)


def test_how_the_work_is_cut_into_calls_does_not_change_the_result() -> None:
    subnets = rails(*DUAL)
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(shuffled_halo((4, 4, 2), 1), subnets, chosen)
    start = packed_slots(problem.slots, problem.ranks)
    score = problem.score(start)
    results = []
    for step in (7_001, 10_000_000):
        one = SearchRound(
            problem, start, score, Energy.towards(Goal.SWITCHES, problem, score, 2), (0.03, 1e-4), 5, 400_000
        )
        while not one.done:
            one.advance(step)
        results.append((one.best.tolist(), one.score, one.proposals))
    assert results[0] == results[1]


def test_the_same_seed_and_time_give_the_same_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_WORK_PER_SECOND", 20_000)  # few steps, so that --time ends no search
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
    """Return the largest time of a link direction between switches, as ibprof-report computes it."""
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
    if own:  # the job's present hosts are scattered
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
    assert (again.lost, again.bottleneck_seconds, again.max_seconds) == (0, found.score.bottleneck_seconds, best)
    assert again.sum_seconds == pytest.approx(found.score.sum_seconds)


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


def test_ranks_that_fill_hosts_never_leave_a_free_slot_on_one() -> None:
    """After each step, the job fills 7 of 16 hosts with two slots each. `PlainSearch` makes the same step."""
    subnets = rails("xgft3-512")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(14, 2), subnets, chosen[::3][:16], 2, whole=2)
    starts = starting_placements(problem.neighbours, problem.slots, problem.paths, 1)
    assert {"packed", "spread"} <= set(starts)
    placements = [*starts.values(), *(random_slots(problem.slots, 14, seed) for seed in range(3))]
    score = problem.score(placements[-1])
    how = Energy.towards(Goal.BOTTLENECK, problem, score, 3)
    plain = PlainSearch(problem, placements[-1], how, 42)
    kernel = SearchRound(problem, placements[-1], score, how, (1.0, 1.0), 42, 1 << 60)
    used = set()
    for _ in range(120):
        plain.propose(1.0)
        kernel.advance(1)
        assert kernel.slot_of_rank.tolist() == plain.slot_of_rank
        used.add(tuple(np.unique(problem.slots.host_of_slot[plain.slot_of_rank]).tolist()))
        placements.append(kernel.slot_of_rank.copy())
    assert len(used) > 3
    assert {len(np.unique(problem.slots.host_of_slot[each])) for each in placements} == {7}


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
    bounds = find_bounds(problem)
    assert bounds.max_seconds <= min(score.max_seconds for score in scores) * (1 + 1e-12)
    assert bounds.bottleneck_seconds <= min(scores).bottleneck_seconds * (1 + 1e-12)
    found = search(problem, [packed_slots(problem.slots, 5)], seed=1, seconds=0.5)
    best = min(scores)
    for known in {score.bottleneck_seconds for score in scores}:
        assert find_bounds(problem, known).bottleneck_seconds <= best.bottleneck_seconds * (1 + 1e-12)
    assert found.score.bottleneck_seconds == pytest.approx(best.bottleneck_seconds)
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


def test_the_score_counts_links_of_hosts_apart_and_leaves_out_what_does_not_arrive() -> None:
    subnets = rails("xgft3-512")
    _, chosen = hosts_on_all_rails(subnets)
    problem = make_problem(samplesort(4, 1), subnets, chosen[::100][:4])
    paths = problem.paths
    load = np.zeros(len(paths.rail), np.int64)
    load[[0, paths.between_switches, -1]] = 5, 7, 9
    rates = paths.seconds_per_byte
    score = problem.score_load(load)
    assert (score.lost, score.max_seconds) == (9, 5 * rates[0])
    assert score.bottleneck_seconds == max(5 * rates[0], 7 * rates[paths.between_switches])
    assert score.sum_seconds == pytest.approx(5 * rates[0] + 7 * rates[paths.between_switches])
    assert problem.host_seconds(load) == 7 * rates[paths.between_switches]
