# SPDX-License-Identifier: Apache-2.0
"""Causes of hot links: a planted cause comes first, faultless cases have no causes, predicted gains are right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from ibprof_converter.cli import report
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes import diagnosis as diagnosis_module
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis, diagnose
from ibprof_converter.hotspots.causes.load_cause import LoadCause
from ibprof_converter.hotspots.causes.oversubscription import narrowest_cut
from ibprof_converter.hotspots.causes.repairs import Cable, PortOfNode, add_cables
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.layout.regular_cabling import fit_regular_cabling
from ibprof_converter.routing.balanced_tables import balance_tables
from ibprof_converter.routing.spread import spread_matrix, trace
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.paths import DATA
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.planted_causes import (
    NOTHING,
    PLANTS,
    Planted,
    all_to_all,
    count_hosts,
    leaves_of,
    make_rails,
    modulo_tables,
    plant_all,
    situation,
    uplinks_of,
    without_links,
)


def check(planted: list[Planted]) -> list[tuple[Planted, Diagnosis]]:
    """Diagnose cases. At most 1 of 30 planted cases has a wrong first cause, and faultless cases have no cause."""
    diagnosed = []
    wrong = []
    for case in planted:
        diagnosis = diagnose(case.situation)
        assert diagnosis is not None
        diagnosed.append((case, diagnosis))
        first = diagnosis.causes[0].cause if diagnosis.causes else NOTHING
        if first != case.cause:
            assert case.cause != NOTHING, f"{case.name}: {diagnosis.causes}"
            wrong.append(f"{case.name}: {first}")
    guilty = sum(case.cause != NOTHING for case in planted)
    assert guilty >= 30
    assert len(wrong) <= guilty // 30, wrong
    return diagnosed


def check_claims(diagnosed: list[tuple[Planted, Diagnosis]]) -> None:
    """Compare each predicted gain with the loads on hop-by-hop routes of the changed fabric and flows."""
    checked = set()
    for case, diagnosis in diagnosed:
        for cause in diagnosis.causes:
            assert cause.max_time_after_s < cause.max_time_s, case.name
            assert cause.evidence
            assert cause.advice
            if cause.cause not in checked:
                checked.add(cause.cause)
                assert largest_time(cause.remedy) == pytest.approx(cause.max_time_after_s), case.name
    assert checked == {cause for cause, _, _ in PLANTS} - {NOTHING}


def largest_time(case: Situation) -> float:
    greatest = 0.0
    for rail, subnet in enumerate(case.subnets):
        seconds = np.zeros((subnet.fabric.links, 2))
        flows = case.flows
        for row in np.flatnonzero(flows.rail == rail).tolist():
            path = trace(subnet.routes.network, int(flows.source_lid[row]), int(flows.destination_lid[row]))
            for hop in path.hops:
                seconds[hop.link, hop.end] += float(flows.bytes[row]) * 8e-9 / subnet.fabric.link_gbps[hop.link]
        greatest = max(greatest, float(seconds.max()))
    return greatest


def test_planted_causes_are_named_first_the_innocent_get_none_and_claims_hold() -> None:
    check_claims(check(plant_all(1)))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 8))
def test_so_are_those_of_other_seeds(seed: int) -> None:
    check(plant_all(seed))


def test_a_second_cause_is_one_of_what_the_first_ones_remedy_leaves() -> None:
    (subnet,) = make_rails("xgft:2:16,8:1,8")
    gbps = subnet.fabric.link_gbps.copy()
    gbps[uplinks_of(subnet, leaves_of(subnet)[0])[0]] /= 10
    slow = Subnet(replace(subnet.fabric, link_gbps=gbps), subnet.tables, ())
    diagnosis = diagnose(situation([slow], all_to_all(np.arange(count_hosts([subnet])))))
    assert diagnosis is not None
    assert [each.cause for each in diagnosis.causes] == ["slow-link", "oversubscription"]
    assert diagnosis.causes[1].max_time_s == diagnosis.causes[0].max_time_after_s


def test_the_only_cable_of_a_part_is_never_unplugged() -> None:
    """A leaf's only cable leads to another leaf. Without this cable, the leaf's hosts reach no other host."""
    (subnet,) = make_rails("xgft:2:6,6:1,3")
    leaves = leaves_of(subnet)
    alone = without_links(subnet, uplinks_of(subnet, leaves[5]))
    cable = Cable(PortOfNode(leaves[4], 20), PortOfNode(leaves[5], 20), 100.0)
    fabric = add_cables(alone.fabric, [cable])
    hung = Subnet(fabric, modulo_tables(fabric, subnet.tables), ())
    case = situation([hung], all_to_all(np.arange(count_hosts([hung]))))
    assert case.lost_bytes == 0
    diagnosis = diagnose(case)
    assert diagnosis is not None
    assert diagnosis.causes
    assert all(cause.cause != "wrong-cable" and cause.remedy.lost_bytes == 0 for cause in diagnosis.causes)
    for cause in diagnosis.causes:
        assert cause.max_time_after_s == pytest.approx(largest_time(cause.remedy))
    fitted = fit_regular_cabling(fabric)
    assert fitted is None or not len(fitted.extra)


def test_the_cut_of_a_leaf_by_hand() -> None:
    # A leaf has 16 hosts and 8 uplinks. Hosts of a leaf send 127 x 16 flows of 1 MB. 15 x 16 flows stay on the leaf.
    diagnosis = diagnose(situation(make_rails("xgft:2:16,8:1,8"), all_to_all(np.arange(128))))
    assert diagnosis is not None
    assert diagnosis.cut is not None
    assert diagnosis.cut.bytes == 16 * 112 * 1_000_000
    assert (diagnosis.cut.gbps, diagnosis.cut.inside_gbps) == (800.0, 1600.0)
    assert diagnosis.ideal_routing_s == pytest.approx(16 * 112 * 1e6 * 8 / 800e9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sample", ["xgft3-512", "oversub-faulty", "testbed44", "quirks-small"])
def test_no_tables_are_below_the_bound_by_cuts(sample: str, seed: int) -> None:
    subnet = load_sample(sample, IBDIAGNET)
    hosts = count_hosts([subnet])
    generator = np.random.default_rng(seed)
    source, destination = generator.integers(0, hosts, (2, 40))
    case = situation([subnet], (source[source != destination], destination[source != destination]))
    bound = max(case.max_host_seconds, getattr(narrowest_cut(case), "seconds", 0.0))
    balanced = Subnet(subnet.fabric, balance_tables(subnet.fabric, subnet.tables), ())
    for each in (case, case.changed(subnets=[balanced])):
        assert each.max_seconds >= bound * (1 - 1e-12)


@pytest.mark.parametrize("sample", ["xgft3-512", "oversub-faulty", "testbed44", "dualrail/rail1", "quirks-small"])
def test_balanced_tables_reach_every_host_by_shortest_routes_and_load_links_no_worse(sample: str) -> None:
    subnet = load_sample(sample, IBDIAGNET)
    fabric = subnet.fabric
    balanced = Subnet(fabric, balance_tables(fabric, subnet.tables), ())
    lids = fabric.port_lid[fabric.node_kind[fabric.port_node] == NodeKind.CA]
    lids = lids[lids > 0]
    source, destination = (each.ravel() for each in np.meshgrid(lids, lids))
    before, after = (each.routes.find_paths(source, destination) for each in (subnet, balanced))
    assert (after.reason <= 1).all()
    assert (np.diff(after.offset) <= np.diff(before.offset)).all()
    one = np.broadcast_to(np.uint64(1), (len(lids), len(lids)))
    gbps = fabric.link_gbps[:, np.newaxis]
    times = [(spread_matrix(each.routes, lids, lids, one).bytes[:, :, 0] / gbps).max() for each in (subnet, balanced)]
    assert times[1] <= 1.05 * times[0]


def test_nothing_is_said_where_nothing_is_known() -> None:
    (subnet,) = make_rails("tree:2,2")
    unknown = Subnet(replace(subnet.fabric, link_gbps=np.full(subnet.fabric.links, np.nan)), subnet.tables, ())
    assert diagnose(situation([unknown], all_to_all(np.arange(4)))) is None
    nobody = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert diagnose(situation([subnet], nobody)) is None


def test_one_command_is_named_once_with_what_it_does_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.5, 0.3])

    def move_again(situation: Situation, *_: object) -> LoadCause | None:
        after = next(seconds, None)
        if after is None:
            return None
        remedy = cast("Situation", SimpleNamespace(max_seconds=after))
        place = (f"at {situation.max_seconds}",)
        return LoadCause(
            "placement", "rank order", place, (), "move ranks", "cmd", situation.max_seconds, after, remedy
        )

    monkeypatch.setattr(diagnosis_module, "_find_fault", lambda *_: None)
    monkeypatch.setattr(diagnosis_module, "_find_change", move_again)
    first = cast("Situation", SimpleNamespace(max_seconds=1.0))
    causes, _ = diagnosis_module._find_causes(first, lambda _: None)
    assert [(each.at, each.max_time_s, each.max_time_after_s) for each in causes] == [(("at 1.0",), 1.0, 0.3)]


def test_ports_of_a_missing_cable_are_those_of_the_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    """Leaf ports 29, 30 lead to spine 2; spine ports 3, 4 lead to leaf 1. Leaf1's port 3 is for a missing host."""
    fabric = str(DATA / "cases" / "missing-cable-ports.txt")
    assert report.main([fabric, "pattern:all-to-all:1000000", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["diagnosis"]["causes"][0]
    assert "between leaf1 (port 30) and spine2 (port 4)" in first["advice"]


@pytest.mark.parametrize("node", ["leaf1", "spine2"])
def test_no_cable_is_advised_to_a_switch_without_free_ports(
    node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One end of the missing cable is at a switch whose ports are all in use."""
    text = (DATA / "cases" / "missing-cable-ports.txt").read_text()
    switch = re.search(rf'Switch\t36 "[^"]+"\t\t# "{node}".*\n((?:\[.*\n)+)', text)
    assert switch is not None
    used = sorted(int(port) for port in re.findall(r"^\[(\d+)\]", switch[1], re.MULTILINE))
    # Renumber the switch's n used ports to 1 to n: the highest numbers become the free numbers.
    lines, free = switch[0], [port for port in range(1, len(used) + 1) if port not in used]
    for port, place in zip([port for port in used if port > len(used)], free, strict=True):
        lines = lines.replace(f"\n[{port}]\t", f"\n[{place}]\t")
        text = re.sub(rf'("{switch[0].split(chr(34))[1]}"\[){port}\]', rf"\g<1>{place}]", text)
    path = tmp_path / "full.txt"
    path.write_text(text.replace(switch[0], lines.replace("Switch\t36", f"Switch\t{len(used)}")))
    assert report.main([str(path), "pattern:all-to-all:1000000", "--json"]) == 0
    causes = json.loads(capsys.readouterr().out)["diagnosis"]["causes"]
    assert not [cause for cause in causes if "cable(s) between" in cause["advice"] or "plug" in cause["advice"]]


def test_no_port_is_promised_twice(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = str(DATA / "fabrics" / "oversub-faulty" / "ibdiagnet.lst.xz")
    assert report.main([fabric, "pattern:all-to-all:1000000", "--json"]) == 0
    causes = json.loads(capsys.readouterr().out)["diagnosis"]["causes"]
    named = [match for cause in causes for match in re.findall(r"(\S+) \(port (\d+)\)", cause["advice"])]
    assert named
    assert len(set(named)) == len(named)
