# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology compare` names exactly the planted faults. Similarities equal the paper's."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibprof.errors import InconsistentError, InputError
from ibprof_lab.cli import topology
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_lab.topology.model.dot_graph import read_dot
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.reference.differences import REGULAR, average_processes
from ibprof_lab.topology.reference.reference_comparison import compare_with_reference
from ibprof_lab.topology.reference.reference_topology import (
    ReferencePaths,
    find_reference_paths,
    read_reference,
    spread_delays,
)
from ibprof_testing.paths import DATA
from ibprof_testing.samples.topologies import SHAPES, Made, disturb, line, three_levels, torus, tree, two_levels
from ibprof_testing.samples.topology_plans import as_delays, compare_made, name, name_slow, switch_of, write_plan
from ibprof_testing.strategies import scale_examples

FABRICS = DATA / "fabrics"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class TestDot:
    def read(self, text: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, dict[str, str]]]]:
        Path("g.dot").write_text(text)
        graph = read_dot("g.dot")
        return graph.vertices, graph.edges

    def test_the_language(self) -> None:
        vertices, edges = self.read(
            """# a comment as of the preprocessor
            strict graph "a plan" { // of one row
              rankdir=LR; graph [splines=false]
              node [shape=box] /* switches */ s1; s2 [label="a \\"big\\" one"]
              { node [shape=ellipse]; n1 n2 }
              edge [label="32 Gb/s"];
              n1 -- s1:p1:n -- s2 [color=red, weight=2;]
              n2 -- {s1 s2}
              subgraph cluster_a { n3 -- s2 [label=<b <i>q</i>>] }
              "n" + "4" -- -5.5
            }"""
        )
        assert list(vertices) == ["s1", "s2", "n1", "n2", "n3", "n4", "-5.5"]
        assert vertices["s2"] == {"shape": "box", "label": 'a "big" one'}
        assert vertices["n1"]["shape"] == "ellipse"
        assert [(a, b) for a, b, _ in edges] == [
            ("n1", "s1"), ("s1", "s2"), ("n2", "s1"), ("n2", "s2"), ("n3", "s2"), ("n4", "-5.5")
        ]  # fmt: skip
        assert edges[0][2] == {"label": "32 Gb/s", "color": "red", "weight": "2"}
        assert edges[4][2]["label"] == "<b <i>q</i>>"

    @pytest.mark.parametrize(
        ("text", "line"),
        [("hello", 1), ("graph {\n a -- }", 2), ("graph {\n\n a [x=", 3), ("graph { a", 1), ("graph {\n <b", 2)],
    )
    def test_an_invalid_reference_is_refused_with_its_line(self, text: str, line: int) -> None:
        Path("g.dot").write_text(text)
        with pytest.raises(InputError, match=rf"g\.dot:{line}: expected "):
            read_dot("g.dot")

    @given(st.text('graph{}[]->;=,"<a1 \n\\/*#', max_size=60))
    @settings(max_examples=scale_examples(300))
    def test_no_text_makes_it_fail_otherwise(self, text: str) -> None:
        Path("h.dot").write_text("graph {" + text, encoding="utf-8")
        with suppress(InputError):
            read_dot("h.dot")

    def test_speeds(self) -> None:
        Path("plan.dot").write_text(
            'graph { a -- b [label=32]; b -- c [label="100 Gb/s"]; c -- d [speed="800Mbit/s"]; d -- e [label="big"] }'
        )
        gbps = read_reference("plan.dot").gbps
        assert gbps[:3].tolist() == [32, 100, 0.8]
        assert np.isnan(gbps[3])


