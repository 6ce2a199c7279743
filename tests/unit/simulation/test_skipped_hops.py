# SPDX-License-Identifier: Apache-2.0
"""Hops where no other packet can cause a delay are skipped. No time of a message changes, even by a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.deadlock import assign_lanes
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, State, Step
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.study.cell import Cell, set_up
from ibprof_lab.simulation.workload.host_assignment import assign_hosts, make_clients
from ibprof_lab.simulation.workload.workloads import IO, MPI, Workload
from ibprof_testing.samples.fabrics import read_subnet
from ibprof_testing.samples.simulated_jobs import KIB, SMALL, US, io, mpi

FINE = Hardware(gbps=100.0, tick_ns=0.0001)
"""Short ticks rarely have two events, whose order would be undefined."""


def make(name: str = "xgft:2:8,8:1,8@100", nic_gap_ns: float = 0.0) -> SimulatedNetwork:
    """Return a fabric with different delays of link directions, so that packets arrive in different ticks."""
    network = index_network(read_subnet(name), replace(FINE, nic_gap_ns=nic_gap_ns))
    more = np.random.default_rng(1).integers(network.ticks(20), size=len(network.end_delay))
    return replace(network, end_delay=(network.end_delay + more).astype(np.uint32))


def run(
    network: SimulatedNetwork, jobs: Sequence[Job], clients: Sequence[Client], skip: bool, until: int | None = None
) -> tuple[npt.NDArray[Any], State]:
    simulation = Simulation(network, jobs, clients, skip_hops=skip)
    assert simulation.skips_hops == skip
    return simulation.run(until).copy(), simulation.state


@pytest.mark.parametrize(
    ("jobs", "skipped"),
    [
        ((mpi(64 * KIB, 10 * US), io(128 * KIB, 500 * US)), 0.5),
        ((mpi(64 * KIB, 100 * US), io(256 * KIB)), 0.4),
        ((mpi(4 * KIB, 5 * US), io(64 * KIB, 50 * US)), 0.1),
        ((mpi(10_000, 10 * US), io(30_000, 50 * US)), 0.0),
        ((mpi(1 << 20),), 0.5),
    ],
    ids=["dense pairs", "congested servers", "short pairs", "shorter last packets", "pairs alone"],
)
def test_every_message_is_as_with_every_hop(jobs: tuple[Workload, ...], skipped: float) -> None:
    network = make()
    hosts = assign_hosts(network, jobs, 8, ServerPlacement.ISOLATED, JobPlacement.RANDOM_NODE, np.random.default_rng(1))
    arguments = network, *make_clients(network, jobs, hosts, [each.name for each in jobs], seed=1)
    every, all_hops = run(*arguments, skip=False, until=network.ticks(2e6))
    some, fewer = run(*arguments, skip=True, until=network.ticks(2e6))
    assert len(every) > 80
    assert (some == every).all()
    assert all_hops.skipped_hops == 0
    assert fewer.skipped_hops >= skipped * fewer.packet_hops


@pytest.mark.parametrize("second", [(0, 60), (1, 60), (9, 63), (20, 63), (0, 3)])
@pytest.mark.parametrize(("packets", "gap_ns"), [(1, 0), (5, 0), (40, 0), (1, 5000), (5, 70)])
def test_a_message_that_comes_later_is_met_where_it_is(second: tuple[int, int], packets: int, gap_ns: float) -> None:
    """The second message shares a host, the leaf's link, the destination's links or no link with the first message."""
    network, (source, destination) = make(nic_gap_ns=gap_ns), second
    jobs = [Job("jobs", limit=2)]
    for after_ns in np.linspace(0, 16_000, 41):
        clients = [
            Client(0, 0, [Step(63, 40 * 4096)], start=7),
            Client(source, 0, [Step(destination, packets * 4096)], start=1234 + network.ticks(after_ns)),
        ]
        every, some = (run(network, jobs, clients, skip) for skip in (False, True))
        assert (some[0] == every[0]).all()
        assert some[1].packet_hops == every[1].packet_hops
        assert some[1].skipped_hops > 0


def test_loads_of_links_are_not_counted() -> None:
    simulation = Simulation(make(), [Job("one", limit=1)], [Client(0, 0, [Step(9, 1000)])], skip_hops=True)
    simulation.run()
    with pytest.raises(ValueError, match="every hop"):
        simulation.look_at_ends()


def test_no_hop_is_skipped_where_routes_are_not_known_before() -> None:
    """No hop is skipped with adaptive routing, with several virtual lanes, or with reads."""
    network, ring = make(), make("torus:6:1@100")
    client = [Client(0, 0, [Step(3, 1000)])]
    plain, reads = [Job("one", limit=1)], [Job("one", limit=1, reads=64)]
    assert not Simulation(network, plain, client, adaptive=True, skip_hops=True).skips_hops
    assert not Simulation(ring, plain, client, lanes=assign_lanes(ring), skip_hops=True).skips_hops
    assert not Simulation(network, reads, client, skip_hops=True).skips_hops


def test_a_cell_skips_hops_unless_its_links_are_looked_at() -> None:
    cell = Cell(SMALL, (mpi(), io()), (MPI, IO), MPI, 1)
    assert set_up(cell, skip_hops=True).simulation.skips_hops
    assert not set_up(cell).simulation.skips_hops
