# SPDX-License-Identifier: Apache-2.0
"""Ranks have their recorded port, or a rule or a file selects the port. Ranks without a port are counted by reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError, UsageError
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Kind, Profile, Source
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.rank_placement import place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import NO_LID, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

# In testbed44, host01, host02 and host03 have LIDs 1, 6 and 9.
PORT_GUID = {"host01": 0x0002C903000A0001}


def place(demand: RankTraffic, rule: str | None = None, policy: str | None = None, dual: bool = False) -> Traffic:
    samples = ["dualrail/rail1", "dualrail/rail2"] if dual else ["testbed44"]
    fabrics = [load_sample(sample, IBDIAGNET).fabric for sample in samples]
    return map_to_lids(demand, find_hosts(fabrics), fabrics, rule, policy)


def pair_on(*hosts: str, **changes: Any) -> Profile:
    """Return a run of two ranks, on one host or two. The first rank sends 10 bytes to the second rank."""
    ranks = [make_rank(rank, host=rank % len(hosts)) for rank in range(2)]
    return make_profile([Count(0, 1, 10)], ranks, [make_host(name) for name in hosts], **changes)


def flows(traffic: Traffic) -> list[tuple[int, int, int]]:
    columns = (traffic.source_lid, traffic.destination_lid, traffic.bytes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_ports_that_are_in_the_fabric_decide_before_names() -> None:
    hosts = [make_host("host03", make_port(77, PORT_GUID["host01"])), make_host("host02")]
    run = make_profile([Count(0, 1, 10)], [make_rank(0, 0), make_rank(1, 1)], hosts)
    traffic = place(profile_traffic(run))
    assert flows(traffic) == [(1, 6, 10)]
    assert any("a different LID" in note for note in traffic.notes)


@pytest.mark.parametrize("changes", [{"state": 1}, {"link_layer": "Ethernet"}, {"port_guid": "nonsense"}])
def test_ports_that_are_down_or_ethernet_or_unknown_do_not(changes: dict[str, Any]) -> None:
    port = replace(make_port(1, PORT_GUID["host01"]), **changes)
    hosts = [make_host("host03", port), make_host("host02")]
    run = make_profile([Count(0, 1, 10)], [make_rank(0, 0), make_rank(1, 1)], hosts)
    assert flows(place(profile_traffic(run))) == [(9, 6, 10)]


def test_the_lid_alone_decides_last_and_is_said() -> None:
    hosts = [make_host("elsewhere", make_port(9)), make_host("host02.cluster.example")]
    run = make_profile([Count(0, 1, 10)], [make_rank(0, 0), make_rank(1, 1)], hosts)
    traffic = place(profile_traffic(run))
    assert flows(traffic) == [(9, 6, 10)]
    assert any("LID alone" in note for note in traffic.notes)


def test_a_host_that_is_not_there_is_counted_and_named() -> None:
    traffic = place(profile_traffic(pair_on("host1", "host02")))
    assert flows(traffic) == []
    assert traffic.unmapped == {"host is not in the fabric": 10}
    assert any("'host1'" in note for note in traffic.notes)


def test_ranks_of_one_host_load_no_link_even_when_it_is_not_in_the_fabric() -> None:
    traffic = place(profile_traffic(pair_on("laptop")))
    assert (flows(traffic), traffic.on_host_bytes, traffic.unmapped) == ([], 10, {})


def test_ranks_that_were_not_recorded_and_peers_that_are_no_ranks_are_counted() -> None:
    counts = [Count(0, 1, 10), Count(0, 2, 100), Count(0, UNKNOWN_PEER, 1000)]
    run = make_profile(counts, [make_rank(0), make_rank(1)], [make_host("host01")], world_size=3)
    traffic = place(profile_traffic(run))
    assert traffic.unmapped == {
        "peer is no rank of MPI_COMM_WORLD": 1000,
        "rank was not recorded, so its host is unknown": 100,
    }
    assert traffic.on_host_bytes == 10


def test_a_placement_overrides_the_hosts_of_the_recording() -> None:
    traffic = place(profile_traffic(pair_on("laptop")), "packed")
    assert (flows(traffic), traffic.on_host_bytes) == ([(1, 6, 10)], 0)
    assert traffic.rank_lid.tolist() == [[1], [6]]


def test_what_makes_the_matrix() -> None:
    counts = [
        Count(0, 1, 1),
        Count(0, 1, 10, direction=Direction.FETCHED),
        Count(0, 1, 100, direction=Direction.RECEIVED),
        Count(0, 1, 1000, kind=Kind.CONTROL),
        Count(0, 1, 10000, source=Source.UCX),
    ]
    demand = profile_traffic(make_profile(counts, [make_rank(0), make_rank(1)]))
    made = sorted(zip(demand.source.tolist(), demand.destination.tolist(), demand.bytes.tolist(), strict=True))
    assert made == [(0, 1, 1), (1, 0, 10)]
    assert demand.layer == "Open MPI's PML"


def test_a_run_of_more_ranks_than_any_machine_has_is_refused() -> None:
    with pytest.raises(InputError, match="at most 16777216 ranks"):
        profile_traffic(make_profile([], [make_rank(0)], world_size=2**31 - 1))


def ring(ranks: int) -> RankTraffic:
    counts = [Count(rank, (rank + 1) % ranks, 1) for rank in range(ranks)]
    return profile_traffic(make_profile(counts, [make_rank(rank) for rank in range(ranks)]))


def test_packed_fills_a_leaf_and_spread_deals_out() -> None:
    hosts = find_hosts([load_sample("testbed44", IBDIAGNET).fabric])
    packed, spread = (place(ring(4), rule).rank_lid[:, 0].tolist() for rule in ("packed", "spread"))
    assert packed == hosts.lid[[0, 1, 2, 3], 0].tolist()
    assert spread == hosts.lid[[0, 21, 1, 22], 0].tolist()


def test_random_is_the_same_for_a_seed_and_one_rank_a_host() -> None:
    first, again, other = (place(ring(42), f"random:{seed}").rank_lid[:, 0].tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 42


@pytest.mark.parametrize("rule", ["packed", "spread", "random:1"])
def test_too_few_hosts_is_an_error_that_says_how_many(rule: str) -> None:
    with pytest.raises(UsageError, match=r"43 ranks .* 42"):
        place(ring(43), rule)


@pytest.mark.parametrize("rule", ["random:", "random:x", "random:-1", "random:99999999999", "nowhere.csv"])
def test_an_unknown_rule(rule: str) -> None:
    with pytest.raises(UsageError):
        place(ring(2), rule)


def test_a_file_may_put_several_ranks_on_a_host(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("rank,host\n1,host02.cluster.example\n0,host02\n2,host01\n")
    traffic = place(ring(3), str(path))
    assert sorted(flows(traffic)) == [(1, 6, 1), (6, 1, 1)]
    assert traffic.on_host_bytes == 1


def test_a_file_may_name_lids(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("rank,lid\n0,9\n1,0x6\n")
    assert sorted(flows(place(ring(2), str(path)))) == [(6, 9, 1), (9, 6, 1)]


def test_a_lid_on_the_first_rail_brings_its_host_on_the_second(tmp_path: Path) -> None:
    fabrics = [load_sample(f"dualrail/rail{rail}", IBDIAGNET).fabric for rail in (1, 2)]
    hosts = find_hosts(fabrics)
    lids = hosts.lid[(hosts.lid != NO_LID).all(axis=1)][:2]
    path = tmp_path / "p.csv"
    path.write_text(f"rank,lid\n0,{lids[0, 0]}\n1,{lids[1, 0]}\n")
    assert place(ring(2), str(path), dual=True).rank_lid.tolist() == lids.tolist()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1: expected the header rank,host"),
        ("rank,node\n", ":1: expected the header rank,host"),
        ("rank,host\n0,host01\n1,host1\n", ":3: expected a host of the fabric, found 'host1'"),
        ("host01\nhost99\n", ":2: expected a host of the fabric, found 'host99'"),
        ("host01\nhost[98-99]\n", ":2: expected a host of the fabric, found 'host98'"),
        ("rank,host\n0,host01\n0,host02\n", ":3: expected each rank once, found rank 0 again"),
        ("rank,host\n0,host01\n2,host02\n", ":3: expected a rank below 2, found '2'"),
        ("rank,host\n0,host01\n", ": expected a host for each of the 2 ranks, found none for rank 1"),
        ("rank,host\n0,host01,1\n", ":2: expected 2 columns, found 3"),
        ("rank,lid\n0,2\n1,9\n", ":2: expected a LID of a host"),
        ("rank,lid\n0,0\n1,9\n", ":2: expected a LID of a host"),
    ],
)
def test_a_bad_file_is_reported_by_path_and_line(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        place(ring(2), str(path))
    assert str(caught.value).startswith(f"{path}{where}")


def test_a_name_that_several_adapters_have_is_refused_as_such(tmp_path: Path) -> None:
    fabric = load_sample("testbed44", IBDIAGNET).fabric
    names = tuple("host01 HCA-1" if name == "host02 HCA-1" else name for name in fabric.node_name)
    fabric = replace(fabric, node_name=names)
    path = tmp_path / "p.csv"
    path.write_text("rank,host\n0,host01\n")
    with pytest.raises(InputError, match="found 'host01', a name that several adapters share"):
        place_ranks_by_rule(str(path), find_hosts([fabric]), [fabric], 1)


def test_a_host_that_is_on_one_rail_alone_uses_that_one() -> None:
    fabrics = [load_sample(f"dualrail/rail{rail}", IBDIAGNET).fabric for rail in (1, 2)]
    hosts = find_hosts(fabrics)
    single = next(name for name, lid in zip(hosts.name, hosts.lid.tolist(), strict=True) if lid[0] and not lid[1])
    double = next(name for name, lid in zip(hosts.name, hosts.lid.tolist(), strict=True) if lid[0] and lid[1])
    run = pair_on(double, single)
    traffic = place(profile_traffic(run), policy="second", dual=True)
    assert traffic.rail.tolist() == [0]
    assert traffic.bytes.tolist() == [10]
    assert any("not on all rails" in note for note in traffic.notes)
    assert traffic.rail_source == "modelled (second)"