class TestPaper:
    """Bannikov and Salnikov's similarity, and their formulas (3) and (4), equal values calculated by hand."""

    def test_similarity_of_a_ring_with_what_was_found_of_it(self) -> None:
        write_plan(torus(4))
        found = InferredTopology(
            method="bannikov-salnikov",
            hosts=("n1", "n2", "n3", "n4"),
            switches=(),
            edge=np.array([[0, 1], [1, 0], [1, 2], [0, 2]], np.int32),
            latency_seconds=np.full(4, 1e-6),
            support=np.full(4, np.nan),
            probability=np.array([0.5, 0.75, 1.0, 1.0]),
            directed=True,
        )
        comparison = compare_with_reference(found, read_reference("plan.dot"), None).comparison
        assert comparison.kind == REGULAR
        # The plan's four links have the probabilities 0.75 (the larger value of two arcs), 1, 0 and 0. n1 - n3 is not a
        # link of the plan.
        assert comparison.similarity == pytest.approx(1.75 / 4)
        assert comparison.missing == (("n1", "n4"), ("n3", "n4"))
        assert comparison.extra == (("n1", "n3"),)

    def test_processes_of_a_host_are_one(self) -> None:
        write_plan(torus(4))
        labels = tuple(f"n{host}#{core}" for host in (1, 2, 3, 4) for core in (0, 1))
        arcs = [(0, 3), (2, 4), (5, 6), (7, 0)]
        found = InferredTopology(
            "bannikov-salnikov", labels, (), np.array(arcs, np.int32), np.full(4, 1e-6), np.full(4, np.nan), np.ones(4),
            directed=True,
        )  # fmt: skip
        assert compare_with_reference(found, read_reference("plan.dot"), None).comparison.similarity == 1.0

    def test_formula_3_is_the_mean_over_processes(self) -> None:
        matrix = np.array([[0, 9, 1, 2], [9, 0, 3, np.nan], [1, 3, 0, 7], [2, 4, 7, 0]], float)
        joined = average_processes(matrix, [[0, 1], [2], [3]])
        assert joined[0].tolist() == [0, 2, 2]  # no delay was measured from 1 to 3
        assert joined[2].tolist() == [3, 7, 0]

    def test_formula_4_spreads_inversely_to_speed_and_takes_the_mean(self) -> None:
        # Link 0 has 10 Gb/s, link 1 has 20 Gb/s. A path over both links takes 3 s, a path over link 1 takes 5 s.
        paths = ReferencePaths(np.array([0, 2, 3]), np.array([0, 1, 1]))
        times = spread_delays(paths, np.array([3.0, 5.0]), np.array([10.0, 20.0, 40.0]), 2_500_000_000)
        assert times.seconds[:2].tolist() == [2.0, (1.0 + 5.0) / 2]
        assert times.line_rate_seconds.tolist() == [2.0, 1.0, 0.5]
        assert times.colours() == ("red", "blue", "white")
        assert times.saturation().tolist() == [0.0, 1.0, 0.0]

    def test_all_time_lies_on_the_links(self) -> None:
        made = three_levels(16)
        reference = read_reference(write_plan(made))
        vertex = reference.find_hosts([name(host) for host in range(16)])
        pair = np.argwhere(~np.eye(16, dtype=bool))
        paths = find_reference_paths(reference, *vertex[pair].T)
        lengths = dict(nx.all_pairs_shortest_path_length(made.graph))
        assert paths.hops.tolist() == [lengths[a][b] for a, b in pair.tolist()]
        seconds = made.delays()[tuple(pair.T)]
        times = spread_delays(paths, seconds, reference.gbps, 8)
        assert float((times.seconds * times.paths).sum()) == pytest.approx(seconds.sum())


class TestNothingIsWrong:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_is_named(self, shape: str, seed: int) -> None:
        made = SHAPES[shape](16)
        compared = compare_made(made, read_reference(write_plan(made)), 0.002 if made.is_direct else 0.03, seed)
        assert compared.comparison.differences == 0
        if shape != "mixed speeds":
            assert compared.slow == ()

    @pytest.mark.parametrize("fabric", ["testbed44", "xgft:2:4,4:1,2", "xgft:3:4,4,4:1,2,4"])
    def test_real_and_synthetic_fabrics(self, fabric: str) -> None:
        reference = read_reference(str(FABRICS / fabric) if ":" not in fabric else fabric)
        hosts = np.flatnonzero(reference.is_end)
        matrix = disturb(reference.count_hops(hosts).astype(np.float64) * 1e-6, 0.03, 5)
        delays = Delays(tuple(reference.names[host] for host in hosts), np.array([8]), matrix[None].astype(np.float32))
        found = infer(take_pair_delays(delays), InferenceEffort(replicates=0)).topology
        assert compare_with_reference(found, reference, delays, 8).differences == 0


