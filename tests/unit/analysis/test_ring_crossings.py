# SPDX-License-Identifier: Apache-2.0
"""NCCL's rings on a fabric: crossings between leaf switches, counted by hand, and rank orders with fewer crossings."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError, UsageError
from ibprof_converter.cli import place, rings
from ibprof_converter.traffic.hostlists import read_host_list
from ibprof_converter.traffic.nccl_topology import read_nccl_graphs, read_nccl_log, read_nccl_topology

FABRIC = "xgft:2:4,4:1,4"
"""Four leaf switches with four hosts each, host01 .. host16."""


def graph_xml(nets: list[tuple[int, int]], cross: int = 0, pattern: int = 4) -> str:
    channels = "".join(
        f'    <channel>\n      <net dev="{hex(one) if one else 0}"/>\n      <gpu dev="0" rank="0"/>\n'
        f'      <gpu dev="0x1" rank="1"/>\n      <net dev="{hex(two) if two else 0}"/>\n    </channel>\n'
        for one, two in nets
    )
    return (
        f'<graphs version="1">\n  <graph id="0" pattern="{pattern}" crossnic="{cross}" nchannels="{len(nets)}" '
        f'speedintra="20" speedinter="20" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">\n'
        f"{channels}"
        '  </graph>\n  <graph id="1" pattern="3" crossnic="0" nchannels="0"/>\n</graphs>\n'
    )


TOPOLOGY = """<system version="1">
  <cpu host_hash="0x12" numaid="0" affinity="ff" arch="x86_64">
    <pci busid="0000:05:00.0" class="0x060400">
      <pci busid="0000:07:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
      <pci busid="0000:08:00.0" class="0x020700">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>
    <pci busid="0000:15:00.0" class="0x060400">
      <pci busid="0000:17:00.0" class="0x030200"><gpu dev="1" sm="90" rank="1" gdr="1"/></pci>
      <pci busid="0000:18:00.0" class="0x020700">
        <nic><net name="mlx5_1" dev="1" speed="400000" port="1" guid="0x2" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, Any]:
    assert rings.main([str(each) for each in arguments]) == 0
    text = capsys.readouterr().out
    assert rings.main([*map(str, arguments), "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def test_alternating_hosts_cross_at_each_hop_and_sorted_ones_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = write(tmp_path, "graph.xml", graph_xml([(0, 0), (0, 0)]))
    hosts = write(tmp_path, "hosts", "".join(f"host{n:02} slots=2\n" for n in (1, 5, 2, 6, 3, 7)))
    order = tmp_path / "order.csv"
    text, found = run(capsys, FABRIC, "--graph", graph, "--hosts", hosts, "-o", order)
    (first, second) = found["rings"]
    assert [row["hops"] for row in first["crossings"]] == [3, 3]
    assert first["crossings"] == second["crossings"]
    assert (found["crossings"], found["better_crossings"], found["least_crossings"]) == (12, 4, 4)
    assert found["better"] == ["host01", "host02", "host03", "host05", "host06", "host07"]
    assert "ring of channel 1 (HCA-1) crosses" in text
    assert "3 times" in text
    assert "12 hops cross leaf switches; the rank order host01, host02," in text
    rows = order.read_text().splitlines()
    assert rows[:4] == ["rank,host", "0,host01", "1,host01", "2,host02"]
    again, found = run(capsys, FABRIC, "--graph", graph, "--hosts", write(tmp_path, "b", "\n".join(found["better"])))
    assert found["crossings"] == 4
    assert "no better rank order is known (lower bound: 4)" in again


def test_rails_are_leaf_switches_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = write(tmp_path, "graph.xml", graph_xml([(0, 0), (1, 1)]))
    topology = write(tmp_path, "topo.xml", TOPOLOGY)
    text, found = run(capsys, "scalable-unit:1", "--graph", graph, "--topology", topology)
    assert found["crossings"] == 0
    assert found["gpus"] == {"0 (0000:07:00.0)": ["mlx5_0"], "1 (0000:17:00.0)": ["mlx5_1"]}
    assert "ring of channel 1 (mlx5_1) stays on its leaf switch: 32 hops" in text
    crossed = write(tmp_path, "crossed.xml", graph_xml([(0, 1)]))
    _, found = run(capsys, "scalable-unit:1", "--graph", crossed, "--topology", topology)
    assert found["crossings"] == 32
    # Odd hosts swap two channels, so a ring leaves a host and enters the next host by adapters of the same number.
    alternating = write(tmp_path, "alternating.xml", graph_xml([(0, 1), (1, 0)], cross=2))
    _, found = run(capsys, "scalable-unit:1", "--graph", alternating, "--topology", topology)
    assert found["crossings"] == 0


def test_an_adapter_with_planes_is_one_network_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = write(tmp_path, "graph.xml", graph_xml([(0, 0), (1, 1)]))
    _, found = run(capsys, "scalable-unit:1:rails=2:planes=2", "--graph", graph)
    assert [ring["adapters"] for ring in found["rings"]] == [["mlx5_0"], ["mlx5_1"]]
    _, found = run(capsys, "rail-optimised:4:rails=2:planes=2", "--graph", graph)
    assert [ring["adapters"] for ring in found["rings"]] == [["mlx5_0"], ["mlx5_1"]]


def test_adapters_in_other_subnets_cannot_be_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = write(tmp_path, "graph.xml", graph_xml([(0, 1)]))
    text, found = run(capsys, FABRIC, FABRIC, "--graph", graph)
    assert found["rings"][0]["between_rails"] == found["crossings"] == found["better_crossings"] == 16
    assert "cannot pass 16 of 16 hops: the two adapters are on different rails" in text


def test_unfit_inputs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = write(tmp_path, "graph.xml", graph_xml([(5, 5)]))
    assert rings.main([FABRIC, "--graph", str(graph)]) == 5
    assert "host host01 has no network device 5; its adapters are HCA-1" in capsys.readouterr().err
    tree = write(tmp_path, "tree.xml", graph_xml([(0, 0)], pattern=3))
    assert rings.main([FABRIC, "--graph", str(tree)]) == 5
    hosts = write(tmp_path, "hosts", "host01\nhost99\n")
    good = write(tmp_path, "good.xml", graph_xml([(0, 0)]))
    assert rings.main([FABRIC, "--graph", str(good), "--hosts", str(hosts)]) == UsageError.status
    assert "no host 'host99'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("<system/>", 1, "<graphs>"),
        ('<graphs>\n<graph id="x" pattern="4" crossnic="0"/></graphs>', 2, 'a number as id="0" of <graph>'),
        ('<graphs>\n<graph pattern="4"/></graphs>', 2, 'a number as id="0" of <graph>'),
        ('<graphs><graph id="0" pattern="4" crossnic="0">\n<channel/></graph></graphs>', None, "GPUs, and 0 or 2"),
        ("<graphs></graphs>", None, "a <graph>"),
        ("<graphs>\n<graph", 2, "NCCL's XML with <graphs>"),
        ('<!DOCTYPE graphs [<!ENTITY a "b">]><graphs/>', 1, "no document type"),
        ("<graphs>" + "<a>" * 100, 1, "elements nested at most 64 deep"),
        (" \n", None, "text"),
    ],
)
def test_faulty_graphs_are_refused_with_their_line(text: str, line: int | None, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path, "graph.xml", text)
    with pytest.raises(InputError) as caught:
        read_nccl_graphs(path)
    where = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(where)
    assert f"expected {expected}" in str(caught.value)
    assert ", found " in str(caught.value)


