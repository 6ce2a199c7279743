# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology compare` on switches in cycles reports each link, and colours links by real routes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof_lab.cli import topology
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_lab.topology.model.dot_graph import read_dot
from ibprof_lab.topology.reference.reference_comparison import compare_with_reference
from ibprof_lab.topology.reference.reference_topology import Reference, read_reference
from ibprof_testing.samples.fabrics import FABRICS, load_of_traces, load_traces
from ibprof_testing.samples.topologies import Made, disturb, switched_torus
from ibprof_testing.samples.topology_plans import as_delays, compare_made, name_slow, write_plan

CIRCLES = ["hypercube-4", "torus2d-5x4", "dragonfly-72"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def by_hops(reference: Reference) -> Delays:
    hosts = np.flatnonzero(reference.is_end)
    matrix = disturb(reference.count_hops(hosts).astype(np.float64) * 1e-6, 0.03, 5)
    return Delays(tuple(reference.names[host] for host in hosts), np.array([8]), matrix[None].astype(np.float32))


@pytest.mark.parametrize("sample", CIRCLES)
def test_colours_are_of_the_paths_that_ibtracert_took(sample: str) -> None:
    """The test calculates formula (4) from the paths in ibtracert's dumps."""
    reference = read_reference(str(FABRICS / sample))
    assert reference.fabric is not None
    assert reference.host_lid is not None
    every = by_hops(reference)
    host_of = {int(reference.host_lid[vertex]): host for host, vertex in enumerate(reference.find_hosts(every.hosts))}
    pairs = {
        (host_of[pair.source_lid], host_of[pair.destination_lid]): pair
        for pair in load_traces(sample)
        if pair.source_lid != pair.destination_lid
    }
    walked = load_of_traces(reference.fabric, list(pairs.values())).any(axis=2)
    length = 1 << 20
    at_full_speed = (walked * (length * 8 / (reference.gbps * 1e9))).sum(axis=1)
    seconds = (at_full_speed * np.random.default_rng(3).uniform(0.2, 1.8, len(pairs))).astype(np.float32)
    matrix = np.full((1, len(every.hosts), len(every.hosts)), np.nan, np.float32)
    matrix[(0, *np.array(list(pairs)).T)] = seconds
    found = infer(take_pair_delays(every), InferenceEffort(replicates=0)).topology
    times = compare_with_reference(found, reference, Delays(every.hosts, np.array([length]), matrix), length).times
    assert times is not None
    inverse = walked / reference.gbps
    share = inverse / inverse.sum(axis=1, keepdims=True)
    count = walked.sum(axis=0)
    assert times.paths.tolist() == count.tolist()
    expected = (share * seconds[:, None]).sum(axis=0)[count > 0] / count[count > 0]
    assert times.seconds[count > 0] == pytest.approx(expected, rel=1e-5)
    promised = length * 8 / (reference.gbps[count > 0] * 1e9)
    colours = np.array(times.colours())
    assert set(colours[count == 0]) <= {"white"}
    assert colours[count > 0].tolist() == np.where(expected > promised, "blue", "red").tolist()
    assert {"red", "blue"} <= set(colours)


@pytest.mark.parametrize("sample", CIRCLES)
def test_nothing_is_named_where_nothing_is_wrong(sample: str) -> None:
    reference = read_reference(str(FABRICS / sample))
    delays = by_hops(reference)
    compared = compare_with_reference(
        infer(take_pair_delays(delays), InferenceEffort(replicates=0)).topology, reference, delays, 8
    )
    assert compared.differences == 0
    assert "linked" not in " ".join(compared.comparison.unknown)


def spoilt() -> Made:
    """Return a fabric where a cable between switches is misplaced."""
    made = switched_torus(4, 4)
    made.graph.remove_edge("t00", "t01")
    made.graph.add_edge("t00", "t22", us=1.0)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_a_cable_between_switches_that_is_plugged_in_elsewhere(seed: int) -> None:
    compared = compare_made(spoilt(), read_reference(write_plan(switched_torus(4, 4))), seed=seed)
    assert compared.comparison.missing == (("t00", "t01"),)
    assert compared.comparison.extra == (("t00", "t22"),)
    assert compared.differences == 2


def test_a_slow_link_is_not_a_missing_one() -> None:
    made = switched_torus(5, 4)
    reference = read_reference(write_plan(made))
    made.graph.edges["t10", "t11"]["us"] = 1.6
    compared = compare_made(made, reference, 0.01)
    assert name_slow(compared) == {frozenset(("t10", "t11"))}
    assert compared.comparison.differences == 0


def test_what_scatters_too_much_is_said() -> None:
    made = switched_torus(4, 4, 4)
    for host in range(made.hosts):
        (switch,) = made.graph[host]
        made.graph.edges[host, switch]["us"] = 20.0
    compared = compare_made(made, read_reference(write_plan(made)), 0.1)
    assert compared.comparison.missing == compared.comparison.extra == ()
    assert compared.comparison.unknown


def test_the_picture_has_both(capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(switched_torus(4, 4))
    write_delays("delays.nc", as_delays(spoilt()))
    assert topology.main(["compare", "delays.nc", "plan.dot", "--fail", "-o", "d.dot", "-o", "d.svg"]) == 1
    said = capsys.readouterr().out
    assert "link missing: t00 to t01" in said
    assert "link not in the reference: t00 to t22" in said
    drawn = read_dot("d.dot")
    label = {vertex: told["label"] for vertex, told in drawn.vertices.items()}
    told = {frozenset((label[a], label[b])): attributes for a, b, attributes in drawn.edges}
    assert told[frozenset(("t00", "t01"))]["style"] == "dashed"
    assert told[frozenset(("t00", "t22"))]["label"] == "not in the reference"
    assert len(told) == 65


def test_the_picture_of_a_switch_for_each_host_has_missing_links(tmp_path: Path) -> None:
    write_plan(switched_torus(4, 4, 1))
    made = switched_torus(4, 4, 1)
    made.graph.remove_edge("t00", "t01")
    write_delays("delays.nc", as_delays(made, 0.003))
    assert topology.main(["compare", "delays.nc", "plan.dot", "-o", "d.dot"]) == 0
    drawn = read_dot("d.dot")
    label = {vertex: told["label"] for vertex, told in drawn.vertices.items()}
    dashed = [{label[a], label[b]} for a, b, attributes in drawn.edges if "style" in attributes]
    assert dashed == [{"t00", "t01"}]


@pytest.mark.parametrize("switches", [[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [(0, 4), (1, 4), (2, 4), (3, 4)]])
def test_doubled_cables_are_equal_to_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], switches: list[tuple[int, int]]
) -> None:
    cables = [f"s{a} -- s{b};" for a, b in switches * 2]
    hosts = [f"h{switch}{place} -- s{switch};" for switch in range(4) for place in range(3)]
    (tmp_path / "plan.dot").write_text("graph g {" + " ".join([*cables, *hosts]) + "}")
    assert topology.main(["compare", str(tmp_path / "plan.dot"), str(tmp_path / "plan.dot"), "--fail"]) == 0
    assert "no difference" in capsys.readouterr().out
