# SPDX-License-Identifier: Apache-2.0
"""With the host list of a scheduler or launcher, each rank gets the host where this tool would start the rank."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import IbprofError, InputError
from ibprof_converter.cli import layout
from ibprof_converter.traffic.hostlists import deal_ranks, looks_like_host_list, read_host_list, read_listed_hosts
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.rank_placement import place_ranks_by_rule
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample, load_sample

HOSTS = find_hosts([load_sample("testbed44", IBDIAGNET).fabric])


def test_ranks_are_dealt_out_in_blocks() -> None:
    assert deal_ranks("n[1-3]", 2) == ["n1", "n2"]
    assert deal_ranks("n[1-3]", 7) == ["n1"] * 3 + ["n2"] * 2 + ["n3"] * 2


@pytest.mark.parametrize(
    ("text", "ranks", "hosts"),
    [
        ("node01\nnode01\nnode02\n", 3, ["node01", "node01", "node02"]),  # $PBS_NODEFILE
        ("# mine\nnode01 slots=2 max_slots=4\n\nnode02\n", 3, ["node01", "node01", "node02"]),
        ("node01:2\nnode02:2\n", 3, ["node01", "node01", "node02"]),  # hydra's -f
        ("user@node01 slots=1\nnode02.example.org slots = 1\n", 2, ["node01", "node02.example.org"]),
        ("rank 1=b slot=0:0-1\nrank 0=a slots=1\n", 2, ["a", "b"]),
        ("rank 0=a slot=0\nrank 1=b slot=1\nrank 2=c slot=1\n", 2, ["a", "b"]),
        ("node[01-02],login\n", 3, ["node01", "node02", "login"]),
        ("node[01-02]\nnode[07]\n", 3, ["node01", "node02", "node07"]),
        ("NODELIST\nnode[01-02]\n", 2, ["node01", "node02"]),  # sinfo -o %N
        (
            "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nbatch* up infinite 2 idle node[01-02]\n",
            2,
            ["node01", "node02"],
        ),
        ("NODELIST NODES PARTITION STATE\nnode01 1 batch* idle\nnode02 1 batch* mix\n", 2, ["node01", "node02"]),
        (  # squeue prints a job name with two words, and pending jobs
            "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n12 q my job a R 1:00 2 node[01-02]\n"
            "13 q x a PD 0:00 4 (Priority)\n14 q x a PD 0:00 1 (ReqNodeNotAvail, UnavailableNodes:node[07-08])\n",
            2,
            ["node01", "node02"],
        ),
        (  # scontrol show job
            "JobId=12 JobName=x\n   ReqNodeList=(null) ExcNodeList=node09\n   NodeList=node[01-02]\n   NumNodes=2\n",
            2,
            ["node01", "node02"],
        ),
        (  # a topology.conf by topograph
            "# s3=rack-1\nSwitchName=s3 Switches=s[1-2]\nSwitchName=s1 Nodes=node[07-08],\\\n node03\n"
            "SwitchName=s2 Nodes=node01\n",
            4,
            ["node07", "node08", "node03", "node01"],
        ),
        (  # topograph's graph engine
            '{\n "instances": [\n  {"id": "n1", "network_layers": ["leaf1", "spine1"]},\n'
            '  {"id": "n2", "network_layers": ["leaf2", "spine1"], "labels": {"a": "b"}},\n'
            '  {"id": "n4", "network_layers": ["leaf3", "spine2"]},\n'
            '  {"id": "n3", "network_layers": ["leaf1", "spine1"]}\n'
            " ]\n}\n",
            4,
            ["n1", "n3", "n2", "n4"],
        ),
        ('{"instances": [{"id": "n1"}, {"id": "n0", "attributes": {"nvlink": "d"}}]}', 2, ["n1", "n0"]),
        ("# b1=B1\nBlockName=b1 Nodes=node[2-3]\nBlockName=b2\nBlockSizes=2,4\n", 3, ["node2", "node2", "node3"]),
        (
            "- topology: a\n  cluster_default: false\n  tree:\n    switches:\n    - switch: s\n      nodes: x1\n"
            "- topology: b\n  cluster_default: true\n  tree:\n    switches:\n    - switch: s\n      nodes: y[5,1]\n",
            2,
            ["y5", "y1"],
        ),
    ],
)
def test_files(tmp_path: Path, text: str, ranks: int, hosts: list[str]) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    assert read_host_list(path, ranks) == hosts
    assert looks_like_host_list(text)


def test_instances_of_topograph_keep_their_lines(tmp_path: Path) -> None:
    layers = '"network_layers": ["n2", "leaf"]'
    path = tmp_path / "hosts"
    path.write_text(f'{{"instances": [\n{{"id": "n1", {layers}}},\n{{"id": "n\u00fc", {layers}}},\n{{"id": "n2"}}]}}')
    assert [(each.name, each.line) for each in read_listed_hosts(path)] == [("n2", 4), ("n1", 2), ("n\u00fc", 3)]


def test_lists_of_topograph_take_time_by_their_length(tmp_path: Path) -> None:
    """A search from the text's start for each host would take 10 s; all suffixes of 20,000 names would take 1.6 GB."""
    path = tmp_path / "hosts"
    many = [{"id": f"n{number:05}", "network_layers": [f"leaf{number % 512}", "core"]} for number in range(10_000)]
    path.write_text(json.dumps({"instances": [*many, {"id": "deep", "network_layers": [*map(str, range(20_000))]}]}))
    begin = time.process_time()
    assert [each.name for each in read_listed_hosts(path)[:2]] == ["n00000", "n00512"]
    assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"instances": [\n{"id": "a"},\n{"id": 3}]}', r"hosts:3: expected the name of a host"),
        (r'{"instances": [{"id": "a\ud800"}]}', r"hosts:1: expected the name of a host"),
        ('{"instances": "abc"}', r"hosts: expected JSON with"),
        ('{"instances": [{"id": "a", "network_layers": "leaf"}]}', r"hosts:1: expected names of switches"),
        ('{"instances": [{"id": "a", "network_layers": [["leaf"]]}]}', r"hosts:1: expected names of switches"),
        ('{"instances": [{"id": "a", "network_layers": ["leaf", ""]}]}', r"hosts:1: expected names of switches"),
        ('{"instances": [{"network_layers": []}]}', r"each with an \"id\""),
        ('{"instances": [\n{"id": "a"}', r"hosts:2: expected JSON with"),
        ("node01\nnode 02 x\n", r"hosts:2: expected a host, perhaps with slots"),
        ("node01\n", r"hosts: expected slots for 2 ranks, found 1"),
        ("rank 0=a slot=0\nrank 0=b slot=0\n", r"hosts:2: expected each rank once"),
        ("rank 0=a slot=0\n", r"found none for rank 1"),
        ("rank 1=a slot=0\n", r"found none for rank 0"),
        ("rank 0=+n0 slot=0\n", r"hosts:1: expected the name of a host"),
        ("rank 0=a slot=0\nnode01\n", r"hosts:2: expected rank N=host"),
        ("NODES NODELIST(REASON)\n4 (Priority)\n", r"hosts: expected slots for 2 ranks, found 0"),
        ("JobId=12 JobName=x\n   NodeList=(null)\n", r"hosts: expected slots for 2 ranks, found 0"),
        ("SwitchName=a Switches=b\n", r"hosts: expected switches with hosts, found 2 switches, no hosts"),
        ("STATE NODELIST\nidle node01\ndown\n", r"hosts:3: expected a word under NODELIST, found 'down'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_host_list(path, 2)


def test_ranks_are_placed_by_a_list_and_by_a_file(tmp_path: Path) -> None:
    fabrics = [load_sample("testbed44", IBDIAGNET).fabric]
    by_list = place_ranks_by_rule("slurm:host[03,01,40]", HOSTS, fabrics, 3)
    assert [HOSTS.name[host] for host in by_list.host] == ["host03", "host01", "host40"]
    for name, text in (
        ("nodefile", "host03.cluster.example\nhost01\nhost40\n"),
        ("rankfile", "rank 0=HOST03 slot=0\nrank 1=host01 slot=0\nrank 2=host40 slot=0\n"),
        ("csv", "rank,host\n2,host40\n0,host03\n1,host01\n"),
    ):
        (tmp_path / name).write_text(text)
        placement = place_ranks_by_rule(str(tmp_path / name), HOSTS, fabrics, 3)
        assert np.array_equal(placement.lid, by_list.lid)


@pytest.mark.parametrize("text", ["nowhere\nhost01\n", "rank 0=nowhere slot=0\nrank 1=host01 slot=0\n"])
def test_hosts_that_are_not_there_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text)
    fabrics = [load_sample("testbed44", IBDIAGNET).fabric]
    for rule in (str(tmp_path / "f"), "slurm:nowhere,host01"):
        with pytest.raises(IbprofError, match="nowhere"):
            place_ranks_by_rule(rule, HOSTS, fabrics, 2)


