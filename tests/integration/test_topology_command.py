# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology infer` refuses invalid input, and writes inferred switches to files that other commands read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.cli import layout, place, report, view
from ibprof_lab.cli import topology
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_testing.samples.recordings import Process, counter, make_recording
from ibprof_testing.samples.topologies import Made, disturb, line, three_levels, torus


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_made(made: Made, noise: float = 0.03) -> None:
    matrix = disturb(made.delays(), noise, 1).astype(np.float32)
    hosts = tuple(f"node{host + 1:02}" for host in range(made.hosts))
    write_delays("delays.nc", Delays(hosts, np.array([8]), matrix[None]))


def test_json_has_switches_with_their_hosts_and_edges(capsys: pytest.CaptureFixture[str]) -> None:
    write_made(three_levels(16))
    assert topology.main(["infer", "delays.nc", "--json", "--bootstrap", "20"]) == 0
    document = json.loads(capsys.readouterr().out)
    groups = sorted(tuple(switch["hosts"]) for switch in document["switches"] if switch["hosts"])
    assert groups == [tuple(f"node{host:02}" for host in range(first, first + 4)) for first in (1, 5, 9, 13)]
    assert [switch["name"] for switch in document["switches"]] == [f"switch{number}" for number in range(1, 7)]
    assert [len(switch["hosts"]) for switch in document["switches"]] == [4, 4, 4, 4, 0, 0]
    edge = next(edge for edge in document["edges"] if edge["a"] == "node01")
    assert edge["latency_us"] == pytest.approx(1.0, rel=0.05)
    assert edge["support"] > 0.9
    assert document["method"] == "levels"
    assert document["cannot_tell"] == []


