# SPDX-License-Identifier: Apache-2.0
"""Each output has the numbers of links.csv. Outputs are read with third-party readers, if such readers exist."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from ibprof.text.host_lists import expand_hosts
from ibprof_converter.cli import layout
from ibprof_converter.outputs.fabric_picture import split_loads
from ibprof_converter.outputs.rows import BOUND_COLUMNS, Row
from ibprof_converter.outputs.slurm_topology import compress, write_topology
from ibprof_converter.traffic.link_loads import Loads
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample

Sent = Counter[tuple[str, str, str, str, str, int]]
"""Multiset of (rail, GUID, port, operation, job, bytes) of link directions."""

RAILS = [str(find_sample(f"dualrail/rail{rail}", IBDIAGNET)) for rail in (1, 2)]
TRAFFIC = ["pattern:shift:40:1000003", "pattern:permutation:7:5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the outputs of two jobs on two rails, in each format."""
    made = tmp_path_factory.mktemp("outputs")
    options = {
        "-o": "links.csv",
        "--nodes": "nodes.csv",
        "--yaml": "all.yaml",
        "--graphml": "g.graphml",
        "--dot": "g.dot",
        "--tgf": "g.tgf",
        "--topology-conf": "topology.conf",
        "--boxfish": "boxfish",
    }
    named = [word for option, name in options.items() for word in (option, str(made / name))]
    assert layout.main([*RAILS, *TRAFFIC, *named]) == 0
    assert layout.main([*RAILS, *TRAFFIC, "-o", str(made / "l.parquet"), "--nodes", str(made / "n.parquet")]) == 0
    return made


@pytest.fixture(scope="module")
def expected(folder: Path) -> Sent:
    sent: Sent = Counter()
    with (folder / "links.csv").open() as file:
        for row in csv.DictReader(file):
            for end in "ab":
                amount = int(row[f"{end}_bytes"])
                sent[row["rail"], row[f"{end}_guid"], row[f"{end}_port"], row["operation"], row["job"], amount] += 1
    assert sum(key[-1] for key in sent) > 1e9
    return sent


def test_parquet(folder: Path, expected: Sent) -> None:
    sent: Sent = Counter()
    table = pq.read_table(folder / "l.parquet")
    assert str(table.schema.field("a_bytes").type) == "uint64"
    for row in table.to_pylist():
        for end in "ab":
            key = (str(row["rail"]), row[f"{end}_guid"], str(row[f"{end}_port"]), row["operation"], row["job"])
            sent[(*key, row[f"{end}_bytes"])] += 1
    assert sent == expected
    nodes = pq.read_table(folder / "n.parquet").to_pylist()
    with (folder / "nodes.csv").open() as file:
        assert [(row["guid"], row["ranks"]) for row in nodes] == [
            (row["guid"], json.loads(row["ranks"])) for row in csv.DictReader(file)
        ]