def test_a_rule_finds_the_host_in_odd_descriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In `HCA-1 of host07`, the last word is the host."""
    for name in (IBDIAGNET, "ibdiagnet.fdbs"):
        text = find_sample("testbed44", name).read_text()
        (tmp_path / name).write_text(text.replace(" HCA-1}", "_hca_of_nobody}").replace("{host", "{HCA-1 of host"))
    (tmp_path / "m.csv").write_text("src,dst,bytes,messages\n0,1,7,1\n")
    (tmp_path / "h").write_text("host07\nhost41\n")
    arguments = [str(tmp_path / IBDIAGNET), str(tmp_path / "m.csv"), "--placement", str(tmp_path / "h"), "--used"]
    assert layout.main(arguments) == 3
    assert "'host07'" in capsys.readouterr().err
    assert layout.main([*arguments, "--host-names", r"of (host\d+)"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + 3
    with pytest.raises(SystemExit, match="2"):
        layout.main([*arguments, "--host-names", "("])


def test_a_placement_lists_its_hosts_by_rank(tmp_path: Path) -> None:
    path = tmp_path / "placement.csv"
    path.write_text('rank,host\n2,"b"\n0,a\n1,a\n')
    assert [each.name for each in read_listed_hosts(path)] == ["a", "a", "b"]
    assert read_host_list(path, 3) == ["a", "a", "b"]
    with pytest.raises(InputError, match="expected a host for each of the 6 ranks, found none for rank 3"):
        read_host_list(path, 6)
    path.write_text("rank,host\n0,a\n1,b\n0,c\n")
    with pytest.raises(InputError, match=":4: expected each rank once, found rank 0 again"):
        read_listed_hosts(path)
    path.write_text("rank,host\n0 a\n")
    with pytest.raises(InputError, match=":2: expected RANK,HOST, found '0 a'"):
        read_listed_hosts(path)