class TestFaultsThatWerePutIn:
    @given(st.integers(0, 15), st.integers(4, 15), st.integers(0, 9))
    @settings(max_examples=scale_examples(15), deadline=None)
    def test_a_host_on_another_switch(self, host: int, other: int, seed: int) -> None:
        plan, made = two_levels(16), two_levels(16)
        old, new = switch_of(made, host), switch_of(made, other)
        if old == new:
            return
        made.graph.remove_edge(host, old)
        made.graph.add_edge(host, new, us=1.0)
        (wrong,) = (compared := compare_made(made, read_reference(write_plan(plan)), seed=seed)).comparison.misplaced
        assert (wrong.host, wrong.switch, wrong.found_switch) == (name(host), old, new)
        assert name(other) in wrong.found_peers
        assert compared.differences == 1

    def test_two_hosts_whose_cables_were_exchanged(self) -> None:
        plan, made = two_levels(16), two_levels(16)
        a, b = switch_of(made, 1), switch_of(made, 9)
        made.graph.remove_edges_from([(1, a), (9, b)])
        made.graph.add_edges_from([(1, b), (9, a)], us=1.0)
        found = compare_made(made, read_reference(write_plan(plan))).comparison
        assert [(each.host, each.found_switch) for each in found.misplaced] == [("n10", a), ("n2", b)] or sorted(
            (each.host, each.found_switch) for each in found.misplaced
        ) == [("n10", a), ("n2", b)]

    @given(st.integers(0, 15), st.floats(1.6, 8.0), st.sampled_from(["2 levels", "3 levels", "line", "star"]))
    @settings(max_examples=scale_examples(15), deadline=None)
    def test_a_slow_link_of_a_host(self, host: int, us: float, shape: str) -> None:
        plan, made = SHAPES[shape](16), SHAPES[shape](16)
        made.graph.edges[host, switch_of(made, host)]["us"] = us
        compared = compare_made(made, read_reference(write_plan(plan)))
        ends = [{compared.reference.names[end] for end in compared.reference.link[each.link]} for each in compared.slow]
        assert ends == [{name(host), switch_of(made, host)}]
        assert compared.slow[0].excess_seconds == pytest.approx((us - 1) * 1e-6, rel=0.25)
        assert compared.comparison.misplaced == ()

    @pytest.mark.parametrize("made", [tree(4, 4, 4), line(16)], ids=["tree", "line"])
    def test_a_slow_link_between_switches(self, made: Made) -> None:
        reference = read_reference(write_plan(made))
        link = [edge for edge in made.graph.edges if not any(isinstance(end, int) for end in edge)][1]
        made.graph.edges[link]["us"] = 3.0
        compared = compare_made(made, reference)
        ends = [{compared.reference.names[end] for end in compared.reference.link[each.link]} for each in compared.slow]
        assert ends == [set(link)]

    @given(st.integers(0, 15), st.integers(0, 15), st.sampled_from(["s.0", "s.1", "s.2", "s.3"]), st.integers(0, 9))
    @settings(max_examples=scale_examples(15), deadline=None)
    def test_a_slow_uplink_and_a_wrong_cable(self, host: int, other: int, uplink: str, seed: int) -> None:
        plan, made = two_levels(16), two_levels(16)
        old, new = switch_of(made, host), switch_of(made, other)
        if old == new:
            return
        made.graph.remove_edge(host, old)
        made.graph.add_edge(host, new, us=1.0)
        made.graph.edges["s", uplink]["us"] = 3.0
        compared = compare_made(made, read_reference(write_plan(plan)), seed=seed)
        assert name_slow(compared) == {frozenset(("s", uplink))}
        assert [(each.host, each.found_switch) for each in compared.comparison.misplaced] == [(name(host), new)]
        assert compared.comparison.recabled == ()
        assert compared.comparison.separated == ()

    def test_a_slow_uplink_is_no_wrong_cable(self) -> None:
        """Delays from hosts behind the slow uplink are longer than usual delays between pods."""
        plan, made = tree(2, 2, 4), tree(2, 2, 4)
        made.graph.edges["s.0", "s.0.1"]["us"] = 6.0
        compared = compare_made(made, read_reference(write_plan(plan)))
        assert name_slow(compared) == {frozenset(("s.0", "s.0.1"))}
        assert compared.differences == 1

    def test_a_trunk_that_has_no_like(self) -> None:
        made = tree(2, 4)
        reference = read_reference(write_plan(made))
        made.graph.edges["s", "s.0"]["us"] = 9.0
        compared = compare_made(made, reference)
        slow = {reference.names[end] for each in compared.slow for end in reference.link[each.link].tolist()}
        assert slow == {"s", "s.0", "s.1"}  # no path passes only one half of the trunk

    def test_an_uplink_in_another_pod(self) -> None:
        plan, made = tree(3, 3, 4), tree(3, 3, 4)
        made.graph.remove_edge("s.0", "s.0.1")
        made.graph.add_edge("s.1", "s.0.1", us=1.0)
        compared = compare_made(made, read_reference(write_plan(plan)))
        (wrong,) = compared.comparison.recabled
        assert (wrong.switch, wrong.near) == ("s.0.1", ("s.0.0", "s.0.2"))
        assert wrong.found_near == ("s.1.0", "s.1.1", "s.1.2")
        assert compared.differences == 1

    def test_a_link_of_a_torus(self) -> None:
        plan, made = torus(4, 4), torus(4, 4)
        made.graph.remove_edge(0, 1)
        compared = compare_made(made, read_reference(write_plan(plan)), 0.003)
        assert compared.comparison.missing == (("n1", "n2"),)
        assert compared.comparison.similarity == pytest.approx(31 / 32)

    def test_throughput_below_the_speed(self) -> None:
        made = two_levels(16)
        short = made.delays()
        rate = np.full((16, 16), 90e9 / 8)
        rate[5, :] = rate[:, 5] = 9e9 / 8
        cube = np.stack([short, short + (1 << 20) / rate]).astype(np.float32)
        for matrix in cube:
            np.fill_diagonal(matrix, 0)
        delays = Delays(tuple(name(host) for host in range(16)), np.array([8, 8 + (1 << 20)]), cube)
        found = infer(take_pair_delays(delays), InferenceEffort(replicates=0)).topology
        (slow,) = compare_with_reference(found, read_reference(write_plan(made)), delays, 8).slow
        assert slow.bytes_per_second == pytest.approx(9e9 / 8, rel=0.01)
        assert slow.ratio == pytest.approx(100 / 9, rel=0.01)


