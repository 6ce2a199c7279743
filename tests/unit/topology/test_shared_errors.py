# SPDX-License-Identifier: Apache-2.0
"""Inference finds no false switches in delays with dependent errors: on processors, on two rails, behind queues."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from ibprof_lab.cli.topology import main
from ibprof_lab.topology.infer.candidate import find_pattern
from ibprof_lab.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.levels import find_levels
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_testing.samples.machines import measure
from ibprof_testing.samples.shared_errors import RAILS, Sample, over_two_rails, processor, with_errors
from ibprof_testing.samples.topologies import SHAPES, Matrix, disturb, star, two_levels

QUICK = InferenceEffort(replicates=0)


def infer_sample(sample: Sample, effort: InferenceEffort = QUICK, name: str = "n") -> Inference:
    names = tuple(f"{name}{host}" for host in range(len(sample.delays)))
    return infer(PairDelays(names, sample.delays, "median", 0, ()), effort)


def find_splits(inferred: Inference) -> set[frozenset[int]]:
    hosts = len(inferred.topology.hosts)
    return {split for split in inferred.topology.find_splits() if split and 1 < len(split) < hosts - 1}


@pytest.mark.parametrize("seed", [1, 5, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 9, 12))])
def test_cores_that_lie_nearer_to_one_another_have_no_switch(seed: int) -> None:
    sample = processor(seed)
    assert find_splits(infer_sample(sample)) == sample.splits


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        ("Zen 2", "a slow core"), ("Graviton 1", "a slow core"), ("Xeon Phi", "a slow core"),
        ("Zen", "a core slow to others"), ("Power9", "a core slow to others"), ("Zen 3", "a slow thread"),
    ],
)  # fmt: skip
def test_a_slow_core_makes_no_switch_and_hides_none(kind: str, effect: str) -> None:
    sample = measure(kind, effect, 0)
    inferred = infer_sample(sample)
    assert find_splits(inferred) == sample.splits
    assert any("times the delays of other hosts on their switch" in note for note in inferred.topology.notes)


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.full), 101])
def test_slower_links_are_no_factors(seed: int) -> None:
    sample = with_errors("slow hosts", seed, is_costly=False)
    inferred = infer_sample(sample)
    assert find_splits(inferred) == sample.splits
    assert not any("times the delays of other hosts" in note for note in inferred.topology.notes)


def test_factors_of_hosts_are_found() -> None:
    made = two_levels(64)
    own = np.ones(64)
    own[[3, 40]] = 1.2, 0.9
    levels = find_levels(disturb(made.delays(), 0.02, 0) * np.outer(own, own), ~np.eye(64, dtype=bool))
    assert np.flatnonzero(levels.factor).tolist() == [3, 40]
    assert np.exp(levels.factor[[3, 40]]) == pytest.approx([1.2, 0.9], rel=0.01)
    assert len(levels.groups()) == len(made.splits())


def test_no_factors_are_found_in_independent_errors() -> None:
    made = two_levels(64)
    inferred = infer_sample(Sample(disturb(made.delays(), 0.02, 0), made.splits()))
    assert not any("times the delays of other hosts" in note for note in inferred.topology.notes)


@pytest.mark.parametrize(
    ("effect", "seed"), [("nothing else", 3), ("a slow core", 2), ("a slow core", 3), ("5% missing", 1)]
)
def test_slow_cores_of_clusters_are_no_switch_and_make_none_of_fast_ones(effect: str, seed: int) -> None:
    """Slow cores have longer delays to each other than to fast cores. Nested switches cannot explain such delays."""
    sample = measure("fast and slow cores", effect, seed)
    inferred = infer_sample(sample)
    assert find_splits(inferred) == sample.splits
    assert any("times the delays of other hosts on their switch" in note for note in inferred.topology.notes)


@pytest.mark.parametrize("kind", ["Zen 2", "mesh", "Zen, four dies"])
def test_multiples_of_a_step_are_no_rails(kind: str) -> None:
    for effect in ("two multiples of a step", "steps of 3 to 10 ns"):
        sample = measure(kind, effect, 0)
        inferred = infer_sample(sample)
        assert not any("second rail" in note for note in inferred.topology.notes)
        assert inferred.refusal is not None or find_splits(inferred) <= sample.splits


@pytest.mark.parametrize("how", RAILS)
@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.full)])
def test_two_rails_are_no_switches(how: str, seed: int) -> None:
    sample = over_two_rails(seed, is_costly=True, how=how, ratio=1.2)
    inferred = infer_sample(sample)
    assert find_splits(inferred) == sample.splits
    assert any("second rail or route, with delays 1.2" in note for note in inferred.topology.notes)


@pytest.mark.parametrize(("is_costly", "seed", "ratio"), [(True, 1, 1.1), (True, 5, 1.05), (False, 9, 1.5)])
def test_a_host_whose_pairs_all_take_the_slower_rail_has_no_switch(is_costly: bool, seed: int, ratio: float) -> None:
    sample = over_two_rails(seed, is_costly, "by chance", ratio)
    assert find_splits(infer_sample(sample)) == sample.splits


def measure_in_steps(delays: Matrix, step: float, seed: int) -> Matrix:
    """Return delays as a coarse clock shows them: rounded to the step below or above, more often to the nearer step."""
    phase = np.triu(np.random.default_rng(seed).random(delays.shape), 1)
    measured: Matrix = step * np.floor(delays / step + phase + phase.T)
    np.fill_diagonal(measured, 0)
    return measured


def processor_by_a_coarse_clock(seed: int) -> Sample:
    """Return delays of 16 cores of two threads in two complexes: 8, 17 and 71 ns, in steps of 5.2 ns."""
    thread = np.arange(32)
    delays = np.where(np.equal.outer(thread // 16, thread // 16), 16.5, 71.0)
    delays[np.equal.outer(thread // 2, thread // 2)] = 7.6
    delays += 1e-9 * (1 - np.eye(32))
    splits = {frozenset((2 * core, 2 * core + 1)) for core in range(1, 16)}
    first = frozenset(range(2, 32))
    return Sample(measure_in_steps(delays, 5.2, seed) * 1e-9, splits | {first, frozenset(range(16, 32))})


# Each seed gives other delays of the same machine.
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 5)), 5])
def test_links_within_steps_of_the_clock_are_refused(seed: int) -> None:
    sample = processor_by_a_coarse_clock(seed)
    inferred = infer_sample(sample, InferenceEffort(replicates=20))
    assert inferred.refusal is not None or find_splits(inferred) == sample.splits


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_errors_of_a_clock_are_added_to_delays(seed: int) -> None:
    """Delays of 12 ns between threads, and of 45 ns between cores, are measured as multiples of 10 ns."""
    core = np.arange(32) // 2
    delays = np.where(np.equal.outer(core, core), 12.0, 45.0) * (1 - np.eye(32))
    pairs = {frozenset((first, first + 1)) for first in range(2, 32, 2)} | {frozenset(range(2, 32))}
    inferred = infer_sample(Sample(measure_in_steps(delays, 10.0, seed) * 1e-9, pairs), InferenceEffort(replicates=20))
    assert find_splits(inferred) == pairs
    assert inferred.refusal is None


def test_a_pair_of_threads_slower_than_others_is_a_switch() -> None:
    """The delay between two threads is longer on core 0 than on other cores, as on a measured Xeon Gold 6242."""
    thread = np.arange(32)
    delays = disturb(np.where(np.equal.outer(thread % 16, thread % 16), 7.4, 48.0) * (1 - np.eye(32)), 0.02, 1)
    delays[0, 16] = delays[16, 0] = 13.8
    delays[0, 1:16] *= 1.1
    delays[1:16, 0] *= 1.1
    inferred = infer_sample(Sample(delays * 1e-9, set()), InferenceEffort(replicates=20))
    assert frozenset(range(32)) - {0, 16} in find_splits(inferred)
    assert inferred.refusal is None


@pytest.mark.parametrize(("seed", "apart"), [(0, 1.0), (1, 1.0), (2, 1.4), (3, 1.4)])
def test_distances_of_regions_are_no_switches_and_no_factors(seed: int, apart: float) -> None:
    """Each region of a cloud has three zones of three hosts. Distances of regions differ by up to 40%."""
    draw = np.random.default_rng(seed)
    region, zone = np.arange(36) // 9, np.arange(36) // 3
    between = np.triu(draw.uniform(60, 60 * apart, (4, 4)), 1)
    delays = (between + between.T)[np.ix_(region, region)]
    delays[np.equal.outer(region, region)] = 0.9
    delays[np.equal.outer(zone, zone)] = 0.2
    np.fill_diagonal(delays, 0.0)
    inferred = infer_sample(Sample(disturb(delays * 1e-3, 0.01, seed), set()))
    groups = [
        frozenset(np.flatnonzero(unit == each).tolist()) for unit in (region, zone) for each in range(unit.max() + 1)
    ]
    assert find_splits(inferred) == {frozenset(range(36)) - group if 0 in group else group for group in groups}
    assert inferred.topology.method == "levels"
    assert not any("factor" in note for note in inferred.topology.notes)


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.01])
def test_exact_delays_of_milliseconds_show_all_switches(noise: float) -> None:
    """Two pods of two leaf switches, two hosts each. The delays of pods and leaf switches differ by 30%."""
    leaf, pod = np.arange(8) // 2, np.arange(8) // 4
    delays = np.where(np.equal.outer(pod, pod), 1160.0, 1510.0)
    delays[np.equal.outer(leaf, leaf)] = 495.0
    np.fill_diagonal(delays, 0.0)
    inferred = infer_sample(Sample(disturb(delays * 1e-6, noise, 1), set()))
    assert find_splits(inferred) == {frozenset(group) for group in ({2, 3}, {4, 5}, {6, 7}, {4, 5, 6, 7}, range(2, 8))}


def test_exact_delays_of_milliseconds_show_a_host_alone_on_its_switch() -> None:
    """The switch of host 3 joins two leaf switches and, over a slow link, the switch of two hosts."""
    place = np.array([0, 0, 2, 1, 3, 3, 2, 2])
    between = np.array([[470, 2028, 2355, 2355], [0, 470, 1457, 1457], [0, 0, 470, 1130], [0, 0, 0, 470.0]])
    delays = (np.triu(between) + np.triu(between, 1).T)[np.ix_(place, place)]
    np.fill_diagonal(delays, 0.0)
    inferred = infer_sample(Sample(disturb(delays * 1e-6, 0.002, 1), set()))
    assert inferred.topology.method == "additive"
    assert find_splits(inferred) == {
        frozenset({2, 6, 7}),
        frozenset({4, 5}),
        frozenset(range(2, 8)),
        frozenset({2, 4, 5, 6, 7}),
    }


def test_a_refusal_names_the_steps_of_the_clock() -> None:
    refusals = (infer_sample(processor_by_a_coarse_clock(seed)).refusal for seed in range(6))
    assert any(refusal and refusal.startswith("delays are multiples of 5.2") for refusal in refusals)


def test_steps_of_a_clock_that_are_small_errors_refuse_nothing() -> None:
    made = two_levels(64)
    delays = made.delays() * 1e6 * 5
    inferred = infer_sample(Sample(measure_in_steps(disturb(delays, 0.02, 0), 1.0, 0) * 1e-6, made.splits()))
    assert inferred.refusal is None
    assert find_splits(inferred) == made.splits()


def test_a_second_rail_is_not_found_in_independent_errors() -> None:
    made = two_levels(64)
    inferred = infer_sample(Sample(disturb(made.delays(), 0.08, 3), made.splits()))
    assert find_splits(inferred) == made.splits()
    assert not any("rail" in note for note in inferred.topology.notes)


@pytest.mark.parametrize("kind", ["slow hosts", "queues of routes", "heavy tails"])
def test_errors_of_hosts_and_routes_are_no_switches(kind: str) -> None:
    sample = with_errors(kind, 1, is_costly=True)
    assert find_splits(infer_sample(sample)) == sample.splits


def test_a_pattern_differs_from_independent_errors() -> None:
    draw = np.random.default_rng(0)
    known = ~np.eye(32, dtype=bool)
    errors = np.triu(0.05 * draw.standard_normal((32, 32)), 1)
    alone = find_pattern(errors + errors.T, known)
    of_host = 0.05 * draw.standard_normal(32)
    shared = find_pattern((errors + errors.T) + of_host[:, None] + of_host, known)
    assert not alone.is_likely
    assert alone.deviation == pytest.approx(0.05, rel=0.1)
    assert shared.is_certain
    assert shared.least_step == pytest.approx(5 * shared.deviation)


def test_switches_that_queues_alone_show_are_not_accepted() -> None:
    sample = with_errors("queues of rounds", 3, is_costly=False)
    inferred = infer_sample(sample, InferenceEffort(replicates=40, seconds=60))
    assert inferred.refusal is not None or find_splits(inferred) == sample.splits


def four_sockets(cores: int, seed: int) -> Sample:
    """Return delays, with errors of 2%, of four sockets in a ring. Each core has two threads."""
    socket = np.repeat(range(4), 2 * cores)
    hops = abs(np.subtract.outer(socket, socket)) % 4
    delays = 50.0 + np.where(hops, 40 + 60 * np.where(hops == 2, 2, 1), 0)
    core = np.arange(8 * cores) // 2
    delays[np.equal.outer(core, core)] = 10.0
    np.fill_diagonal(delays, 0.0)
    groups = [np.flatnonzero(unit == each) for unit in (socket, core) for each in np.unique(unit)]
    every = frozenset(range(len(core)))
    splits = {frozenset(group.tolist()) for group in groups}
    return Sample(disturb(delays, 0.02, seed) * 1e-9, {every - each if 0 in each else each for each in splits})


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_switches_are_kept_where_links_of_a_cycle_are_not_sure(seed: int) -> None:
    sample = four_sockets(5, seed)
    inferred = infer_sample(sample, InferenceEffort(replicates=10))
    assert inferred.refusal is None
    assert find_splits(inferred) == sample.splits


@pytest.mark.parametrize("seed", range(2))
def test_opposite_sockets_of_a_ring_are_no_rail(seed: int) -> None:
    sample = four_sockets(4, seed)
    first = np.arange(0, 32, 2)
    delays = sample.delays[np.ix_(first, first)]
    delays[0, 9] = delays[9, 0] = delays[3, 14] = delays[14, 3] = 900e-9
    inferred = infer_sample(Sample(delays, set()))
    assert not any("second rail" in note for note in inferred.topology.notes)


@pytest.mark.parametrize("seed", [5, 11])
def test_pairs_that_look_wrong_are_switches_like_others(seed: int) -> None:
    """Although some delays have large errors, the two threads of each core are found to share a switch."""
    draw = np.random.default_rng(seed)
    core, socket = np.arange(24) // 2, np.arange(24) // 6
    delays = np.where(np.equal.outer(socket, socket), 63.0, 181.0)
    delays[np.equal.outer(core, core)] = 31.0
    np.fill_diagonal(delays, 0.0)
    delays = disturb(delays, 0.015, seed)
    wrong = np.triu(draw.random((24, 24)) < 0.025, 1) & np.not_equal.outer(core, core)
    delays *= np.where(wrong | wrong.T, draw.uniform(1.4, 4.0), 1.0)
    splits = find_splits(infer_sample(Sample(delays * 1e-9, set())))
    assert {frozenset((2 * each, 2 * each + 1)) for each in range(1, 12)} <= splits


def write_weak(path: Path) -> None:
    """Write delays of two levels in microseconds; errors nearly hide the levels."""
    matrix: Matrix = 3 + 0.35 * two_levels(16).delays() * 1e6
    np.fill_diagonal(matrix, 0)
    noisy = disturb(matrix, 0.05, 0)
    path.write_text("\n".join(",".join(f"{value:.4f}" for value in row) for row in noisy) + "\n")


def test_a_weak_answer_ends_with_status_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    delays, fabric, page = tmp_path / "weak.csv", tmp_path / "weak.lst", tmp_path / "weak.json"
    write_weak(delays)
    arguments = ["infer", str(delays), "-o", str(fabric), "-o", str(page)]
    assert main(arguments) == 5
    out, err = capsys.readouterr()
    assert out.startswith("not reliable: ")
    assert f"not written: {fabric} (--accept-weak writes them)" in err
    assert not fabric.exists()
    assert page.exists()
    assert main([*arguments, "--accept-weak"]) == 0
    assert fabric.exists()
    capsys.readouterr()
    assert main(["infer", str(delays), "--json"]) == 5
    assert "links were found again in less than 70%" in json.loads(capsys.readouterr().out)["refused"]


@pytest.mark.parametrize("is_slow", [True, False])
def test_the_others_of_a_slow_core_are_no_group(is_slow: bool) -> None:
    """One core has long delays to all cores, or to all cores of its socket. Delays grow with hops on a mesh."""
    core = np.arange(32)
    place = core % 16
    hops = abs(place % 6 - place[:, None] % 6) + abs(place // 6 - place[:, None] // 6)
    own = core // 16 == core[:, None] // 16
    delays = np.where(own, 38.0 + 2.2 * hops, 330.0 + 3.0 * hops)
    delays *= np.exp(0.22 * ((core == 2) | (core[:, None] == 2)) * (own | is_slow))
    np.fill_diagonal(delays, 0.0)
    levels = find_levels(delays * 1e-9, ~np.eye(32, dtype=bool))
    assert {frozenset(group) for group in levels.groups()} == {frozenset(range(16)), frozenset(range(16, 32))}


def test_slower_links_of_levels_are_found_again_in_resampled_matrices() -> None:
    made = star(16)
    for host in range(3):
        made.graph.edges[host, "s"]["us"] = 1.6
    delays = disturb(made.delays(), 0.02, 0)
    effort = InferenceEffort(models=("levels",), replicates=10)
    inferred = infer(PairDelays(tuple(map(str, range(16))), delays, "median", 0, ()), effort)
    assert inferred.refusal is None
    assert len(inferred.topology.switches) == 1
    assert inferred.topology.support.min() > 0.9


@pytest.mark.parametrize(("kind", "seed"), [("Xeon Phi", 1), ("Zen 5", 2), ("sub-NUMA clusters", 2)])
def test_outliers_hide_no_switches(kind: str, seed: int) -> None:
    """All switches are found, although 2% of the delays are outliers."""
    sample = measure(kind, "2% outliers", seed)
    assert find_splits(infer_sample(sample)) == sample.splits


@pytest.mark.parametrize("seed", range(2))
def test_a_host_without_delays_to_a_switch_next_to_its_own_is_refused(seed: int) -> None:
    sample = measure("Zen, four dies", "5% missing", seed)
    inferred = infer_sample(sample, name="{n}")
    assert inferred.refusal is not None
    assert re.fullmatch(r"no delay between (\{n\}\d+) and .* was measured: \1 may be on that switch", inferred.refusal)


def test_a_wrong_delay_sets_no_host_apart() -> None:
    sample = measure("Zen 2", "2% outliers", 0)
    inferred = infer_sample(sample)
    assert inferred.refusal is None
    assert find_splits(inferred) == sample.splits


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        ("Power9", "steps of 3 to 10 ns"), ("two meshes", "steps of 3 to 10 ns"),
        ("Graviton 1", "two multiples of a step"), ("Power7, two sockets", "two multiples of a step"),
    ],
)  # fmt: skip
def test_errors_of_a_coarse_clock_are_no_share_of_a_delay(kind: str, effect: str) -> None:
    """A clock's step is a large part of short delays, but pairs with short delays must not become two-host switches."""
    sample = measure(kind, effect, 0)
    inferred = infer_sample(sample, InferenceEffort(replicates=10))
    assert find_splits(inferred) == sample.splits
    assert inferred.refusal is None or "found again" in inferred.refusal
    explained = inferred.topology.explain_delays()
    assert explained.mean() == pytest.approx(sample.delays.mean(), rel=0.05)


def test_steps_of_a_clock_are_no_links() -> None:
    sample = measure("Altra, two sockets", "steps of 3 to 10 ns", 0)
    inferred = infer_sample(sample, InferenceEffort(replicates=10))
    assert inferred.refusal is not None or find_splits(inferred) == sample.splits


def test_slower_links_of_many_hosts_are_no_factors() -> None:
    """By chance, the errors have a pattern. A model with factors for hosts needs more switches, and is rejected."""
    made = SHAPES["mixed speeds"](64)
    sample = Sample(disturb(made.delays(), 0.08, 23), made.splits())
    inferred = infer_sample(sample)
    assert find_splits(inferred) == sample.splits
    assert not any("times the delays of other hosts" in note for note in inferred.topology.notes)