def test_text_says_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    write_made(line(16))
    assert topology.main(["infer", "delays.nc", "--bootstrap", "0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("16 hosts, 4 switches")
    assert "node[05-08]" in out


@pytest.mark.parametrize("made", [three_levels(16), line(16), torus(4, 4)], ids=["tree", "line", "torus"])
def test_recorded_bytes_lie_on_inferred_links(made: Made) -> None:
    write_made(made, 0.01)
    assert topology.main(["infer", "delays.nc", "-o", "topology.lst", "--bootstrap", "0", "--speed", "edr"]) == 0
    for rank, host in enumerate((1, 2, 16)):
        process = Process(rank, 3, counters=[[counter(peer, 100) for peer in range(3) if peer != rank]])
        make_recording(Path("profile.ibprof"), [process], host=f"node{host:02}", run="r")
    assert layout.main(["topology.lst", "profile.ibprof", "-o", "links.csv", "--strict"]) == 0
    with Path("links.csv").open() as file:
        rows = list(csv.DictReader(file))
    sent = {row["a_name"]: int(row["a_bytes"]) for row in rows if row["a_level"] == "0"}
    assert {name: amount for name, amount in sent.items() if amount} == {
        "node01 HCA-1": 200, "node02 HCA-1": 200, "node16 HCA-1": 200
    }  # fmt: skip
    loaded = [row for row in rows if row["a_level"] != "0" and int(row["a_bytes"]) + int(row["b_bytes"])]
    # Ranks 0 and 1 send 100 bytes each to rank 2. So each link between switches on the path carries 200 bytes.
    if not made.is_direct:
        assert loaded
        assert {tuple(sorted((int(row["a_bytes"]), int(row["b_bytes"])))) for row in loaded} == {(200, 200)}
    assert {row["gbps"] for row in rows} == {"100"}


def test_other_commands_take_the_inferred_fabric(capsys: pytest.CaptureFixture[str]) -> None:
    write_made(three_levels(16))
    arguments = ["-o", "topology.lst", "-o", "t.tgf", "-o", "t.dot", "-o", "t.json", "-o", "topology.conf"]
    assert topology.main(["infer", "delays.nc", "--bootstrap", "0", *arguments]) == 0
    assert "modelled" in capsys.readouterr().err
    assert report.main(["topology.lst", "pattern:shift:4:1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_routed"] == 16000
    assert view.main(["topology.lst", "pattern:shift:4:1000", "-o", "view.html"]) == 0
    Path("m.csv").write_text("src,dst,bytes,messages\n0,1,10,1\n1,2,10,1\n")
    assert place.main(["topology.lst", "m.csv", "--time", "0.2", "-o", "placement.csv"]) == 0
    slurm = Path("topology.conf").read_text()
    assert "Nodes=node[01-04]" in slurm
    assert slurm.count("Switches=") == 3
    vertices, _, edges = Path("t.tgf").read_text().partition("#\n")
    assert len(vertices.splitlines()) == 22
    assert len(edges.splitlines()) == 21
    assert Path("t.dot").read_text().count(" -- ") == 21
    assert len(json.loads(Path("t.json").read_text())["edges"]) == 21


def test_pairs_to_measure_again(capsys: pytest.CaptureFixture[str]) -> None:
    made = three_levels(16)
    matrix = disturb(made.delays(), 0.01, 1).astype(np.float32)
    matrix[2, 9] = matrix[9, 2] = 1e-4
    write_delays("delays.nc", Delays(tuple(f"h{host}" for host in range(16)), np.array([8]), matrix[None]))
    assert topology.main(["infer", "delays.nc", "--outliers", "again.csv", "--bootstrap", "0"]) == 0
    rows = Path("again.csv").read_text().splitlines()
    assert rows[0] == "sender,receiver"
    assert {"h2,h9", "h9,h2"} <= set(rows)
    assert "measure again" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["auto", "levels", "additive", "direct", "bufe", "bannikov-salnikov"])
@pytest.mark.parametrize(
    "text",
    [
        ",a\na,0\n",
        ",a,b\na,0,1\nb,2,0\n",
        ",a,b,c\na,0,,\nb,,0,\nc,,,0\n",
        ",a,b,c\na,0,0,0\nb,0,0,0\nc,0,0,0\n",
        ",a,b,c,d\na,0,1,1,\nb,1,0,-1,\nc,1,1,0,\nd,,,,0\n",
        ",a,b,c,d\na,0,1,9,5\nb,2,0,1,5\nc,1,7,0,5\nd,1,1,1,0\n",
        ",a,b,c\na,0,1e-30,1e30\nb,1,0,1\nc,1,1,0\n",
    ],
    ids=["one", "two", "nan", "zero", "missing", "one-way", "extreme"],
)
def test_odd_matrices_get_an_answer(method: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.csv").write_text(text)
    assert topology.main(["infer", "m.csv", "--method", method, "--json", "--bootstrap", "3"]) in (0, 5)
    assert "hosts" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["infer", "none.csv"], 3, "none.csv: expected"),
        (["infer", "bad.csv"], 3, "bad.csv:2: expected"),
        (["infer", "m.csv", "-o", "t.xyz"], 2, "expected a name that ends with"),
        (["infer", "m.csv", "-o", "m.csv"], 2, "this is also an input"),
        (["infer", "m.csv", "--length", "3"], 2, "--length"),
        (["infer", "one.csv", "-o", "t.lst"], 2, "a fabric needs 2 hosts"),
        (["infer", "m.csv", "--method", "bannikov", "-o", "t.lst"], 2, "arcs"),
        (["join", "m.csv", "m.csv", "--external", "nobody"], 2, "nobody"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("m.csv").write_text(",a,b,c\na,0,1,1\nb,1,0,1\nc,1,1,0\n")
    Path("one.csv").write_text(",a\na,0\n")
    Path("bad.csv").write_text(",a,b\na,0,x\nb,1,0\n")
    assert topology.main(arguments) == status
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_a_switch_with_more_links_than_ports_is_no_fabric(capsys: pytest.CaptureFixture[str]) -> None:
    matrix = (1 - np.eye(300)).astype(np.float32) * 1e-6
    write_delays("delays.nc", Delays(tuple(f"h{host}" for host in range(300)), np.array([8]), matrix[None]))
    assert topology.main(["infer", "delays.nc", "-o", "t.lst", "--bootstrap", "0"]) == 2
    assert "300 links" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["infer", "--help"], ["join", "--help"]):
        with pytest.raises(SystemExit):
            topology.main(arguments)
        assert "example" in capsys.readouterr().out