class TestCommand:
    def test_text_json_pictures_and_status(self, capsys: pytest.CaptureFixture[str]) -> None:
        plan, made = two_levels(16), two_levels(16)
        made.graph.remove_edge(0, "s.0")
        made.graph.add_edge(0, "s.1", us=1.0)
        write_plan(plan)
        write_delays("delays.nc", as_delays(made))
        command = ["compare", "delays.nc", "plan.dot"]
        assert topology.main(command) == 0
        assert (
            "wrong cable: the delays show n1 on s.1 with n[5-8]; in the reference it is on s.0"
            in capsys.readouterr().out
        )
        assert topology.main([*command, "--fail", "--json", "-o", "d.svg", "-o", "d.dot", "-o", "d.json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert document == json.loads(Path("d.json").read_text())
        assert document["differences"] == 1
        assert {link["colour"] for link in document["links"]} == {"blue"}
        drawn = read_dot("d.dot")
        (orange,) = [told["label"] for told in drawn.vertices.values() if told.get("color") == "#e07000"]
        assert orange == "n1"
        assert len(drawn.edges) == plan.graph.number_of_edges()
        picture = ET.fromstring(Path("d.svg").read_text())
        assert len(picture.findall("{http://www.w3.org/2000/svg}line")) == plan.graph.number_of_edges()

    @pytest.mark.parametrize("ending", ["json", "dot", "tgf", "lst"])
    def test_what_infer_writes_is_taken(self, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
        write_plan(three_levels(16))
        write_delays("delays.nc", as_delays(three_levels(16)))
        assert topology.main(["infer", "delays.nc", "--bootstrap", "0", "-o", f"t.{ending}"]) == 0
        assert topology.main(["compare", f"t.{ending}", "plan.dot", "--fail"]) == 0
        assert topology.main(["compare", "delays.nc", f"t.{ending}", "--fail"]) == 0
        assert "no difference" in capsys.readouterr().out

    def test_reference_method_is_compared_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        write_plan(torus(4, 4))
        made = torus(4, 4, overhead=0.0)
        write_delays("delays.nc", as_delays(made, 0.0))
        arguments = ["--method", "bannikov", "--json", "--fail"]
        assert topology.main(["compare", "delays.nc", "plan.dot", *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["similarity_percent"] == 100

    def test_hosts_that_nobody_knows(self, capsys: pytest.CaptureFixture[str]) -> None:
        write_plan(two_levels(16))
        delays = as_delays(two_levels(16))
        write_delays("delays.nc", Delays((*delays.hosts[:15], "stranger"), delays.lengths, delays.median))
        assert topology.main(["compare", "delays.nc", "plan.dot", "--fail"]) == 1
        out = capsys.readouterr().out
        assert "not in the reference: stranger" in out
        assert "not measured: n16" in out
        write_delays("delays.nc", Delays(tuple(f"x{host}" for host in range(16)), delays.lengths, delays.median))
        assert topology.main(["compare", "delays.nc", "plan.dot"]) == InconsistentError.status

    @pytest.mark.parametrize(
        ("content", "status"), [("graph {", 3), ("", 3), ("graph { }", 5), ("graph { a -- b }", 5)]
    )
    def test_bad_references(self, content: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
        write_delays("delays.nc", as_delays(two_levels(16)))
        Path("plan.dot").write_text(content)
        assert topology.main(["compare", "delays.nc", "plan.dot"]) == status
        assert "plan.dot" in capsys.readouterr().err
        assert topology.main(["compare", "delays.nc", "nowhere.dot"]) == 3
        assert topology.main(["compare", "nowhere.json", "plan.dot"]) == 3


class TestParallelCables:
    """Two reference fabrics, with one and with two cables between the same switches."""

    CABLES = "leaf1 -- {a b c}; leaf2 -- {d e f}; leaf1 -- leaf2"

    def compare(self, one: str, other: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        status = topology.main(["compare", one, other, "--fail"])
        return status, capsys.readouterr().out

    def test_of_plans(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("one.dot").write_text(f"graph {{ {self.CABLES} }}")
        Path("two.dot").write_text(f"graph {{ {self.CABLES}; leaf2 -- leaf1 }}")
        for names, counts in ((("one.dot", "two.dot"), (1, 2)), (("two.dot", "one.dot"), (2, 1))):
            status, said = self.compare(*names, capsys)
            assert status == 1
            assert "cables: leaf1 to leaf2: {} found, {} in the reference\n".format(*counts) in said
        assert self.compare("two.dot", "two.dot", capsys)[0] == 0

    def test_of_dumps(self, capsys: pytest.CaptureFixture[str]) -> None:
        whole = FABRICS / "testbed44" / "ibdiagnet.lst"
        lines = whole.read_text().splitlines(keepends=True)
        lines.remove(next(line for line in lines if "{sw-a}" in line and "{sw-b}" in line))
        Path("less.lst").write_text("".join(lines))
        status, said = self.compare("less.lst", str(whole), capsys)
        assert status == 1
        assert "1 difference\n" in said
        assert "cables: sw-a to sw-b: 14 found, 15 in the reference\n" in said

    def test_latencies_do_not_show_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        timed = f"node [shape=ellipse]; leaf1, leaf2 [shape=box]; edge [latency_us=1]; {self.CABLES}"
        Path("timed.dot").write_text(f"graph {{ {timed} }}".replace("leaf1, leaf2", "leaf1 [shape=box]; leaf2"))
        Path("two.dot").write_text(f"graph {{ {self.CABLES}; leaf2 -- leaf1 }}")
        status, said = self.compare("timed.dot", "two.dot", capsys)
        assert status == 0
        assert "unknown: the number of cables of leaf1 to leaf2: latencies do not show parallel cables\n" in said

    def test_repeated_edges_of_a_strict_plan_are_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("one.dot").write_text(f"graph {{ {self.CABLES} }}")
        Path("strict.dot").write_text(f"strict graph {{ {self.CABLES}; leaf2 -- leaf1 }}")
        assert self.compare("one.dot", "strict.dot", capsys)[0] == 0
