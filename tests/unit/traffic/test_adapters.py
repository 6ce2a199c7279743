# SPDX-License-Identifier: Apache-2.0
"""Each adapter of a host in a subnet is a separate port, and a policy chooses the adapter of each rank."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import UsageError
from ibprof.profile.profile_data import AdapterChoice, Profile
from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.hotspots import link_report
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.placement.slots import assign_slots
from ibprof_converter.traffic.adapter_policies import number_on_host, spread_flows
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_converter.traffic.recorded_adapters import read_cores
from ibprof_converter.traffic.traffic_data import NO_LID
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.reference.adapters import Dump, Port, add_up, flows_by_rank, read_dump, sum_sent
from ibprof_testing.samples.many_adapters import ADAPTERS, HOSTS, make_subnet, write_dumps
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

FABRIC = make_subnet().fabric
FOUND = find_hosts([FABRIC])
LID_OF = {FABRIC.node_name[node]: lid for node, lid in zip(FABRIC.port_node, FABRIC.port_lid.tolist(), strict=True)}
GUID_OF = dict(zip(FABRIC.port_lid.tolist(), FABRIC.port_guid.tolist(), strict=True))
NATURAL = [f"mlx5_{number}" for number in (2, 3, 4, 6, 7, 8, 9, 10)]


def matrix(folder: Path, pairs: list[tuple[int, int, int]]) -> str:
    path = folder / "matrix.csv"
    path.write_text("src,dst,bytes,messages\n" + "".join(f"{a},{b},{size},1\n" for a, b, size in pairs))
    return str(path)


def place(folder: Path, hosts: list[str]) -> str:
    path = folder / "placement.csv"
    path.write_text("rank,host\n" + "".join(f"{rank},{host}\n" for rank, host in enumerate(hosts)))
    return str(path)


def run_layout(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Counter[Port], str]:
    assert layout.main(list(arguments)) == 0
    captured = capsys.readouterr()
    return sum_sent(csv.DictReader(io.StringIO(captured.out))), captured.err


@pytest.fixture(name="links")
def make_links(tmp_path: Path) -> Path:
    return write_dumps(tmp_path)


@pytest.fixture(name="dump")
def make_dump(links: Path) -> Dump:
    return read_dump(links, links.with_suffix(".fdbs"))


def test_ports_of_a_host_are_in_the_natural_order_of_their_names() -> None:
    assert FOUND.name[:HOSTS] == tuple(f"gpu{number}" for number in range(1, HOSTS + 1))
    assert FOUND.ports.shape == (len(FOUND.name), 1, ADAPTERS)
    assert FOUND.ports[0, 0].tolist() == [LID_OF[f"gpu1 {device}"] for device in NATURAL]
    storage = FOUND.name.index("storage1")
    assert FOUND.ports[storage, 0].tolist() == [LID_OF["storage1 mlx5_0"], *[NO_LID] * (ADAPTERS - 1)]
    assert FOUND.adapters[[0, storage], 0].tolist() == [ADAPTERS, 1]


def test_ends_are_all_ports_of_hosts_and_no_others() -> None:
    no_host = {lid for name, lid in LID_OF.items() if "Aggregation" in name}
    switches = {lid for name, lid in LID_OF.items() if "mlx5" not in name}
    assert sorted(FOUND.ends[:, 0].tolist()) == sorted(set(LID_OF.values()) - switches - no_host)


HOSTS_OF_RANKS = [*["gpu1"] * 8, *["gpu2"] * 8, *["gpu3"] * 3, "storage1"]
"""gpu1 and gpu2 have as many ranks as adapters. gpu3 has fewer ranks. storage1 has a single adapter."""

PAIRS = [
    (source, destination, 1000 + 17 * source + destination)
    for source in range(len(HOSTS_OF_RANKS))
    for destination in range(len(HOSTS_OF_RANKS))
    if source != destination
]


@pytest.mark.parametrize("policy", [(), ("--nic", "rank")])
def test_loads_by_rank_are_those_of_a_tracer_of_its_own(
    links: Path, dump: Dump, tmp_path: Path, policy: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (str(links), matrix(tmp_path, PAIRS), "--placement", place(tmp_path, HOSTS_OF_RANKS), *policy)
    found, told = run_layout(capsys, *asked)
    assert found == add_up(dump, flows_by_rank(dump, HOSTS_OF_RANKS, PAIRS))
    assert "modelled:rank" in told.splitlines()[0]


def test_more_ranks_than_adapters_begin_anew(
    links: Path, dump: Dump, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = ["gpu1"] * 11 + ["gpu2"]
    pairs = [(rank, 11, 1 << rank) for rank in range(11)]
    found, _ = run_layout(capsys, str(links), matrix(tmp_path, pairs), "--placement", place(tmp_path, hosts))
    sent = [found[dump.at[lid]] for lid in dump.adapters("gpu1")]
    assert sent == [(1 << rank) + (1 << rank + 8 if rank < 3 else 0) for rank in range(8)]


def drop_adapters(fabric: Fabric, *names: str) -> Fabric:
    return replace(fabric, is_left_out=np.isin(np.array(fabric.node_name), names))


@pytest.mark.parametrize("device", [0, 3, 7])
def test_ranks_keep_the_adapters_of_their_numbers_where_one_is_missing(device: int, tmp_path: Path) -> None:
    fabric = drop_adapters(FABRIC, f"gpu2 {NATURAL[device]}")
    hosts = find_hosts([fabric])
    demand = build_pattern("pattern:shift:1", len(HOSTS_OF_RANKS))
    placed = map_to_lids(demand, hosts, [fabric], place(tmp_path, HOSTS_OF_RANKS), None)
    kept = [LID_OF[f"gpu2 {name}"] for name in NATURAL]
    taken = placed.rank_lid[8:16, 0].tolist()
    assert [lid for number, lid in enumerate(taken) if number != device] == kept[:device] + kept[device + 1 :]
    assert taken[device] in kept
    assert taken[device] != kept[device]
    subnet = replace(make_subnet(), fabric=fabric)
    coverage = describe_coverage(demand, placed, [subnet], hosts)
    assert any(f"(gpu2: {NATURAL[device]})" in note for note in coverage.notes)
    slots = assign_slots(hosts, {hosts.name.index("gpu2"): 8}, 8)
    assert slots.lid[slots.port_of_slot, 0].tolist() == taken
    assert len(np.unique(slots.lid)) == len(slots.lid)


def test_a_report_says_where_names_do_not_show_which_adapter_is_missing(tmp_path: Path) -> None:
    names = tuple(name.replace("mlx5_", f"mlx5_{node}0") for node, name in enumerate(FABRIC.node_name))
    fabric = replace(FABRIC, node_name=names)
    fabric = drop_adapters(fabric, next(name for name in names if name.startswith("gpu2")))
    hosts = find_hosts([fabric])
    demand = build_pattern("pattern:shift:1", len(HOSTS_OF_RANKS))
    subnet = replace(make_subnet(), fabric=fabric)
    for ranks, is_said in ((HOSTS_OF_RANKS, True), (["gpu1"] * len(HOSTS_OF_RANKS), False)):
        placed = map_to_lids(demand, hosts, [fabric], place(tmp_path, ranks), None)
        lost = describe_coverage(demand, placed, [subnet], hosts).lost
        assert any("(gpu2): names do not show which adapters are missing" in sentence for sentence in lost) == is_said


def test_first_takes_the_first_adapter_alone(
    links: Path, dump: Dump, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (str(links), matrix(tmp_path, PAIRS), "--placement", place(tmp_path, HOSTS_OF_RANKS), "--nic", "first")
    found, told = run_layout(capsys, *asked)
    apart = [(a, b, size) for a, b, size in PAIRS if HOSTS_OF_RANKS[a] != HOSTS_OF_RANKS[b]]
    first = [dump.adapters(host)[0] for host in HOSTS_OF_RANKS]
    assert found == add_up(dump, ((first[a], first[b], size) for a, b, size in apart))
    assert "modelled:first" in told


def test_spread_cuts_every_message_and_keeps_every_byte(
    links: Path, dump: Dump, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(0, 1, 1003), (1, 2, 1003), (2, 0, 5)]
    hosts = ["gpu1", "gpu2", "storage1"]
    asked = (str(links), matrix(tmp_path, pairs), "--placement", place(tmp_path, hosts), "--nic", "spread")
    found, told = run_layout(capsys, *asked)
    one, two, storage = (dump.adapters(host) for host in hosts)
    parts = [126, 126, 126, 125, 125, 125, 125, 125]
    flows = [
        *zip(one, two, parts, strict=True),
        *((lid, storage[0], part) for lid, part in zip(two, parts, strict=True)),
    ]
    flows += [(storage[0], lid, 1) for lid in one[:5]]
    assert found == add_up(dump, flows)
    assert "modelled:spread" in told


def test_near_needs_to_be_known(links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [str(links), matrix(tmp_path, PAIRS), "--placement", place(tmp_path, HOSTS_OF_RANKS), "--nic", "near"]
    assert layout.main(asked) == 2
    assert "--nic near" in capsys.readouterr().err


def test_a_port_that_a_placement_names_is_the_one(
    links: Path, dump: Dump, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lids = [dump.adapters("gpu1")[5], dump.adapters("gpu2")[3]]
    where = tmp_path / "placement.csv"
    where.write_text("rank,lid\n" + "".join(f"{rank},{lid}\n" for rank, lid in enumerate(lids)))
    found, told = run_layout(capsys, str(links), matrix(tmp_path, [(0, 1, 7)]), "--placement", str(where))
    assert found == add_up(dump, [(lids[0], lids[1], 7)])
    assert "modelled" not in told


def test_a_pattern_is_over_all_adapters(links: Path, dump: Dump, capsys: pytest.CaptureFixture[str]) -> None:
    found, told = run_layout(capsys, str(links), "pattern:all-to-all:3")
    ends = [lid for name, lid in dump.lid.items() if "Aggregation" not in name]
    flows = [(a, b, 3) for a in ends for b in ends if a != b]
    assert found == add_up(dump, flows)
    assert f"receivers are the {len(ends)} adapters of" in told


def test_with_a_policy_a_pattern_is_over_the_hosts(links: Path, dump: Dump, capsys: pytest.CaptureFixture[str]) -> None:
    names = sorted({name.split()[0] for name in dump.lid if "Aggregation" not in name})
    for policy, ports in (("first", 1), ("spread", ADAPTERS)):
        found, _ = run_layout(capsys, str(links), "pattern:all-to-all:80", "--nic", policy)
        flows = []
        for a in names:
            for b in names:
                one, other = (dump.adapters(name)[:ports] for name in (a, b))
                most = max(len(one), len(other))
                parts = [(one[i % len(one)], other[i % len(other)], 80 // most) for i in range(most)]
                flows += parts if a != b else []
        assert found == add_up(dump, flows), policy


@pytest.mark.parametrize("nic", [None, "first"])
def test_large_all_to_all_as_a_matrix_is_that_of_the_flows(
    links: Path, nic: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = []
    for limit in (1 << 20, 0):
        monkeypatch.setattr(link_report, "DIAGNOSED_FLOWS", limit)
        policy = ["--nic", nic] if nic else []
        assert report.main([str(links), "pattern:all-to-all:7", "--json", "--adaptive", *policy]) == 0
        documents.append(json.loads(capsys.readouterr().out))
        # Traffic between ports has no ranks, so `accounts` lacks the stages that read and place ranks.
        documents[-1]["routed"] = documents[-1]["coverage"].pop("accounts")[-1]
    for name in ("hotspots", "adaptive", "bytes_routed", "max_link", "nic", "coverage", "routed"):
        assert documents[0][name] == documents[1][name], name
    assert documents[0]["nic"] == f"modelled:{nic or 'rank'}"


def test_a_recorded_run_has_the_ports_that_it_had(dump: Dump) -> None:
    # The run had three adapters of gpu1, in sysfs's order. The fabric has eight adapters of gpu1.
    lids = {device: LID_OF[f"gpu1 {device}"] for device in ("mlx5_10", "mlx5_2", "mlx5_7")}
    hosts = [
        make_host("one", *(make_port(lid, GUID_OF[lid], device=device) for device, lid in lids.items())),
        make_host("gpu2"),
    ]
    ranks = [make_rank(rank, host=rank // 4) for rank in range(8)]
    run = make_profile([Count(rank, 7 - rank, 10 + rank) for rank in range(8)], ranks, hosts)
    traffic = map_to_lids(profile_traffic(run), FOUND, [FABRIC], None, None)
    own = [lids[device] for device in ("mlx5_2", "mlx5_7", "mlx5_10", "mlx5_2")] + dump.adapters("gpu2")[:4]
    columns = (traffic.source_lid, traffic.destination_lid, traffic.bytes)
    flows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert flows == sorted((own[rank], own[7 - rank], 10 + rank) for rank in range(8))
    assert traffic.nic == "modelled:rank"
    assert traffic.rank_lid[:, 0].tolist() == own


DEVICES = ("mlx5_10", "mlx5_2", "mlx5_3", "mlx5_7")
"""Devices of each host, in sysfs's order. The last two devices are near other cores than the first two."""