def test_yaml(folder: Path, expected: Sent) -> None:
    sent: Sent = Counter()
    for row in yaml.load((folder / "all.yaml").read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["links"]:
        for end in "ab":
            key = str(row["rail"]), row[f"{end}_guid"], str(row[f"{end}_port"]), row["operation"], row["job"]
            sent[(*key, row[f"{end}_bytes"])] += 1
    assert sent == expected


def test_networkx(folder: Path, expected: Sent) -> None:
    graph = nx.read_graphml(folder / "g.graphml")
    sent: Sent = Counter()
    for source, _, edge in graph.edges(data=True):
        rail, guid = source.split(":")
        sent[rail, guid, str(edge["port"]), edge["operation"], edge["job"], edge["bytes"]] += 1
    assert sent == expected
    assert graph.number_of_nodes() == 420 + 406


def test_dot(folder: Path, expected: Sent) -> None:
    text = (folder / "g.dot").read_text()
    sent: Sent = Counter()
    for line in re.findall(r'^  "(\d):(0x\w+)" -> "\d:0x\w+" \[(.*)\];$', text, re.MULTILINE):
        of = dict(re.findall(r'(\w+)="([^"]*)"', line[2]))
        sent[line[0], line[1], of["port"], of["operation"], of["job"], int(of["bytes"])] += 1
    assert sent == expected


def test_tgf(folder: Path, expected: Sent) -> None:
    nodes, edges = (folder / "g.tgf").read_text().split("#\n")
    sent: Sent = Counter()
    for line in edges.splitlines():
        source, _, *label = line.split(" ")
        of = dict(part.split("=", 1) for part in label)
        rail, guid = source.split(":")
        sent[rail, guid, of["port"], of["operation"], of["job"], int(of["bytes"])] += 1
    assert sent == expected
    assert len(nodes.splitlines()) == 420 + 406


def load_table(path: Path) -> np.ndarray:
    """Read a table as Boxfish's documentation describes it."""
    head, body = path.read_text().split("\n...\n")
    meta, types = yaml.safe_load_all(head)
    assert "key" in meta
    return np.loadtxt(body.splitlines(), dtype=[tuple(pair) for pair in types])


def test_boxfish(folder: Path, expected: Sent) -> None:
    run, *documents = yaml.safe_load_all((folder / "boxfish" / "meta.yaml").read_text())
    assert (folder / "boxfish" / "meta.yaml").read_text().endswith("...\n")
    assert [each["filetype"] for each in documents] == ["table", "table", "projection"]
    nodes, links = (load_table(folder / "boxfish" / each["filename"]) for each in documents[:2])
    with (folder / "nodes.csv").open() as file:
        guids = [row["guid"] for row in csv.DictReader(file)]
    names = {table: dict(codes) for table, codes in run["application"].items()}
    sent: Sent = Counter()
    for row in links:
        key = str(row["rail"]), guids[row["source"]], str(row["sport"])
        sent[(*key, names["operations"][row["operation"]], names["jobs"][row["job"]], int(row["bytes"]))] += 1
    assert sent == expected
    place = {(x, y) for x, y in zip(nodes["x"], nodes["y"], strict=True)}
    assert {(x, y) for x, y in zip(links["sx"], links["sy"], strict=True)} == place
    assert run["hardware"]["nodes"] == len(nodes) == 420 + 406


def read_topology(path: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    hosts, switches = {}, {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        of = dict(part.split("=", 1) for part in line.split(" "))
        if "Nodes" in of:
            hosts[of["SwitchName"]] = expand_hosts(of["Nodes"])
        else:
            switches[of["SwitchName"]] = expand_hosts(of["Switches"])
    return hosts, switches


def test_topology_conf_is_a_tree_of_all_hosts(folder: Path) -> None:
    hosts, switches = read_topology(folder / "topology.conf")
    everyone = [host for own in hosts.values() for host in own]
    assert len(everyone) == len(set(everyone)) == 354
    children = [child for below in switches.values() for child in below]
    assert len(children) == len(set(children))
    assert set(children) <= hosts.keys() | switches.keys()
    assert len((hosts.keys() | switches.keys()) - set(children)) == 1  # one root


@pytest.mark.parametrize(
    ("lst", "leaves", "upper"),
    [
        ("xgft:3:4,4,3:1,4,4", 12, [4, 4, 4, 3]),  # three pods of four leaves, one top
        ("torus:3x3:2", 9, [9]),
        ("dragonfly:4,2,1,5", 20, [4, 4, 4, 4, 4, 5]),  # five groups of four leaves
        ("xgft:1:5:1", 1, []),
    ],
)
def test_topology_conf_shows_pods(tmp_path: Path, lst: str, leaves: int, upper: list[int]) -> None:
    path = tmp_path / "t"
    assert layout.main([lst, "pattern:shift:1", "-o", "/dev/null", "--topology-conf", str(path)]) == 0
    hosts, switches = read_topology(path)
    assert len(hosts) == leaves
    assert [len(below) for below in switches.values()] == upper


def test_what_is_no_host_name_is_left_out_of_topology_conf() -> None:
    rows: list[Row] = [
        {"rail": 0, "a_guid": str(a), "a_name": "", "a_level": 0, "b_guid": "9", "b_name": "leaf", "b_level": 1}
        for a in range(5)
    ]
    host_of = {"0": "node1", "1": "a,b", "2": "x\nSwitchName=y", "3": "[1-9]", "4": "n2.site"}
    file = io.StringIO()
    write_topology(file, rows, host_of, "test")
    _, left_out, *lines = file.getvalue().splitlines()
    assert "Left out: 3 adapters" in left_out
    assert lines == ["SwitchName=leaf Nodes=node1,n2.site"]


def test_slurm_ranges_are_expanded_to_what_they_were() -> None:
    names = ["n09", "n10", "n11", "n1", "login", "n003", "r2c1"]
    assert sorted(expand_hosts(compress(names))) == sorted(names)
    assert compress(["node01", "node02", "node03", "node07"]) == "node[01-03,07]"
    assert compress(["node7"]) == "node7"


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_figures_are_of_the_kind_that_their_name_says(tmp_path: Path, suffix: str, magic: bytes) -> None:
    for number in (1, 2):
        path = tmp_path / f"{number}.{suffix}"
        arguments = ["xgft:2:4,3:1,2", *TRAFFIC, "-o", "/dev/null", "--figure", str(path), "--panels", "job", "--used"]
        assert layout.main([each.replace("shift:40", "shift:4") for each in arguments]) == 0
        assert path.read_bytes().startswith(magic)
    if suffix != "pdf":  # writing the same picture twice gives equal files
        assert (tmp_path / f"1.{suffix}").read_bytes() == (tmp_path / f"2.{suffix}").read_bytes()


def test_panels_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(5)
    groups = tuple((f"region{number % 11}", f"op{number}") for number in range(22))
    by_rail = tuple(rng.integers(0, 1 << 40, (links, 2, 22)).astype(np.uint64) for links in (5, 3))
    loads = Loads(by_rail, groups, 0, 0, 0, {}, tuple(f"job{number % 2}" for number in range(22)))
    (whole,) = split_loads(loads, None)
    for panels, count in (("region", 8), ("operation", 8), ("job", 2)):
        parts = split_loads(loads, panels)
        assert len(parts) == count
        for rail in (0, 1):
            assert np.array_equal(sum(part.by_rail[rail] for part in parts), whole.by_rail[rail])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--png", "x.png", "--panels", "region"], "needs --by region"),
        (["--png", "x.png", "--panels", "job"], "needs several jobs"),
        (["--dot", "there/is/none", "--tgf", "there/is/none"], "this is also --dot"),
    ],
)
def test_what_cannot_be(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["xgft:1:5:1", "pattern:shift:1", *options]) == 2
    assert said in capsys.readouterr().err


def test_any_name_survives_in_graphs(tmp_path: Path) -> None:
    """The unusual names in quirks-small have quotes, brackets, `#` and blanks."""
    lst = str(find_sample("quirks-small", IBDIAGNET))
    names = [str(tmp_path / name) for name in ("g.graphml", "g.dot", "g.tgf", "t.conf", "b")]
    options = ["--graphml", "--dot", "--tgf", "--topology-conf", "--boxfish"]
    named = [word for pair in zip(options, names, strict=True) for word in pair]
    assert layout.main([lst, "pattern:shift:1", "-o", "/dev/null", *named]) == 0
    assert 'q04 "quoted" HCA-1' in {data["name"] for _, data in nx.read_graphml(names[0]).nodes(data=True)}
    assert r"q04 \"quoted\" HCA-1" in Path(names[1]).read_text()
    assert Path(names[2]).read_text().count("\n#\n") == 1
    assert len(load_table(Path(names[4]) / "nodes.yaml")) == 20


def test_parquet_has_the_bounds_of_loads(tmp_path: Path) -> None:
    """Modelled routes give bounds and an estimate of each load."""
    rail = find_sample("dualrail/rail1", IBDIAGNET)
    (tmp_path / "l.lst").write_bytes(rail.read_bytes())
    paths = [tmp_path / "l.parquet", tmp_path / "l.csv"]
    for path in paths:
        assert layout.main([str(tmp_path / "l.lst"), "pattern:shift:1:1000", "-o", str(path)]) == 0
    table = pq.read_table(paths[0])
    with paths[1].open() as file:
        rows = list(csv.DictReader(file))
    for column in BOUND_COLUMNS:
        assert table[column].to_pylist() == [int(row[column]) for row in rows]
