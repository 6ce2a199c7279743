# SPDX-License-Identifier: Apache-2.0
"""Paths that the search computes on demand equal the paths of single packets, and need little memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ibprof_converter.placement.slots import assign_slots
from ibprof_converter.placement.switch_paths import NO_END, find_switch_paths
from ibprof_converter.routing.spread import trace
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.many_adapters import make_subnet

SAMPLES = (("testbed44",), ("oversub-faulty",), ("xgft3-1296-partial",), ("dualrail/rail1", "dualrail/rail2"))

HALF_GIGABYTE_KIB = 500_000

MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss)
"""
"""Starts a command from a small process, because a child's peak memory includes its parent's memory."""


def traced(subnet: Subnet, source: int, destination: int) -> list[int] | None:
    """Return the link directions on a packet's path; None if the packet does not arrive."""
    path = trace(subnet.routes.network, source, destination)
    if not path.reason.arrives:
        return None
    return [2 * hop.link + hop.end for hop in path.hops]


def check_paths(subnets: Sequence[Subnet], lid: npt.NDArray[np.int32]) -> None:
    """For random pairs, compare the path, its length, and its first and last switch link with a packet's path."""
    paths = find_switch_paths(subnets, lid)
    draw = np.random.default_rng(1)
    first_rail = [next(rail for rail, other in enumerate(subnets) if other is subnet) for subnet in subnets]
    for rail, subnet in enumerate(subnets):
        for source, destination in draw.integers(len(lid), size=(200, 2)).tolist():
            if source == destination:
                continue
            expected = traced(subnet, int(lid[source, rail]), int(lid[destination, rail]))
            found = paths.between(rail, source, destination)
            if expected is None:
                assert found.tolist() == [paths.no_route]
            else:
                own = [paths.out_of_port[rail, source], paths.into_port[rail, destination]]
                assert paths.direction[found].tolist() == expected
                assert [found[0], found[-1]] == own
                assert (found[1:-1] < paths.between_switches).all()
                assert (np.array(own) >= paths.between_switches).all()
                assert (paths.rail[found] == first_rail[rail]).all()
                expected = expected[1:-1]
            leaf, port = paths.leaf_of_port[rail, [source]], np.array([destination])
            assert paths.lengths(rail, leaf, port)[0] == (1 if expected is None else len(expected))
            first, last = (int(each[0]) for each in paths.borders(rail, leaf, port))
            if not expected:
                assert first == last == NO_END
            else:
                assert [paths.direction[first], paths.direction[last]] == [expected[0], expected[-1]]


@pytest.mark.parametrize("samples", SAMPLES, ids=lambda samples: samples[0])
def test_paths_lengths_and_borders_are_those_of_single_packets(samples: tuple[str, ...]) -> None:
    subnets = [load_sample(sample, IBDIAGNET) for sample in samples]
    check_paths(subnets, find_hosts([subnet.fabric for subnet in subnets]).lid)


def test_rails_of_one_subnet_share_their_link_directions() -> None:
    """Each adapter is a rail of the search. Link directions that several rails share are listed once."""
    subnet = make_subnet()
    hosts = find_hosts([subnet.fabric])
    gpus = {number: 1 for number, name in enumerate(hosts.name) if name.startswith("gpu")}
    slots = assign_slots(hosts, gpus, 4, adapter_policies.SPREAD)
    rails = slots.rails_among([subnet])
    assert len(rails) == 8
    check_paths(rails, slots.lid)
    paths = find_switch_paths(rails, slots.lid)
    assert len(np.unique(paths.direction[:-1])) == len(paths.direction) - 1


@pytest.mark.parametrize("command", ["report", pytest.param("place", marks=pytest.mark.full)])
def test_a_job_on_a_large_fabric_takes_less_than_half_a_gigabyte(tmp_path: Path, command: str) -> None:
    """The fabric has 11,664 hosts, and the job has 512 ranks with 30 peers each.

    The network is the bottleneck, so other placements are searched.
    """
    draw = np.random.default_rng(1)
    steps = draw.integers(1, 512, (512, 30)).tolist()
    rows = [f"{rank},{(rank + step) % 512},{step * 1000},1" for rank in range(512) for step in steps[rank]]
    (tmp_path / "job.csv").write_text("\n".join(["src,dst,bytes,messages", *dict.fromkeys(rows)]))
    words = [sys.executable, "-m", "ibprof", command, "xgft:3:18,18,36:1,6,6", "job.csv"]
    words += ["--placement", "random:1"] if command == "report" else ["--time", "0.5"]
    ended = subprocess.run([sys.executable, "-c", MEASURE, *words], cwd=tmp_path, stdout=-1, text=True, check=True)
    status, kib = map(int, ended.stdout.split())
    assert status == 0
    assert kib < HALF_GIGABYTE_KIB