def test_a_topology_without_network_devices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a <net> with a dev, found none"):
        read_nccl_topology(write(tmp_path, "topo.xml", '<system version="1"><cpu/></system>'))
    with pytest.raises(InputError, match=r'topo.xml:2: expected a number as dev="0" of <net>'):
        read_nccl_topology(
            write(tmp_path, "topo.xml", '<system version="1"><cpu><nic>\n<net dev="-"/></nic></cpu></system>')
        )


def log_of(hosts: list[str], form: str = "Channel {:02}/0", prefix: str = "") -> str:
    """Return a log of two channels and a tree, with two GPUs per host and different network devices."""
    lines = []
    for node, host in enumerate(hosts):
        before, after = (2 * node - 1) % (2 * len(hosts)), (2 * node + 2) % (2 * len(hosts))
        own = (2 * node, 2 * node + 1)
        lines.append((host, 1, "NET/IB : Using [0]mlx5_3:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"))
        lines.append((host, 1, f"Channel 00/02 :    {' '.join(map(str, range(2 * len(hosts))))}"))
        for channel in (0, 1):
            name = form.format(channel)
            lines.append((host, 2, f"{name} : {own[0]}[0] -> {after}[0] [send] via NET/IB/{channel}/GDRDMA"))
            lines.append((host, 1, f"{name} : {own[0]}[0] -> {own[1]}[1] via P2P/CUMEM/read"))
            lines.append((host, 1, f"{name} : {before}[1] -> {own[0]}[0] [receive] via NET/IB/{channel}/GDRDMA"))
            lines.append((host, 2, f"{name} : {own[1]}[1] -> {after}[0] [send] via NET/IB/{channel}(1)/GDRDMA"))
        lines += [(host, process, "Connected all rings, use ring PXN 0 GDR 1") for process in (1, 2)]
        lines.append((host, 1, f"{form.format(0)} : {own[0]}[0] -> {after}[0] [send] via NET/IB/7"))
        lines += [(host, process, "Connected all trees") for process in (1, 2)]
    return "".join(f"{prefix}{host}:{pid}:9{pid} [0] NCCL INFO {text}\n" for host, pid, text in lines)


