# SPDX-License-Identifier: Apache-2.0
"""Slurm's topology files in each format, and topograph's graph, are read as the same tree and blocks."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import find_link_format, read_fabric
from ibprof_converter.fabric.slurm_listing import CORE
from ibprof_converter.layout.node_levels import find_levels
from ibprof_testing.paths import DATA

CONF = """\
# topology.conf
SwitchName=spine1 Switches=leaf[1-2] LinkSpeed=100
switchname=leaf1 Nodes=node[01-03],\\
   login1   # four
SwitchName=leaf2 Nodes=node[04-05]
"""

SCONTROL = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=node[01-03],login1
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=node[04-05]
SwitchName=spine1 Level=1 LinkSpeed=100 Nodes=node[01-05],login1 Switches=leaf[1-2]
"""

YAML = """\
---
- topology: other
  flat: true
- topology: default
  cluster_default: true
  tree:
    switches:
      - switch: spine1
        children: leaf[1-2]
      - switch: leaf1
        nodes: node[01-03],login1
      - switch: leaf2
        nodes: node[04-05]
- topology: blocks
  block:
    block_sizes: [2]
    blocks:
      - block: b1
        nodes: node[01-02]
"""

BLOCK_CONF = """\
BlockName=b1 Nodes=node[01-02]
BlockName=b2 Nodes=node[03-04]
BlockSizes=2,4
"""

BLOCK_SCONTROL = """\
BlockName=b1 BlockIndex=0 Nodes=node[01-02] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=node[03-04] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=2 Nodes=node[01-04] BlockSize=4
"""

BLOCK_YAML = """\
- topology: default
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - block: b2
        nodes: node[03-04]
"""

TOPOCONF = """\
%YAML 1.1
---
- topology: default
  cluster_default: true
  block: {}
  flat: {}
  ring: {}
  torus3d: {}
  tree:
    switches:
    - switch: leaf1
      children:
      nodes: node[01-03],login1
    - switch: leaf2
      children:
      nodes: node[04-05]
    - switch: spine1
      children: leaf[1-2]
      nodes:
...
"""
"""Output of `scontrol show topoconf`, Slurm 26.05.5."""

BLOCK_TOPOCONF = """\
%YAML 1.1
---
- topology: blocks
  cluster_default: true
  block:
    block_sizes:
    - 2
    - 4
    blocks:
    - block: b1
      nodes: node[01-02]
    - block: b2
      nodes: node[03-04]
  flat: {}
  ring: {}
  torus3d: {}
  tree: {}
...
"""

GRAPH = """\
{
 "instances": [
  {"id": "node01", "network_layers": ["leaf1", "spine1"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
  {"id": "node02", "network_layers": ["leaf1", "spine1"]},
  {"id": "node03", "network_layers": ["leaf1", "spine1"]},
  {"id": "login1", "network_layers": ["leaf1", "spine1"]},
  {"id": "node04", "network_layers": ["leaf2", "spine1"]},
  {"id": "node05", "network_layers": ["leaf2", "spine1"]}
 ]
}
"""

TREE_LINKS = {
    ("leaf1", "node01"): 100.0,
    ("leaf1", "node02"): 100.0,
    ("leaf1", "node03"): 100.0,
    ("leaf1", "login1"): 100.0,
    ("leaf2", "node04"): 100.0,
    ("leaf2", "node05"): 100.0,
    ("leaf1", "spine1"): 400.0,
    ("leaf2", "spine1"): 200.0,
}

BLOCK_LINKS = {
    ("b1", "node01"): 100.0,
    ("b1", "node02"): 100.0,
    ("b2", "node03"): 100.0,
    ("b2", "node04"): 100.0,
    (CORE, "b1"): 200.0,
    (CORE, "b2"): 200.0,
}


def read(folder: Path, text: str) -> Fabric:
    path = folder / "topology"
    path.write_text(text)
    return read_fabric(path)


def links_of(fabric: Fabric) -> dict[tuple[str, str], float]:
    """Return (names of a link's ends) -> speed. A switch precedes a host; two switches are sorted by name."""
    found = {}
    for (a, b), gbps in zip(fabric.link_node.tolist(), fabric.link_gbps.tolist(), strict=True):
        ends = sorted((a, b), key=lambda node: (fabric.node_kind[node] != NodeKind.SWITCH, fabric.node_name[node]))
        found[fabric.node_name[ends[0]], fabric.node_name[ends[1]]] = gbps
    return found


