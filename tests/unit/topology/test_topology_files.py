# SPDX-License-Identifier: Apache-2.0
"""A topology written as JSON is read back unchanged. JSON and `.lst` have the measured link rates."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.model.topology_files import describe_topology, read_topology, write_dot, write_tgf
from ibprof_lab.topology.outputs.inferred_fabric import make_fabric, write_lst
from ibprof_testing.samples.topologies import three_levels, torus

LATENCY = '{{"hosts": ["a", "b"], "switches": [], "method": "m", "edges": [{{"a": "a", "b": "b", "latency_us": {}}}]}}'


def infer_made(direct: bool) -> InferredTopology:
    made = torus(4, 4) if direct else three_levels(16)
    values = PairDelays(tuple(f"n{host}" for host in range(made.hosts)), made.delays(), "median", 0, ("a note",))
    return infer(values, InferenceEffort(replicates=0)).topology


def with_rates(topology: InferredTopology) -> InferredTopology:
    edges, switches = len(topology.edge), len(topology.switches)
    rates = 0.1 * (1 + np.arange(edges, dtype=np.float64))
    rates[0] = np.nan
    throughput = LinkThroughput(rates, np.arange(edges) % 3 == 1, np.full(switches, 7.5), np.ones(switches, bool))
    return replace(topology, throughput=throughput)


@pytest.mark.parametrize("direct", [False, True], ids=["tree", "torus"])
@pytest.mark.parametrize("rates", [False, True], ids=["bare", "rates"])
def test_json_reads_back_the_same(direct: bool, rates: bool, tmp_path: Path) -> None:
    topology = infer_made(direct)
    topology = with_rates(topology) if rates else topology
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(describe_topology(topology)))
    found = read_topology(path)
    assert describe_topology(found) == describe_topology(topology)
    assert np.array_equal(found.edge, topology.edge)
    assert (found.throughput is not None) == rates


def test_a_port_behind_one_without_a_cable_is_read_back(tmp_path: Path) -> None:
    """A switch's number of ports in the list is at least the largest port number."""
    fabric = generate("xgft:2:2,2:1,2", 0).fabric
    kept = np.flatnonzero(fabric.link_port[:, 0] != 1)
    columns = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")
    cut = replace(fabric, **{name: getattr(fabric, name)[kept] for name in columns})
    with (tmp_path / "t.lst").open("w") as file:
        write_lst(file, cut, "cut")
    assert read_fabric(tmp_path / "t.lst").links == cut.links


def test_rates_that_were_measured_are_the_links_of_the_fabric(tmp_path: Path) -> None:
    topology = with_rates(infer_made(direct=False))
    text = io.StringIO()
    write_lst(text, make_fabric(topology, "t").fabric, "made")
    (tmp_path / "t.lst").write_text(text.getvalue())
    fabric = read_fabric(tmp_path / "t.lst")
    assert topology.throughput is not None
    expected = {
        frozenset(topology.names[end] for end in edge): rate
        for edge, rate in zip(topology.edge.tolist(), topology.throughput.edge_gbps.tolist(), strict=True)
    }
    found = {
        frozenset(fabric.node_name[node].removesuffix(" HCA-1") for node in ends): gbps
        for ends, gbps in zip(fabric.link_node.tolist(), fabric.link_gbps.tolist(), strict=True)
    }
    assert found.keys() == expected.keys()
    assert sorted(fabric.node_kind.tolist()).count(NodeKind.CA) == 16
    for link, rate in expected.items():
        assert found[link] == pytest.approx(rate, nan_ok=True)


def test_the_others_formats_have_the_rates() -> None:
    topology = with_rates(infer_made(direct=False))
    graph, dot = io.StringIO(), io.StringIO()
    write_tgf(graph, topology)
    write_dot(dot, topology)
    assert " t: 0.2 " in graph.getvalue().replace("\n", " \n")
    assert graph.getvalue().count(" t: ") == len(topology.edge) - 1
    assert "gbps=0.2" in dot.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "a topology as JSON"),
        ("[]", "a topology as"),
        ("[" * 100_000, "a topology as JSON"),
        ('{"hosts": 3}', "`hosts`"),
        ('{"hosts": ["a", 3]}', "hosts[1]"),
        ('{"hosts": ["a", "a"], "switches": [], "edges": []}', "a different name for each host"),
        ('{"hosts": ["a"], "switches": [], "edges": [{"a": "a", "b": "x"}]}', "`b` of edges[0]"),
        (LATENCY.format("-1"), "latency_us"),
        (LATENCY.format("NaN"), "latency_us"),
    ],
)  # fmt: skip
def test_damage_is_named(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_topology(path)
    assert expected in str(raised.value)
    with pytest.raises(InputError):
        read_topology(tmp_path / "none.json")
