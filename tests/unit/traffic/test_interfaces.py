# SPDX-License-Identifier: Apache-2.0
"""Adapters for storage are recognised and left out. Each command leaves out the same adapters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.errors import UsageError
from ibprof.profile.profile_data import AdapterChoice
from ibprof_converter.cli import layout, place, report, view
from ibprof_converter.fabric.fabric_graph import Fabric, InterfaceChoice, Partitions
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.interfaces import choose_interfaces, describe_interfaces
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded
from ibprof_testing.samples.many_adapters import (
    COMPUTE_ADAPTERS,
    STORAGE_ADAPTERS,
    make_gpu_fabric,
    make_subnet,
    write_dumps,
)
from ibprof_testing.samples.profiles import make_host, make_port, make_profile, make_rank

SLOW: dict[str, Any] = {"storage_gbps": 50}


def left_out(fabric: Fabric) -> set[str]:
    return {fabric.node_name[node] for node in np.flatnonzero(fabric.is_left_out).tolist()}


def choose(fabric: Fabric, choice: str | None = None) -> tuple[set[str], InterfaceChoice | None]:
    (chosen,) = choose_interfaces([fabric], choice)
    return left_out(chosen), chosen.interfaces


def lid_of(fabric: Fabric, name: str) -> int:
    node = fabric.node_name.index(name)
    return int(fabric.port_lid[fabric.port_node == node][0])


@pytest.mark.parametrize(
    ("made", "by"),
    [
        (SLOW, "speed"),
        ({"servers": True}, "wiring"),
        ({"label": "storage"}, "name"),
        ({"servers": True, "storage_gbps": 50}, "speed"),
    ],
)
def test_each_evidence_finds_the_adapters_for_storage(made: dict[str, Any], by: str) -> None:
    fabric, _ = make_gpu_fabric(**made)
    ending = f" {made['label']}" if "label" in made else ""
    expected = {f"gpu{host} {device}{ending}" for host in range(1, 6) for device in STORAGE_ADAPTERS}
    if made.get("servers"):
        expected -= {f"gpu5 {device}" for device in STORAGE_ADAPTERS}
        expected |= {"nas8 mlx5_0", "nas9 mlx5_0"}
    names, choice = choose(fabric)
    assert names == expected
    assert choice is not None
    assert (choice.choice, choice.is_default, choice.by, choice.left_out) == ("compute", True, by, 10)
    assert choose(fabric, "compute")[0] == expected
    every = {name for name in fabric.node_name if name.startswith(("gpu", "nas"))}
    assert choose(fabric, "storage")[0] == every - expected


def test_hosts_keep_the_other_adapters_and_servers_are_no_hosts() -> None:
    (fabric,) = choose_interfaces([make_gpu_fabric(servers=True)[0]])
    assert fabric.interfaces is not None
    assert fabric.interfaces.left_out_names == "mlx5_8, mlx5_9 and all of 2 hosts"
    hosts = find_hosts([fabric])
    assert hosts.name == tuple(f"gpu{number}" for number in range(1, 6))
    assert hosts.ports[0, 0].tolist() == [lid_of(fabric, f"gpu1 {device}") for device in COMPUTE_ADAPTERS]
    assert hosts.adapters[:, 0].tolist() == [8] * 5
    assert hosts.end_noun == "adapters"
    assert hosts.name[hosts.of_node[0][fabric.node_name.index("gpu1 mlx5_9")]] == "gpu1"


def test_without_a_difference_nothing_changes() -> None:
    for fabric in (make_gpu_fabric()[0], make_subnet().fabric):
        assert choose_interfaces([fabric])[0] is fabric
        assert choose_interfaces([fabric], "compute")[0] is fabric
        assert choose_interfaces([fabric], "all")[0] is fabric
        with pytest.raises(UsageError, match="--interfaces storage: names, partitions, speeds and wiring do not show"):
            choose_interfaces([fabric], "storage")


def test_one_slow_link_does_not_make_an_adapter_one_for_storage() -> None:
    fabric, _ = make_gpu_fabric()
    gbps = fabric.link_gbps.copy()
    gbps[(fabric.link_node == fabric.node_name.index("gpu3 mlx5_4")).any(axis=1)] = 25
    assert choose(replace(fabric, link_gbps=gbps)) == (set(), None)


def test_machines_of_one_speed_keep_all_adapters() -> None:
    fabric, _ = make_gpu_fabric(**SLOW)
    gbps = fabric.link_gbps.copy()
    for host in (4, 5):
        for device in STORAGE_ADAPTERS:
            gbps[(fabric.link_node == fabric.node_name.index(f"gpu{host} {device}")).any(axis=1)] = 100
    names, _ = choose(replace(fabric, link_gbps=gbps))
    assert names == {f"gpu{host} {device}" for host in (1, 2, 3) for device in STORAGE_ADAPTERS}


def test_other_machines_and_swapped_cables_are_no_evidence() -> None:
    fabric, _ = make_gpu_fabric()
    names = list(fabric.node_name)
    names[names.index("gpu5 mlx5_0")] = "sm1 mlx5_0"
    assert choose(replace(fabric, node_name=tuple(names))) == (set(), None)
    names = list(fabric.node_name)
    one, other = names.index("gpu3 mlx5_3"), names.index("gpu3 mlx5_4")
    names[one], names[other] = names[other], names[one]
    assert choose(replace(fabric, node_name=tuple(names))) == (set(), None)


def test_two_adapters_at_one_leaf_switch_are_for_storage() -> None:
    fabric, _ = make_gpu_fabric()
    names = list(fabric.node_name)
    # The storage adapters are on the last leaf switch (gpu1, gpu2) and on the leaf switch before (gpu3, gpu4).
    at = iter([names.index(f"gpu{host} mlx5_{leaf}") for leaf in (9, 8) for host in (1, 2, 3, 4)])
    for host in (1, 2, 3, 4):
        for device in STORAGE_ADAPTERS:
            names[next(at)] = f"gpu{host} {device}"
    for leaf in (8, 9):
        names[fabric.node_name.index(f"gpu5 mlx5_{leaf}")] = f"spare{leaf} mlx5_0"
    found, choice = choose(replace(fabric, node_name=tuple(names)))
    pairs = {f"gpu{host} {device}" for host in (1, 2, 3, 4) for device in STORAGE_ADAPTERS}
    assert found == pairs  # without gpu5 and the spare machines, which may run jobs
    assert choice is not None
    assert choice.by == "wiring"


def test_storage_in_a_subnet_of_its_own_is_recognised_by_its_servers() -> None:
    whole, _ = make_gpu_fabric()
    compute = replace(
        whole,
        node_name=tuple(f"spare{node}" if name[-1] in "89" else name for node, name in enumerate(whole.node_name)),
    )
    names = list(whole.node_name)
    for node, name in enumerate(names):
        if name.startswith("gpu"):
            device = int(name[-1])
            names[node] = f"{name[:4]} mlx5_{device + 8}" if device < 2 else f"nas{node} mlx5_0"
    storage = replace(whole, node_name=tuple(names), node_guid=whole.node_guid + np.uint64(1 << 20))
    alone = replace(compute, node_kind=np.where([n.startswith("spare") for n in compute.node_name], 2, whole.node_kind))
    chosen = choose_interfaces([alone, storage])
    assert left_out(chosen[0]) == set()
    assert left_out(chosen[1]) == {name for name in names if name.startswith(("gpu", "nas"))}
    assert chosen[1].interfaces is not None
    assert chosen[1].interfaces.by == "wiring"


def partition(fabric: Fabric, keys: Callable[[str], dict[int, bool]], names: dict[int, str] | None = None) -> Fabric:
    """Put hosts' adapters into partitions. `keys` returns the partitions of an adapter's name."""
    of_node = {node: keys(name) for node, name in enumerate(fabric.node_name) if name.startswith(("gpu", "nas"))}
    return replace(fabric, partitions=Partitions(names or {}, of_node))


def is_storage(name: str) -> bool:
    return name.startswith("nas") or name[-1] in "89"


PARTITIONS: dict[str, tuple[Callable[[str], dict[int, bool]], dict[int, str]]] = {
    "names": (lambda name: {0x7FFF: True, 2 if is_storage(name) else 1: True}, {2: "Storage"}),
    "name of computing": (lambda name: {0x7FFF: True} if is_storage(name) else {0x7FFF: True, 1: True}, {1: "gpu_net"}),
    "limited": (lambda name: {0x7FFF: False} if is_storage(name) else {0x7FFF: False, 1: True}, {}),
    "smaller group": (lambda name: {2: True} if is_storage(name) else {1: True, 3: True}, {}),
    "a partition of each rail": (lambda name: {2: True} if is_storage(name) else {10 + int(name[-1]): True}, {}),
    "tenants": (lambda name: {9: True} if is_storage(name) else {1 if name < "gpu3" else 2: True}, {}),
}


@pytest.mark.parametrize("case", list(PARTITIONS))
def test_partitions_find_the_adapters_for_storage(case: str) -> None:
    fabric, _ = make_gpu_fabric()
    names, choice = choose(partition(fabric, *PARTITIONS[case]))
    assert names == {f"gpu{host} {device}" for host in range(1, 6) for device in STORAGE_ADAPTERS}
    assert choice is not None
    assert choice.by == "partition"


@pytest.mark.parametrize(
    "keys",
    [
        lambda _: {0x7FFF: True},
        lambda _: {0x7FFF: False},
        lambda name: {0x7FFF: True, 3: True} if name.endswith("_0") else {0x7FFF: True},  # IPoIB is on one adapter
        lambda name: {1 if name < "gpu3" else 2: True},  # two tenants
        lambda name: {10 + int(name[-1]): True},
    ],
)
def test_other_partitions_are_no_evidence(keys: Callable[[str], dict[int, bool]]) -> None:
    assert choose(partition(make_gpu_fabric()[0], keys)) == (set(), None)


def test_a_partition_of_storage_servers_is_for_storage() -> None:
    fabric, _ = make_gpu_fabric(servers=True)
    _, choice = choose(partition(fabric, lambda name: {0x7FFF: True, 2: True} if is_storage(name) else {0x7FFF: True}))
    assert choice is not None
    assert (choice.by, choice.left_out) == ("partition", 10)


def test_a_partition_is_chosen_by_name_or_number() -> None:
    fabric = partition(make_gpu_fabric()[0], *PARTITIONS["names"])
    for text in ("pkey:storage", "pkey:0x8002", "pkey:2"):
        assert {name[-1] for name in choose(fabric, text)[0]} == set("01234567")
    for text in ("pkey:7", "pkey:02", "pkey:65538", "pkey:"):
        with pytest.raises(UsageError, match="expected one of 0x0001, Storage 0x0002, 0x7fff"):
            choose(fabric, text)
    with pytest.raises(UsageError, match="no file of partitions was read"):
        choose(make_gpu_fabric()[0], "pkey:7")


def test_names_choose_adapters() -> None:
    fabric, _ = make_gpu_fabric(servers=True)
    hosts = find_hosts(choose_interfaces([fabric], "mlx5_[0-1],MLX5_9"))
    assert hosts.adapters[hosts.name.index("gpu1"), 0] == 3
    with pytest.raises(UsageError, match=r"expected compute, storage, all or names of adapters: mlx5_0, mlx5_1"):
        choose_interfaces([fabric], "ib0")


@pytest.mark.parametrize(
    ("text", "count"),
    [("=mlx5_0:1,mlx5_1:1", 2), ("^mlx5_2", 9), ("^=mlx5_2,mlx5_3", 8), ("mlx5", 10), ("^mlx5_[1-8]:1", 2)],
)
def test_names_are_taken_as_in_nccl_ib_hca(text: str, count: int) -> None:
    hosts = find_hosts(choose_interfaces([make_gpu_fabric()[0]], text))
    assert hosts.adapters[hosts.name.index("gpu1"), 0] == count


@pytest.mark.parametrize("text", ["mlx5_0,ib0,roce", "=mlx5_0:1,roce:1,ib0", "^mlx5_0,ib0,roce"])
def test_names_that_no_adapter_has_are_said(text: str) -> None:
    assert "by name (no adapter is named ib0, roce); left out" in " ".join(
        describe_interfaces(choose_interfaces([make_gpu_fabric()[0]], text))
    )


@pytest.mark.parametrize("text", ["=mlx5", "^mlx5", "^ib0", "^", "="])
def test_a_choice_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        choose_interfaces([make_gpu_fabric()[0]], text)


def test_recorded_ranks_use_chosen_adapters_unless_their_environment_names_others() -> None:
    (fabric,) = choose_interfaces([make_gpu_fabric(**SLOW)[0]])
    guid = dict(zip(fabric.port_lid.tolist(), fabric.port_guid.tolist(), strict=True))
    names = [f"mlx5_{number}" for number in range(10)]
    lids = [lid_of(fabric, f"gpu1 {name}") for name in names]
    ports = [make_port(lid, guid[lid], device=name) for lid, name in zip(lids, names, strict=True)]
    choice = AdapterChoice("UCX_NET_DEVICES", "mlx5_9:1")
    ranks = (make_rank(0), make_rank(1, choices=(choice,)))
    run = make_profile([], ranks=ranks, hosts=(make_host("gpu1", *ports),))
    placed = place_ranks_as_recorded(run, find_hosts([fabric]), [fabric], 2)
    assert placed.ports[0, 0].tolist() == lids[:8]
    assert placed.adapters is not None
    assert placed.adapters.selected is not None
    assert [lid for lid in placed.adapters.selected[1, 0].tolist() if lid] == lids[9:]


def test_every_command_makes_the_same_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = str(write_dumps(tmp_path, make_gpu_fabric(**SLOW)))
    matrix = tmp_path / "m.csv"
    matrix.write_text("src,dst,bytes,messages\n0,1,1000,1\n1,2,1000,1\n2,0,1000,1\n")
    stated = "compute, the default: 40 of 50 adapters, chosen by speed; left out: mlx5_8, mlx5_9"

    def run(command: Any, *arguments: str) -> tuple[str, str]:
        assert command.main([links, *arguments]) == 0
        captured = capsys.readouterr()
        return captured.out, captured.err

    out, _ = run(report, "pattern:all-to-all")
    assert stated in " ".join(out.splitlines()[:15])
    assert json.loads(run(report, "pattern:all-to-all", "--json")[0])["coverage"]["interfaces"]["adapters"] == 40
    assert stated in run(layout, "pattern:all-to-all", "-o", str(tmp_path / "l.csv"))[1]
    used = [row.split(",") for row in (tmp_path / "l.csv").read_text().splitlines()[1:]]
    assert not any(int(row[-1]) + int(row[-2]) for row in used if row[2].endswith(("mlx5_8", "mlx5_9")))
    assert f"interfaces: {stated}" in run(layout, "--check")[0]
    assert json.loads(run(layout, "--check", "--json")[0])["interfaces"]["left_out"] == 10
    out, _ = run(layout, "--patterns", "--samples", "1")
    assert f"interfaces: {stated}" in out
    assert "Nothing is left out" not in out
    assert json.loads(run(layout, "--patterns", "--samples", "1", "--json")[0])["interfaces"]["left_out"] == 10
    assert f"interfaces: {stated}" in run(place, str(matrix), "--time", "0.1")[0]
    assert json.loads(run(place, str(matrix), "--time", "0.1", "--json")[0])["interfaces"]["by"] == "speed"
    assert stated in run(view, "pattern:all-to-all", "-o", str(tmp_path / "v.html"))[1]
    out, _ = run(report, "pattern:all-to-all", "--interfaces", "storage", "--json")
    assert json.loads(out)["coverage"]["interfaces"]["adapters"] == 10
    assert (
        json.loads(run(report, "pattern:all-to-all", "--interfaces", "all", "--json")[0])["coverage"]["interfaces"]
        is None
    )
    assert report.main([links, "pattern:all-to-all", "--interfaces", "ib9"]) == UsageError.status