@pytest.mark.parametrize(
    "text", [CONF, SCONTROL, YAML, TOPOCONF, GRAPH], ids=["conf", "scontrol", "yaml", "topoconf", "graph"]
)
def test_a_tree_in_each_form(text: str, tmp_path: Path) -> None:
    fabric = read(tmp_path, text)
    assert links_of(fabric) == TREE_LINKS
    level = dict(zip(fabric.node_name, find_levels(fabric).tolist(), strict=True))
    assert (level["node01"], level["leaf1"], level["leaf2"], level["spine1"]) == (0, 1, 1, 2)
    assert any(" has only levels, switches and hosts; speeds are assumed" in each for each in fabric.warnings)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ('{"id": "node02", "network_layers": []}', "'node02' with its switches, found none"),
        ('{"id": "leaf1", "network_layers": ["spine1"]}', "'leaf1' with its switches, found the name of a switch"),
    ],
)
def test_a_host_that_the_graph_cannot_place_is_named(wrong: str, found: str, tmp_path: Path) -> None:
    fabric = read(tmp_path, GRAPH.replace('{"id": "node02", "network_layers": ["leaf1", "spine1"]}', wrong))
    assert sorted(links_of(fabric)) == sorted(set(TREE_LINKS) - {("leaf1", "node02")})
    assert [found in each.text for each in fabric.damage] == [True]


@pytest.mark.parametrize(
    "text", [BLOCK_CONF, BLOCK_SCONTROL, BLOCK_YAML, BLOCK_TOPOCONF], ids=["conf", "scontrol", "yaml", "topoconf"]
)
def test_blocks_in_each_form(text: str, tmp_path: Path) -> None:
    fabric = read(tmp_path, text)
    assert fabric.damage == ()
    assert links_of(fabric) == BLOCK_LINKS
    assert any("blocks has only levels" in each for each in fabric.warnings)


def test_only_the_topology_of_the_cluster_counts(tmp_path: Path) -> None:
    assert any("topology 'default' is used, not 'other', 'blocks'" in each for each in read(tmp_path, YAML).warnings)


def test_switches_that_name_each_other_have_one_link(tmp_path: Path) -> None:
    """A tool that derives topology.conf from links writes each cable at both ends. Some switches have no line."""
    text = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Switches=a,c,d\nSwitchName=c Switches=b,a\n"
    assert links_of(read(tmp_path, text)) == {
        ("a", "n1"): 100.0,
        ("a", "n2"): 100.0,
        ("a", "b"): 100.0,
        ("a", "c"): 100.0,
        ("b", "c"): 100.0,
        ("b", "d"): 100.0,
    }


@pytest.mark.parametrize(
    "text",
    [
        CONF.replace("SwitchName=leaf2 Nodes=node[04-05]\n", ""),
        YAML.replace("      - switch: leaf2\n        nodes: node[04-05]\n", ""),
    ],
    ids=["conf", "yaml"],
)
def test_a_switch_that_lost_its_description_is_named(text: str, tmp_path: Path) -> None:
    """If no line describes a switch, no line lists the switch's hosts."""
    (damage,) = read(tmp_path, text).damage
    assert damage.what == "no line describes switch 'leaf2', so its hosts are missing"


def test_blocks_without_nodes_are_no_damage(tmp_path: Path) -> None:
    fabric = read(tmp_path, BLOCK_CONF + "BlockName=b3\nBlockName=b4 BlockIndex=3\n")
    assert links_of(fabric) == links_of(read(tmp_path, BLOCK_CONF))
    assert fabric.damage == ()
    assert read(tmp_path, BLOCK_CONF + "BlockName=b3 Noodes=x\n").damage


def test_lines_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    fabric = read(tmp_path, CONF + "SwitchName=leaf3 Nodes=node[06-\n$ exit\n")
    assert links_of(fabric) == TREE_LINKS
    shown = [each.text for each in fabric.damage]
    assert "line 6: expected names as node[01-04,7], found 'node[06-'" in shown[0]
    assert "1 line left out: it is no part of the dump (line 7)" in shown[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Nodes=n[1-255]\n", ":1: expected at most 254 links of a node, found one more, of 'a'"),
        ("SwitchName=a Nodes=n[1-\n", ":1: expected names as node"),
        ("topology: a\n  tree: {", "expected YAML"),
        ("topology: a\ntree:\n  switches: 3\n tree:", "expected"),
        ("- topology: a\n  tree:\n    switches: 3\n", ":3: expected `switches:` with a list, found none"),
        (
            "- topology: a\n  tree:\n    switches:\n      - switch: s\n",
            ": expected switches with hosts, found 1 switch, no",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n      - nodes: n1\n",
            ":4: expected `switch:` with a name, found none",
        ),
        ("- topology: a\n  ring:\n    - ring: r1\n      nodes: n[1-4]\n", "found `ring`, which is not read"),
        ("- topology: a\n  torus3d:\n    toruses: x\n", "found `torus3d`, which is not read"),
        ("RingName=r1 Nodes=n[1-4]\n", "found RingName=, which is not read"),
        ("- topology: a\n  tree:\n    switches:\n      - 7\n", ":4: expected a mapping"),
    ],
)
def test_bad_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)


