# SPDX-License-Identifier: Apache-2.0
"""Throughputs of patterns equal calculations by hand, and counts of pairs on traced routes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ibprof_converter.cli import layout
from ibprof_converter.hotspots.pattern_throughput import (
    SEEDED,
    PatternThroughput,
    describe_patterns,
    measure_throughput,
)
from ibprof_converter.routing.spread import trace
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample, load_sample


def make(shape: str) -> Subnet:
    made = generate(shape)
    return Subnet(made.fabric, made.tables, ())


def by_name(subnet: Subnet, samples: int) -> dict[str, PatternThroughput]:
    return {each.pattern: each for each in measure_throughput(subnet, 0, samples)}


def test_a_tree_as_wide_as_its_hosts_passes_shifts_and_all_to_all_whole() -> None:
    found = by_name(make("xgft:2:8,8:1,8"), 20)
    assert found["shift"].pair_least == 1.0
    assert found["all-to-all"].network_mean == 1.0
    assert found["all-to-all"].pair_mean == pytest.approx(1 / 63)
    # Random bisections collide on static routes.
    assert 0.5 < found["bisect"].pair_mean < 0.95


def test_two_hosts_for_each_link_up_halve_it() -> None:
    # A leaf has 16 hosts and 8 uplinks. In a shift by 16, all messages go to the next leaf.
    found = by_name(make("xgft:2:16,8:1,8"), 127)
    assert found["shift"].samples == 127
    assert found["shift"].pair_least == 0.5


@pytest.mark.parametrize("sample", ["testbed44", "oversub-faulty", "quirks-small"])
def test_bisections_are_those_of_a_count_along_traced_routes(sample: str) -> None:
    """As in ORCS, a pair gets 1/n of the bandwidth if its most shared link has n pairs. The result is the mean."""
    subnet = load_sample(sample, IBDIAGNET)
    fabric = subnet.fabric
    lid = find_hosts([fabric]).ends[:, 0].tolist()
    means = []
    for seed in range(3):
        demand = build_pattern(f"pattern:bisect:{seed}", len(lid))
        routes = [
            trace(subnet.routes.network, lid[a], lid[b]).hops
            for a, b in zip(demand.source.tolist(), demand.destination.tolist(), strict=True)
        ]
        meeting = np.zeros((fabric.links, 2))
        for hops in routes:
            for hop in hops:
                meeting[hop.link, hop.end] += 1
        shares = []
        for hops in routes:
            gbps = [fabric.link_gbps[hop.link] for hop in hops]
            shares.append(
                min(each / meeting[hop.link, hop.end] for each, hop in zip(gbps, hops, strict=True)) / min(gbps)
            )
        means.append(math.fsum(shares) / len(shares))
    assert by_name(subnet, 3)["bisect"].pair_mean == pytest.approx(np.mean(means))


def test_the_command_lists_all_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    lst = str(find_sample("testbed44", IBDIAGNET))
    assert layout.main(["--patterns", lst, "--samples", "4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["patterns"]
    assert [row["pattern"] for row in rows] == ["all-to-all", *SEEDED, "shift"]
    assert all(0 < row["pair_least"] <= row["pair_mean"] <= row["pair_most"] <= 1 for row in rows)
    assert layout.main(["--patterns", lst, "--samples", "2"]) == 0
    assert "bisect" in capsys.readouterr().out


@pytest.mark.parametrize("extra", [["pattern:all-to-all"], ["-o", "x.csv"], ["--samples", "0"], ["--check"]])
def test_what_it_has_no_use_for_is_refused(extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["--patterns", str(find_sample("testbed44", IBDIAGNET)), *extra]) in {2, 3}
    assert capsys.readouterr().err


def test_a_pattern_is_a_line_of_shares_in_percent() -> None:
    bisect = PatternThroughput(1, "bisect", 20, 0.5, 0.025, 0.25, 1.0, 0.75, 0.0, 0.75, 0.75, unrouted=0.125)
    shift = PatternThroughput(0, "shift", 3, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, unrouted=0.0)
    head, relative, first, second = describe_patterns([shift, bisect])
    assert "mean +- standard deviation (range)" in head
    assert "the hosts' own links" in relative
    assert first == (
        "rail 0  shift            3 x  100.00% +-  0.00 (100.00 to 100.00)   100.00% +-  0.00 (100.00 to 100.00)"
    )
    assert second == (
        "rail 1  bisect          20 x   50.00% +-  2.50 ( 25.00 to 100.00)    75.00% +-  0.00 ( 75.00 to  75.00)"
        "   12.5% of pairs are not routed"
    )