@pytest.mark.parametrize(
    ("form", "prefix"), [("Channel {:02}/0", ""), ("Ring {:02}", "[155] "), ("Channel {:02}", "[2026-01-01 10:00:00] ")]
)
def test_a_log_names_adapters_and_the_order_of_hosts(
    form: str, prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path, "job.out", "some text\n" + log_of(["gpu01", "gpu33", "gpu02", "gpu34"], form, prefix))
    script = tmp_path / "launch.sh"
    text, found = run(capsys, "scalable-unit:2", "--log", log, "--torchrun", script)
    assert found["hosts"] == ["gpu01", "gpu33", "gpu02", "gpu34"]
    assert [ring["adapters"] for ring in found["rings"]] == [["mlx5_3"], ["mlx5_1"]]
    assert (found["crossings"], found["better_crossings"], found["ranks_per_host"]) == (8, 4, 2)
    assert "ring of channel 0 (mlx5_3) crosses leaf1-r4 -> leaf2-r4 2 times" in text
    assert "the rank order gpu01, gpu02, gpu33, gpu34 lowers this to 4 (lower bound: 4)" in text
    assert read_host_list(script, 4) == ["gpu01", "gpu01", "gpu02", "gpu02"]
    # With the network devices in the same log, `--hosts` checks the printed order.
    _, found = run(capsys, "scalable-unit:2", "--log", log, "--hosts", script)
    assert found["crossings"] == 4


def test_a_log_of_each_host_is_as_good_as_one_of_all(tmp_path: Path) -> None:
    whole = log_of(["a", "b"])
    logs = [
        write(tmp_path, host, "".join(line + "\n" for line in whole.splitlines() if line.startswith(f"{host}:")))
        for host in "ab"
    ]
    assert read_nccl_log(logs) == read_nccl_log([write(tmp_path, "whole", whole)])
    twice = read_nccl_log([write(tmp_path, "twice", whole + whole)])
    assert twice.of_host == {"a": ((0, 0), (1, 1)), "b": ((0, 0), (1, 1))}
    with pytest.raises(InputError, match=r"expected lines as .* found none"):
        read_nccl_log([write(tmp_path, "empty", "nothing here\n")])
    cut = "".join(
        line + "\n" for line in whole.splitlines() if not ("b:" in line and "01/0" in line and "send" in line)
    )
    with pytest.raises(
        InputError, match=r"expected a line with \[send\] for channel 01 from each host, found none from 'b'"
    ):
        read_nccl_log([write(tmp_path, "cut", cut)])


def test_merged_devices_are_followed_by_their_first_adapter(tmp_path: Path) -> None:
    plain = log_of(["a", "b"])
    braces = plain.replace(
        "[0]mlx5_3:1/IB [1]mlx5_1:1/IB", "[0]={[0] mlx5_2:1/IB, [1] mlx5_3:1/IB} [1]={[2] mlx5_0:1/IB}"
    )
    found = read_nccl_log([write(tmp_path, "braces.out", braces)])
    assert found.labels["a"] == {0: "mlx5_2", 1: "mlx5_0"}
    assert found.notes[1:] == ("merged network devices mlx5_2+mlx5_3: only the first device of each is used",)
    made = "a:1:91 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2\n"
    found = read_nccl_log([write(tmp_path, "made.out", made + plain)])
    assert found.labels["a"] == {0: "mlx5_3", 1: "mlx5_1", 2: "mlx5_0"}
    assert found.notes[-1].startswith("merged network devices mlx5_0+mlx5_1:")


def test_a_broken_line_of_devices_takes_time_by_its_length(tmp_path: Path) -> None:
    """ibprof must not search from each of the line's 100,000 characters `,` or `]`, which would take a minute."""
    broken = (
        f"a:1:91 [0] NCCL INFO NET/IB : Using [0]={{{100_000 * ','}\na:1:91 [0] NCCL INFO NET/IB : ={{{100_000 * ']'}\n"
    )
    begin = time.process_time()
    found = read_nccl_log([write(tmp_path, "job.out", broken + log_of(["a", "b"]))])
    assert time.process_time() - begin < 5
    assert found.hosts == ("a", "b")


