# SPDX-License-Identifier: Apache-2.0
"""For two switches, reports show the most loaded links that were calculated by hand; without a fabric, no links."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ibprof.profile.missing_data import format_ranks
from ibprof.profile.profile_data import Direction, Kind, Profile
from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.pipeline_stages import load_demands, read_routed_fabric
from ibprof_converter.hotspots.hot_links import HOST_LINK, SWITCH_LINK
from ibprof_converter.reports.job_report import JobReport, report_on_demand, report_on_loads
from ibprof_converter.reports.job_sections import describe_report
from ibprof_converter.reports.provenance import NOWHERE
from ibprof_converter.reports.report_text import describe_in_brief, print_sections
from ibprof_converter.routing.spread import trace
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample, load_sample
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

# On testbed44 host01 and host02 are on sw-a, host42 is on sw-b.
FAR = make_profile(
    [
        Count(0, 2, 600, region=0, operation=0),
        Count(1, 2, 300, region=1, operation=0),
        Count(1, 2, 100, region=1, operation=1),
        Count(0, 1, 50, region=0, operation=1),
    ],
    [make_rank(0, 0), make_rank(1, 1), make_rank(2, 2)],
    [make_host("host01"), make_host("host02"), make_host("host42")],
    regions=("main", "halo"),
    operations=("SEND", "BCAST"),
)


def report_on(run: Profile, top: int = 10) -> JobReport:
    fabric = read_routed_fabric(FabricOptions((str(find_sample("testbed44", IBDIAGNET)),)))
    return report_on_loads(load_demands(fabric, [profile_traffic(run)], TrafficOptions((run.name,))), NOWHERE, top)


def report_alone(run: Profile) -> JobReport:
    return report_on_demand(profile_traffic(run), NOWHERE)


def as_text(report: JobReport) -> str:
    console = Console(file=io.StringIO(), width=160, markup=False, emoji=False, highlight=False)
    print_sections(console, describe_report(report))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_most_loaded_direction_is_the_one_that_all_bytes_pass() -> None:
    report = report_on(FAR)
    assert report.links is not None
    into_host, between, out_of_host = report.links.hotspots[:3]
    # 1,000 bytes go from sw-a to sw-b, and on to host42. If loads are equal, hosts' links are listed first.
    assert (between.kind, between.bytes) == (SWITCH_LINK, 1000)
    assert {between.a.name, between.b.name} == {"sw-a", "sw-b"}
    assert (between.a if between.end == "a" else between.b).name == "sw-a"
    assert (into_host.kind, into_host.bytes, into_host.a.name, into_host.end) == (HOST_LINK, 1000, "host42 HCA-1", "b")
    assert (out_of_host.bytes, out_of_host.a.name, out_of_host.end) == (650, "host01 HCA-1", "a")


def test_ratio_and_time_at_line_rate() -> None:
    report = report_on(FAR)
    assert report.links is not None
    heat, busiest = report.links.heat, report.links.hotspots[0]
    # Bytes of the used link directions: host01 650, host02 400, sw-a 1000, sw-b to host42 1000, sw-a to host02 50.
    assert heat.mean_link == pytest.approx(3100 / 5)
    assert (heat.links, heat.links_used, heat.max_link, heat.max_switch_link) == (57, 4, 1000, 1000)
    assert busiest.ratio_to_mean == pytest.approx(1000 / 620)
    assert busiest.gbps == 32.0
    assert busiest.line_rate_s == pytest.approx(8000 / 32e9)


def test_shares_say_who_loads_it() -> None:
    report = report_on(FAR)
    assert report.links is not None
    causes = report.links.hotspots[0].contributors
    assert causes is not None
    pairs = [(pair.source_rank, pair.destination_rank, pair.bytes, pair.share) for pair in causes.rank_pairs]
    assert pairs == [(0, 2, 600, 0.6), (1, 2, 400, 0.4)]
    assert causes.rank_pairs[0].source == "host01 HCA-1"
    assert causes.other_pairs.pairs == 0
    assert [(each.name, each.bytes) for each in causes.regions] == [("main", 600), ("halo", 400)]
    assert [(each.name, each.bytes) for each in causes.operations] == [("SEND", 900), ("BCAST", 100)]


def test_contributors_add_up_to_the_end_and_are_those_whose_route_passes() -> None:
    counts = [Count(a, b, 1 + 7 * a + b) for a in range(10) for b in range(10) if a != b]
    hosts = [make_host(f"host{1 + 4 * rank:02}") for rank in range(10)]
    report = report_on(make_profile(counts, [make_rank(rank, rank) for rank in range(10)], hosts))
    subnet = load_sample("testbed44", IBDIAGNET)
    lids = find_hosts([subnet.fabric]).lid[::4, 0].tolist()
    assert report.links is not None
    for spot in report.links.hotspots:
        assert spot.contributors is not None
        sender = spot.a if spot.end == "a" else spot.b
        passing = {
            (count.rank, count.peer): count.bytes
            for count in counts
            if any(
                subnet.fabric.node_guid[hop.node] == int(sender.guid, 16) and hop.egress_port == sender.port
                for hop in trace(subnet.routes.network, lids[count.rank], lids[count.peer]).hops
            )
        }
        assert sum(passing.values()) == spot.bytes
        for pair in spot.contributors.rank_pairs:
            assert pair.source_rank is not None
            assert pair.destination_rank is not None
            assert passing.pop((pair.source_rank, pair.destination_rank)) == pair.bytes
        others = spot.contributors.other_pairs
        assert (others.pairs, others.bytes) == (len(passing), sum(passing.values()))
        for shares in (spot.contributors.regions, spot.contributors.operations):
            assert sum(share.bytes for share in shares) == spot.bytes
            assert sum(share.share for share in shares) == pytest.approx(1)


def test_top_limits_how_many_are_named() -> None:
    report = report_on(FAR, top=2)
    assert report.links is not None
    assert len(report.links.hotspots) == 2
    assert len(report.links.switch_hotspots) == 1


def test_text_and_json_tell_the_same() -> None:
    report = report_on(FAR)
    text, document = as_text(report), json.loads(json.dumps(report.as_json()))
    for key in ("bytes_total", "bytes_routed", "bytes_on_host"):
        assert f"{document[key]:,}" in text
    for spot in document["hotspots"]:
        assert f"{spot['ratio_to_mean']:.2f}" in text
        assert spot["link"]["a"]["name"] in text
    for name in ("MPI_Send", "MPI_Bcast", "main", "halo"):
        assert name in text
    assert "BCAST" not in text
    assert {each["name"] for each in document["operations"]} == {"SEND", "BCAST"}
    assert document["max_link"] == 1000
    assert document["coverage"]["ranks_recorded"] == document["coverage"]["world_size"] == 3
    assert document["bytes_unrouted"] == {}


def test_bytes_that_are_on_no_link_are_reported_in_both() -> None:
    run = replace(FAR, hosts=(*FAR.hosts[:2], make_host("laptop")))
    report = report_on(run)
    document = report.as_json()
    assert document["bytes_unrouted"] == {"host is not in the fabric": 1000}
    assert "not routed: host is not in the fabric" in as_text(report)


def test_a_name_is_noted_only_where_it_contradicts_port_guids() -> None:
    """A host without recorded ports is found by its name, without a note."""
    assert not any("by name" in note for note in report_on(FAR).coverage.notes)
    foreign = replace(FAR, hosts=(make_host("host01", make_port(7, 0xDEAD)), *FAR.hosts[1:]))
    notes = report_on(foreign).coverage.notes
    assert "1 host(s) found by name, since the fabric has none of their port GUIDs: 'host01'" in notes


def test_nothing_sent_is_reported_as_nothing() -> None:
    report = report_on(make_profile([], [make_rank(0)], [make_host("host01")]))
    document = report.as_json()
    assert (document["bytes_total"], document["max_link"], document["hotspots"]) == (0, 0, [])
    assert "total" in as_text(report)


def test_what_was_not_seen_is_said() -> None:
    run = make_profile(
        [
            Count(0, 1, 10),
            Count(0, 1, 7, kind=Kind.CONTROL),
            Count(1, 0, 7, kind=Kind.CONTROL, direction=Direction.RECEIVED),
        ],
        [
            make_rank(0, finalized=False, notes=("osc/rdma is not seen",)),
            make_rank(1, lost_bytes=5000, lost_messages=2, notes=("osc/rdma is not seen",)),
            make_rank(4, off_ns=2_000_000_000),
        ],
        [make_host("n1", make_port(3))],
        world_size=8,
        operations_asked="ALLTOALL,BCAST",
    )
    not_seen = report_alone(run).coverage.not_seen
    assert not_seen == (
        "5 of 8 ranks were not recorded: 2-3, 5-7; "
        "their hosts are unknown: the ranks ran on other hosts than n1, or without the library",
        "only these operations were recorded: ALLTOALL,BCAST",
        "rank 0 did not reach MPI_Finalize: the counters end where the process ended",
        "5 kB of rank 1 are known only in total, without peers and marks: the recording could not grow",
        "recording was switched off for up to 2 s on rank 4",
        "7 B of MPI's own control messages are left out of all sums",
        "rank 0-1: osc/rdma is not seen",
    )
    text = as_text(report_alone(run))
    assert all(sentence in text.replace("\n  ", " ") for sentence in not_seen)


def test_nobody_is_asked_for_a_fabric_that_no_byte_is_on() -> None:
    run = replace(FAR, hosts=(make_host("n1"),), ranks=tuple(make_rank(rank, 0) for rank in range(3)))
    report = report_alone(run)
    assert report.run is not None
    assert 0 < report.run.bytes_on_host == report.run.bytes_total
    assert "ask_the_administrator_for" not in report.as_json()
    assert "administrator" not in "\n".join(describe_in_brief(report, ()))


def test_a_run_alone_shows_hosts_operations_regions_balance_and_what_to_ask_for() -> None:
    hosts = (make_host("n1", make_port(3)), make_host("n2"))
    run = replace(FAR, hosts=hosts, ranks=(make_rank(0, 0), make_rank(1, 0), make_rank(2, 1)))
    document = json.loads(json.dumps(report_alone(run).as_json()))
    assert (document["bytes_total"], document["bytes_on_host"]) == (1050, 50)
    assert [(each["name"], each["bytes"], each["messages"]) for each in document["operations"]] == [
        ("SEND", 900, 2),
        ("BCAST", 150, 2),
    ]
    assert [(each["name"], each["bytes"]) for each in document["regions"]] == [("main", 650), ("halo", 400)]
    sums = [(host["bytes_on_host"], host["bytes_sent"], host["bytes_received"]) for host in document["hosts"]]
    assert sums == [(50, 1000, 0), (0, 0, 1000)]
    assert document["hosts"][0]["ports"][0]["lid"] == 3
    assert document["balance_ranks"] == {"max_bytes": 650, "mean_bytes": 350.0, "ratio": 650 / 350, "greatest": 0}
    assert document["balance_hosts"]["ratio"] == 2
    commands = [request["command"] for request in document["ask_the_administrator_for"]]
    assert any(command.startswith("ibdiagnet ") for command in commands)
    text = as_text(report_alone(run))
    assert all(command in text for command in commands)
    assert "ibdiagnet.fdbs" in text


def test_hostile_names_cannot_write_to_the_terminal() -> None:
    hostile = "\x1b[2J[red]x\n| y"
    run = replace(FAR, hosts=(make_host(hostile), *FAR.hosts[1:]), regions=(hostile, "halo"), operations=(hostile, "B"))
    for report in (report_alone(run), report_on(replace(run, hosts=FAR.hosts))):
        text = as_text(report)
        assert "\x1b" not in text
        assert "\\x1b[2J[red]x\\n| y" in text


def test_ranks_are_written_as_ranges() -> None:
    assert format_ranks([]) == ""
    assert format_ranks([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert format_ranks(np.arange(0, 40, 2).tolist()).endswith("and 12 more ranges")
