# SPDX-License-Identifier: Apache-2.0
"""OpenSM computes the captured tables again from the links. `ibprof-routes` compares the loads of OpenSM's engines."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from ibprof_converter.cli import layout, report
from ibprof_converter.cli.routes import main
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.route_choice import route_by_opensm
from ibprof_converter.routing.spread import trace
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.paths import DATA
from ibprof_testing.samples.fabrics import read_subnet

FAULTY = str(DATA / "fabrics/oversub-faulty/opensm-subnet.lst.xz")
DRAGONFLY = str(DATA / "fabrics/dragonfly-72/opensm-subnet.lst.xz")


@pytest.mark.parametrize(("path", "engine"), [(FAULTY, "updn"), (DRAGONFLY, "dfsssp")])
def test_tables_made_from_links_are_those_that_were_captured(path: str, engine: str) -> None:
    """On a live subnet, `engine` computed the captured tables. From the links, it computes equal tables."""
    captured = read_subnet(path)
    made = route_by_opensm(captured.fabric, engine)
    assert made.engine == engine
    assert made.subnet.warnings == ()
    assert np.array_equal(made.subnet.tables.switch_guid, captured.tables.switch_guid)
    assert np.array_equal(made.subnet.tables.port, captured.tables.port)


def test_rows_are_loads_of_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    traffic = "pattern:shift:20:1000"
    assert main(["compare", FAULTY, traffic, "--engines", "updn,ftree", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    present, updn, ftree = document["engines"]
    assert layout.main([FAULTY, traffic]) == 0
    lines = capsys.readouterr().out.splitlines()
    columns = lines[0].split(",")
    loads = [int(row.split(",")[columns.index(name)]) for row in lines[1:] for name in ("a_bytes", "b_bytes")]
    for row in (present, updn):  # the engine updn computed the captured tables
        assert row["max_bytes"] == max(loads)
        assert row["mean_bytes"] == pytest.approx(sum(loads) / np.count_nonzero(loads))
    assert (ftree["used"], document["best"]) == ("minhop", "updn")
    assert document["opensm_conf"] == ["routing_engine updn"]


def test_nue_needs_no_second_lane_on_a_ring(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "torus:5:2", "pattern:all-to-all", "--engines", "nue,minhop", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    _, nue, minhop = document["engines"]
    assert (nue["used"], nue["deadlock"], minhop["deadlock"]) == ("nue", "free", "cycle")
    assert document["opensm_conf"] == ["routing_engine nue"]


def test_layout_and_report_take_opensm_for_the_routes(capsys: pytest.CaptureFixture[str]) -> None:
    """OpenSM's engine updn computed the captured tables. If OpenSM computes the tables anew, the output is the same."""
    traffic = "pattern:shift:20:1000"
    assert layout.main([FAULTY, traffic]) == 0
    captured = capsys.readouterr()
    assert layout.main([FAULTY, traffic, "--routes", "opensm:updn"]) == 0
    anew = capsys.readouterr()
    assert anew.out == captured.out
    assert anew.err.splitlines()[0] == (
        "ibprof-layout: routes: opensm:updn (OpenSM on this machine routed the list of links on ibsim; "
        "these are not the subnet's own tables)"
    )
    assert report.main([FAULTY, traffic, "--routes", "opensm:ftree", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] == "opensm:minhop, in place of ftree"


def test_the_first_line_says_what_the_routes_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "xgft:2:4,4:1,2", "pattern:shift:5:1000", "--engines", "minhop,updn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("routes: modelled by OpenSM on ibsim")
    assert lines[2] == "Nothing is left out: all 16 hosts, all 16 kB."
    assert [line.split()[0] for line in lines[5:8]] == ["present", "minhop", "updn"]
    assert lines[-1].split()[0] == "routing_engine"


def closes_a_cycle(subnet: Subnet) -> bool:
    """Follow packets between hosts; return whether link directions wait for each other in a cycle.

    One host of each switch sends, as all hosts of a switch have the same routes. No packet waits for a host's link.
    """
    waits = nx.DiGraph()
    fabric, network = subnet.fabric, subnet.routes.network
    is_host = fabric.node_kind[fabric.port_node] == NodeKind.CA
    lids = fabric.port_lid[is_host]
    switches = network.next_node[network.end_at[fabric.port_node[is_host], fabric.port_number[is_host]]]
    _, senders = np.unique(switches, return_index=True)
    for source, destination in product(lids[senders].tolist(), lids.tolist()):
        path = trace(network, source, destination)
        assert path.reason.arrives
        ends = [2 * hop.link + hop.end for hop in path.hops]
        waits.add_edges_from(pairwise(ends))
    return not nx.is_directed_acyclic_graph(waits)


def test_deadlocks_are_those_of_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Some engines' routes on a dragonfly can deadlock. The test follows packets through each engine's tables."""
    engines = ("minhop", "updn", "lash", "dfsssp")
    assert main(["compare", DRAGONFLY, "pattern:shift:9:1000", "--engines", ",".join(engines), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    fabric = read_subnet(DRAGONFLY).fabric
    found = {}
    for row in document["engines"][1:]:
        assert closes_a_cycle(route_by_opensm(fabric, row["engine"]).subnet) == (row["deadlock"] != "free")
        found[row["engine"]] = row["used"], row["deadlock"], row["lanes"]
    # In a dragonfly, OpenSM finds no root switches and disables updn.
    assert found["minhop"] == found["updn"] == ("minhop", "cycle", None)
    assert (found["lash"], found["dfsssp"]) == (("lash", "lanes", 3), ("dfsssp", "lanes", 3))
    assert document["best"] in ("lash", "dfsssp")
    updn = route_by_opensm(read_subnet(FAULTY).fabric, "updn")
    assert (updn.engine, closes_a_cycle(updn.subnet)) == ("updn", False)


def test_lanes_are_asked_for_where_no_engine_is_free_without(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", DRAGONFLY, "pattern:shift:9:1000", "--engines", "minhop,dfsssp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[6].endswith("can deadlock on one virtual lane")
    assert lines[7].endswith("free with 3 virtual lanes, but not with one")
    assert [line.strip() for line in lines[-3:]] == [
        "best engine free from deadlock: dfsssp, with 3 virtual lanes; write in opensm.conf:",
        "routing_engine dfsssp",
        "qos TRUE",
    ]


@pytest.mark.parametrize(("program", "package"), [("opensm", "opensm"), ("ibsim", "ibsim-utils")])
def test_a_missing_tool_is_named_with_its_package(
    program: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == program else found(name, path=path))
    assert main(["compare", FAULTY, "pattern:shift:20:1000", "--engines", "updn"]) == 4
    assert f"{program} is not installed; Debian's package is {package}" in capsys.readouterr().err
    assert layout.main([FAULTY, "pattern:shift:20:1000", "--routes", "opensm"]) == 4
    error = capsys.readouterr().err
    assert error == f"ibprof-layout: {program} is not installed; Debian's package is {package}\n"


def test_an_unknown_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", FAULTY, "pattern:shift:20:1000", "--engines", "updn,fast"]) == 2
    assert "expected some of minhop, updn" in capsys.readouterr().err


def test_a_source_of_routes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", FAULTY, "pattern:shift:20:1000", "--routes", "modelled"]) == 2
    assert "--routes does not apply" in capsys.readouterr().err


def test_islands_are_refused_since_opensm_routes_one(capsys: pytest.CaptureFixture[str]) -> None:
    islands = str(DATA / "cases/two-islands.txt")
    for command in (main, report.main):
        line = ["compare"] * (command is main) + [islands, "pattern:all-to-all:1000"]
        assert command(line if command is main else [*line, "--routes", "opensm:minhop"]) == 5
        assert "2 parts that no cable joins (sw0, sw1, ... with 12 adapters; " in capsys.readouterr().err


def test_written_tables_name_the_hosts_that_they_lack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", str(DATA / "cases/leaf-lid0.txt"), "-o", str(tmp_path / "tables")]) == 0
    assert capsys.readouterr().out.startswith("6 of 24 hosts (25%) are left out: leaf2 has no LID")