def test_loads_on_it_are_those_of_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In an all-to-all, the bytes into a leaf are the same for all routes."""
    (tmp_path / "topology.conf").write_text(CONF)
    assert layout.main([str(tmp_path / "topology.conf"), "pattern:all-to-all:1000"]) == 0
    shown = capsys.readouterr()
    first, second = shown.err.splitlines()[:2]
    assert first.startswith("ibprof-layout: routes: modelled:")
    assert "speeds are assumed" in second
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    loads = {row["a_name"]: row["a_bytes"] for row in rows} | {row["b_name"]: row["b_bytes"] for row in rows}
    between = [row for row in rows if {row["a_name"][:4], row["b_name"][:4]} == {"leaf", "spin"}]
    assert {int(row[side]) for row in between for side in ("a_bytes", "b_bytes")} == {4 * 2 * 1000}
    assert loads["node01"] == "5000"
    assert report.main([str(tmp_path), "pattern:shift:1:1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_unrouted"] == {}


def test_a_topology_that_ibprof_writes_is_read_back(tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    assert (
        layout.main(["xgft:2:4,4:1,2", "pattern:shift:1", "-o", str(tmp_path / "l.csv"), "--topology-conf", str(conf)])
        == 0
    )
    fabric = read_fabric(conf)
    hosts = int((fabric.node_kind == NodeKind.CA).sum())
    assert hosts == 16
    per_leaf = sorted(
        sum(1 for (switch, other) in links_of(fabric) if switch == name and other.startswith(("host", "node", "h")))
        for name in {switch for switch, other in links_of(fabric)}
    )
    assert per_leaf[-4:] == [4, 4, 4, 4]


def test_the_formats_are_recognised_by_their_content() -> None:
    names = [found.name if (found := find_link_format(text.encode())) else None for text in (CONF, SCONTROL, YAML)]
    assert names == [*["Slurm's topology.conf or scontrol show topology"] * 2, "Slurm's topology.yaml"]
    assert find_link_format(b"name: a\nvalue: SwitchName=x\n") is None


def test_a_skeleton_without_nodes_is_refused_as_one() -> None:
    with pytest.raises(InputError, match="expected switches with hosts, found 4 switches, no hosts"):
        read_fabric(DATA / "cases" / "topo-skel.yaml")


def test_a_node_at_two_leaves_has_a_port_on_each(tmp_path: Path) -> None:
    text = "SwitchName=s Switches=a,b\nSwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\n"
    fabric = read(tmp_path, text)
    names = np.array(fabric.node_name)
    ends = {tuple(sorted(pair)) for pair in names[fabric.link_node].tolist()}
    assert {("a", "n3"), ("b", "n3")} <= ends
    ports = fabric.port_node == fabric.node_name.index("n3")
    assert (fabric.port_number[ports].tolist(), len(set(fabric.port_lid.tolist()))) == ([1, 2], 5 + 3 + 1)


def test_a_switch_without_nodes_is_left_without_links(tmp_path: Path) -> None:
    text = "- topology: a\n  tree:\n    switches:\n      - {switch: s, nodes: 'n[1-2]'}\n      - {switch: idle}\n"
    assert sorted(read(tmp_path, text).node_name) == ["n1", "n2", "s"]


@pytest.mark.parametrize("nothing", ["(null)", "None", "null"])
def test_what_slurm_prints_for_no_nodes_is_no_host(nothing: str, tmp_path: Path) -> None:
    text = f"SwitchName=leaf1 Nodes=node[01-02]\nSwitchName=leaf2 Nodes={nothing}\nSwitchName=top Switches=leaf[1-2]\n"
    fabric = read(tmp_path, text)
    assert sorted(fabric.node_name) == ["leaf1", "leaf2", "node01", "node02", "top"]
    assert not fabric.damage


def test_a_word_that_names_no_node_is_refused(tmp_path: Path) -> None:
    fabric = read(tmp_path, "SwitchName=leaf1 Nodes=node[01-02]\nSwitchName=leaf2 Nodes=node03,(null)\n")
    (damage,) = fabric.damage
    assert "line 2: expected names as node[01-04,7], found '(null)'" in damage.text
    with pytest.raises(InputError, match=r":12: expected names as node\[01-04,7\], found '\?'"):
        read(tmp_path, YAML.replace("node[04-05]", '"node[04-05],?"'))