def recorded(choices: list[tuple[AdapterChoice, ...]], **of_ports: str) -> Profile:
    """Make a run of eight ranks on two hosts. Rank i of a host sends to rank i of the other host."""
    near = {"mlx5_10": "0-3", "mlx5_2": "0-3", "mlx5_3": "4-7", "mlx5_7": "4-7"}
    hosts = [
        make_host(
            host,
            *(
                make_port(lid, GUID_OF[lid], device=device, near_cores=near[device], **of_ports)
                for device in DEVICES
                for lid in [LID_OF[f"{host} {device}"]]
            ),
        )
        for host in ("gpu1", "gpu2")
    ]
    ranks = [make_rank(rank, host=rank // 4, choices=choices[rank]) for rank in range(8)]
    return make_profile([Count(rank, (rank + 4) % 8, 10 + rank) for rank in range(8)], ranks, hosts)


def taken(run: Profile, nic: str | None = None) -> tuple[list[str], str | None]:
    """Return each rank's sending device, and the text on how adapters were chosen (`Traffic.nic`)."""
    traffic = map_to_lids(profile_traffic(run), FOUND, [FABRIC], None, None, nic)
    name_of = {lid: name.split()[1] for name, lid in LID_OF.items() if "mlx5" in name}
    sends = dict(zip(traffic.source_rank.tolist(), traffic.source_lid.tolist(), strict=True))
    assert traffic.rank_lid[:, 0].tolist() == [sends[rank] for rank in range(8)]
    return [name_of[sends[rank]] for rank in range(8)], traffic.nic


def cores(text: str) -> AdapterChoice:
    return AdapterChoice("cores", text)


@pytest.mark.parametrize(
    ("variable", "form"),
    [
        ("UCX_NET_DEVICES", "{}:1"),
        ("UCX_NET_DEVICES", "eth0,{}:1"),
        ("OMPI_MCA_btl_openib_if_include", "{}"),
        ("OMPI_MCA_btl_openib_if_include", "{}:1"),
        ("FI_VERBS_DEVICE_NAME", "{}"),
        ("MV2_IBA_HCA", "{}"),
        ("PSM3_NIC", "{}"),
    ],
)
def test_a_rank_takes_the_adapter_that_its_environment_names(variable: str, form: str) -> None:
    wanted = ["mlx5_7", "mlx5_2", "mlx5_10", "mlx5_2", "mlx5_3", "mlx5_3", "mlx5_2", "mlx5_7"]
    run = recorded([(cores("0-7"), AdapterChoice(variable, form.format(device))) for device in wanted])
    assert taken(run) == (wanted, "recorded")
    by_rank = ["mlx5_2", "mlx5_3", "mlx5_7", "mlx5_10"] * 2
    assert taken(run, "rank") == (by_rank, "modelled:rank")


def test_a_rank_takes_an_adapter_near_to_its_cores() -> None:
    where = ["0", "1,5-7", "4-5", "2", "6", "7", "3", "0-7"]
    near = ["mlx5_2", "mlx5_3", "mlx5_7", "mlx5_10", "mlx5_3", "mlx5_7", "mlx5_2", "mlx5_2"]
    run = recorded([(cores(text),) for text in where])
    assert taken(run) == taken(run, "near") == (near, "modelled:near")


def test_of_several_adapters_that_the_environment_names_the_near_ones_count() -> None:
    run = recorded([(cores("0-3"), AdapterChoice("UCX_NET_DEVICES", "mlx5_2:1,mlx5_3:1"))] * 8)
    assert taken(run) == (["mlx5_2"] * 8, "modelled:near")
    ranged = recorded([(cores("4-7"), AdapterChoice("UCX_NET_DEVICES", "mlx5_[2-9]:1,tcp"))] * 8)
    assert taken(ranged) == (["mlx5_3", "mlx5_7"] * 4, "modelled:near")
    without_port = recorded([(AdapterChoice("UCX_NET_DEVICES", "mlx5_[9-11]"),)] * 8)
    assert taken(without_port) == (["mlx5_10"] * 8, "recorded")
    unbound = recorded([(AdapterChoice("UCX_NET_DEVICES", "^mlx5_2:1"),)] * 8)
    assert taken(unbound) == (["mlx5_3", "mlx5_7", "mlx5_10", "mlx5_3"] * 2, "modelled:rank")


def test_coverage_says_what_a_recorded_choice_leaves_open() -> None:
    run = recorded([(AdapterChoice("UCX_NET_DEVICES", "mlx5_7:1"),)] * 8)
    demand = profile_traffic(run)
    subnet = make_subnet()

    def modelled(nic: str | None) -> str:
        return " ".join(
            describe_coverage(demand, map_to_lids(demand, FOUND, [FABRIC], None, None, nic), [subnet]).modelled
        )

    assert "the adapter that its environment names" in modelled(None)
    assert "environment" not in modelled("rank")


@pytest.mark.parametrize("text", ["all", "mlx5_77:1", "mlx5_2:9", "", "^", "mlx5_[20-99]", "mlx5_[3-2]"])
def test_an_environment_that_names_none_of_them_says_nothing(text: str) -> None:
    run = recorded([(AdapterChoice("UCX_NET_DEVICES", text),)] * 8)
    assert taken(run) == (["mlx5_2", "mlx5_3", "mlx5_7", "mlx5_10"] * 2, "modelled:rank")


@pytest.mark.parametrize(
    ("choice", "note"),
    [
        (AdapterChoice("UCX_NET_DEVICES", "mlx5_77:1"), "UCX_NET_DEVICES=mlx5_77:1 of 8 rank(s) names no adapter that"),
        (AdapterChoice("MV2_IBA_HCA", "hfi1_0"), "MV2_IBA_HCA=hfi1_0 of 8 rank(s) names no adapter that"),
        (AdapterChoice("FI_VERBS_IFACE", "ib0"), "FI_VERBS_IFACE=ib0 of 8 rank(s) is not read by ibprof"),
        (AdapterChoice("PSM3_NIC", "3"), "PSM3_NIC=3 of 8 rank(s) names no adapter that"),
        (AdapterChoice("PSM3_NIC", "any"), None),
        (AdapterChoice("UCX_NET_DEVICES", "all"), None),
        (AdapterChoice("UCX_NET_DEVICES", "mlx5_7:1"), None),
    ],
)
def test_a_choice_that_is_not_followed_is_said(choice: AdapterChoice, note: str | None) -> None:
    demand = profile_traffic(recorded([(cores("0-3"), choice)] * 8))

    def notes(nic: str | None) -> list[str]:
        return [each for each in map_to_lids(demand, FOUND, [FABRIC], None, None, nic).notes if "rank(s)" in each]

    assert [each.startswith(note or "?") for each in notes(None)] == ([True] if note else [])
    assert notes("rank") == []


def test_ranks_that_are_placed_elsewhere_take_nothing_recorded(tmp_path: Path) -> None:
    run = recorded([(AdapterChoice("UCX_NET_DEVICES", "mlx5_7:1"),)] * 8)
    where = place(tmp_path, ["gpu3"] * 4 + ["gpu4"] * 4)
    assert map_to_lids(profile_traffic(run), FOUND, [FABRIC], where, None).nic == "modelled:rank"


@pytest.mark.parametrize(
    ("text", "found"),
    [("0-3,7", {0, 1, 2, 3, 7}), ("5", {5}), ("", set()), ("3-x", set()), ("9-4", set())],
)
def test_lists_of_cores(text: str, found: set[int]) -> None:
    assert read_cores(text) == found
    assert len(read_cores("0-999999")) <= 1 << 17


def test_no_report_calls_several_adapters_a_single_rail(
    links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"src_lid,dst_lid,bytes\n{FOUND.ports[0, 0, 2]},{FOUND.ports[1, 0, 2]},9\n")
    placed = ["--placement", place(tmp_path, HOSTS_OF_RANKS)]
    for traffic in ([matrix(tmp_path, PAIRS), *placed], [str(pairs)], ["pattern:shift:1"], ["pattern:all-to-all"]):
        assert report.main([str(links), *traffic, "--full"]) == 0
        said = capsys.readouterr().out
        assert "rails: one subnet, several adapters a host" in said
        assert "single" not in said


def test_the_label_is_in_every_output(links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [str(links), matrix(tmp_path, PAIRS), "--placement", place(tmp_path, HOSTS_OF_RANKS)]
    assert report.main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["nic"] == document["coverage"]["nic"] == "modelled:rank"
    assert any("modelled:rank" in sentence for sentence in document["coverage"]["modelled"])
    assert report.main([*asked, "--full"]) == 0
    assert "modelled:rank" in capsys.readouterr().out
    files = {name: tmp_path / name for name in ("nodes.csv", "out.yaml", "view.html", "report.html")}
    arguments = ["--nodes", files["nodes.csv"], "--yaml", files["out.yaml"], "--html", files["view.html"]]
    assert layout.main([*asked, "-o", str(tmp_path / "links.csv"), *map(str, arguments)]) == 0
    assert report.main([*asked, "--html", str(files["report.html"])]) == 0
    assert "nic: modelled:rank" in files["out.yaml"].read_text()
    assert "modelled:rank" in files["report.html"].read_text()
    nodes = {row["name"]: row for row in csv.DictReader(files["nodes.csv"].read_text().splitlines())}
    assert list(nodes["gpu1 mlx5_3"])[-1] == "host"
    assert [nodes[f"gpu1 {device}"]["ranks"] for device in NATURAL] == [f"[{rank}]" for rank in range(8)]
    assert {row["host"] for name, row in nodes.items() if name.startswith("gpu1 ")} == {"gpu1"}
    assert {row["host"] for row in nodes.values() if row["kind"] == "switch" or "Aggregation" in row["name"]} == {""}


def test_a_pattern_that_was_read_for_adapters_is_not_put_on_hosts() -> None:
    demand = build_pattern("pattern:shift:1", len(FOUND.ends))
    with pytest.raises(UsageError, match="adapters"):
        map_to_lids(demand, FOUND, [FABRIC], None, None, "first")


def test_ranks_are_numbered_host_by_host() -> None:
    assert number_on_host(np.array([3, 1, 3, 3, 1, 0])).tolist() == [0, 0, 1, 2, 1, 0]


def test_no_byte_of_a_spread_flow_is_lost() -> None:
    source = np.array([[1, 2, 3], [4, NO_LID, NO_LID], [5, 6, NO_LID]], np.int32)
    amounts = np.array([10, 2, (1 << 64) - 1], np.uint64)
    shares = spread_flows(source, source[[1, 0, 0]], amounts)
    parts = [shares.bytes[shares.flow == flow].tolist() for flow in range(3)]
    assert [sum(some) for some in parts] == amounts.tolist()
    assert [max(some) - min(some) for some in parts] == [1, 0, 0]
    assert shares.source_lid[shares.flow == 2].tolist() == [5, 6, 5]


def test_hosts_are_counted_by_their_adapters(links: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["--check", str(links)]) == 0
    alone = len(FOUND.name) - HOSTS
    assert f"rail 0: {HOSTS} hosts with {ADAPTERS} adapters, {alone} hosts with 1 adapter in one subnet" in (
        capsys.readouterr().out
    )