def test_more_merged_devices_than_a_note_names_are_mentioned(tmp_path: Path) -> None:
    made = "".join(
        f"a:1:91 [0] NCCL INFO NET/IB : Made virtual device [{9 + each}] name=m{each}+n{each} speed=1\n"
        for each in range(5)
    )
    found = read_nccl_log([write(tmp_path, "made.out", made + log_of(["a", "b"]))])
    assert (
        found.notes[-1]
        == "merged network devices m0+n0, m1+n1, m2+n2, m3+n3, ...: only the first device of each is used"
    )


def test_the_name_of_a_network_may_have_a_blank(tmp_path: Path) -> None:
    log = log_of(["a", "b"]).replace("NET/IB/", "NET/AWS Libfabric/")
    assert read_nccl_log([write(tmp_path, "job.out", log)]).of_host == {"a": ((0, 0), (1, 1)), "b": ((0, 0), (1, 1))}


def test_spellings_of_a_host_are_one_host(tmp_path: Path) -> None:
    text = log_of(["gpu1", "gpu2"]).replace("gpu2:1", "GPU2:1").replace("gpu1:2", "gpu1.example.org:2")
    found = read_nccl_log([write(tmp_path, "job.out", text)])
    assert found.hosts == ("gpu1", "GPU2")
    assert found.notes[-1] == "hosts with several spellings: gpu1.example.org is gpu1, gpu2 is GPU2"
    apart = log_of(["gpu1.a", "gpu1.b"])
    assert read_nccl_log([write(tmp_path, "apart.out", apart)]).hosts == ("gpu1.a", "gpu1.b")


def test_ranks_of_further_communicators_neither_order_hosts_nor_count(tmp_path: Path) -> None:
    lines = []
    for rank, line in enumerate(log_of(["b", "a", "c"]).splitlines()):
        host, pid = line.split(":")[:2]
        lines.append(line)
        if "Connected all trees" in line:  # from here on, each host has a communicator for its own GPUs
            lines.append(f"{host}:{pid}:9 [0] NCCL INFO Channel 00/0 : 0[0] -> {rank + 100}[1] via P2P/CUMEM/read")
            lines.append(f"{host}:{pid}:9 [0] NCCL INFO Channel 00/0 : {200 - rank}[0] -> 0[1] [receive] via NET/IB/0")
    found = read_nccl_log([write(tmp_path, "job.out", "\n".join(lines))])
    assert found.hosts == ("b", "a", "c")
    assert found.ranks_per_host == 2


def test_one_of_graph_and_log_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, "job.out", log_of(["host01", "host02"]))
    assert rings.main([FABRIC]) == UsageError.status
    assert rings.main([FABRIC, "--log", str(log), "--topology", str(log)]) == UsageError.status
    assert rings.main([FABRIC, "--log", str(log), "--graph", str(log)]) == UsageError.status
    assert rings.main([FABRIC, "--log", str(log), "--hosts", str(write(tmp_path, "h", "host01\nhost03\n"))]) == 5
    assert "host host01 has no mlx5_3" in capsys.readouterr().err
    other = write(tmp_path, "other.out", log_of(["host01", "elsewhere"]))
    assert rings.main([FABRIC, "--log", str(other)]) == UsageError.status
    assert "the log: no host 'elsewhere' in the fabric" in capsys.readouterr().err


def test_old_and_new_numbers_of_devices(tmp_path: Path) -> None:
    text = graph_xml([(0, 0)]).replace('<net dev="0"/>', '<net dev="10"/>', 1)
    text = text.replace('<net dev="0"/>', '<net dev="0x100000000000000a"/>', 1)
    (channel,) = read_nccl_graphs(write(tmp_path, "graph.xml", text))[0].channels
    assert channel.nets == (10, 10)


def test_a_script_for_torchrun_is_read_as_the_placement_that_it_makes(tmp_path: Path) -> None:
    script = tmp_path / "launch.sh"
    hosts = ["n1", "n1", "n2", "n2"]
    script.write_text(place.torchrun_script(hosts))
    assert read_host_list(script, 4) == hosts
    for name, text in (("hostname", "echo n2.cluster"), ("torchrun", 'echo "$@"')):
        write(tmp_path, name, f"#!/bin/sh\n{text}\n").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    started = subprocess.run(
        ["sh", script, "train.py"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert started.stdout.split() == [
        "--nnodes=2",
        "--node-rank=1",
        "--nproc-per-node=2",
        "--master-addr=n1",
        "--master-port=29500",
        "train.py",
    ]
    for refused in (["n1", "n2", "n1"], ["n1", "n1", "n2"], ["n 1"]):
        with pytest.raises(UsageError, match="--torchrun"):
            place.torchrun_script(refused)
    script.write_text(script.read_text().replace("node_rank=1", "node_rank=2"))
    with pytest.raises(InputError, match="expected node_rank=1, found node_rank=2"):
        read_host_list(script, 4)
