# SPDX-License-Identifier: Apache-2.0
"""Each host of a simulation has one role in one job. Jobs on separate switches do not slow each other."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.workload.host_assignment import HostAssignment, assign_hosts, make_clients, order_leaves
from ibprof_lab.simulation.workload.workloads import Role, Workload
from ibprof_testing.samples.fabrics import read_subnet

# 4 pods of 4 leaves with 8 hosts each.
TREE = "xgft:3:8,4,4:1,4,4@100"
PAIRS = Workload("mpi", Role.PAIRS, 4096, interval_ns=100e3)
IO = Workload("io", Role.IO, 1 << 20)


@pytest.fixture(scope="module")
def network() -> SimulatedNetwork:
    return index_network(read_subnet(TREE), Hardware())


def assign(
    network: SimulatedNetwork, servers: ServerPlacement, jobs: JobPlacement, seed: int = 1, count: int = 16
) -> HostAssignment:
    return assign_hosts(network, [IO, PAIRS], count, servers, jobs, np.random.default_rng(seed))


def test_every_host_has_one_use(network: SimulatedNetwork) -> None:
    for servers in ServerPlacement:
        for jobs in JobPlacement:
            assigned = assign(network, servers, jobs)
            taken = np.concatenate([assigned.servers, *assigned.jobs])
            assert len(np.unique(taken)) == len(taken) == 128
            assert [len(each) for each in (assigned.servers, *assigned.jobs)] == [16, 56, 56]


def test_servers_are_where_they_belong(network: SimulatedNetwork) -> None:
    leaves = order_leaves(network)
    at = {int(host): leaf for leaf, hosts in enumerate(leaves) for host in hosts}
    isolated = assign(network, ServerPlacement.ISOLATED, JobPlacement.RANDOM_NODE).servers
    assert {at[int(host)] for host in isolated} == {7, 15}
    spread = assign(network, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE).servers
    assert sorted(at[int(host)] for host in spread) == list(range(16))
    assert all(int(host) == leaves[at[int(host)]][-1] for host in spread)
    twice = [
        assign(network, ServerPlacement.RANDOM, JobPlacement.RANDOM_NODE, seed).servers.tolist() for seed in (1, 2)
    ]
    assert twice[0] != twice[1]


def test_a_switch_is_given_to_one_job(network: SimulatedNetwork) -> None:
    assigned = assign(network, ServerPlacement.ISOLATED, JobPlacement.RANDOM_SWITCH)
    on = [set(network.host_leaf[hosts].tolist()) for hosts in assigned.jobs]
    assert len(on[0] & on[1]) == 0


def test_pairs_are_pairs_and_clients_begin_at_different_servers(network: SimulatedNetwork) -> None:
    assigned = assign(network, ServerPlacement.ISOLATED, JobPlacement.RANDOM_NODE)
    jobs, clients = make_clients(network, [IO, PAIRS], assigned, ["mpi"], seed=1)
    assert [job.sampled for job in jobs] == [False, True]
    partner = {client.host: client.steps[0].host for client in clients if client.job == 1}
    assert all(partner[partner[host]] == host != partner[host] for host in partner)
    begins = [client.next for client in clients if client.job == 0]
    assert len(set(begins)) > 8
    assert {len(client.steps) for client in clients if client.job == 0} == {16}


def test_all_to_all_ends(network: SimulatedNetwork) -> None:
    """Clients wait for the messages of their round, so a wrong schedule would never end."""
    workload = Workload("a2a", Role.ALL_TO_ALL, 3000, share=0.25, limit=2 * 31)
    random = np.random.default_rng(1)
    assigned = assign_hosts(network, [workload], 0, ServerPlacement.RANDOM, JobPlacement.RANDOM_NODE, random)
    simulation = Simulation(network, *make_clients(network, [workload], assigned, ["a2a"], seed=1))
    simulation.run()
    assert simulation.state.stop == Stop.DONE
    assert simulation.look_at_clients().steps.tolist() == [62] * 32
    assert simulation.state.bytes_arrived == 32 * 62 * 3000


@pytest.mark.parametrize(
    ("workloads", "servers", "said"),
    [
        ([IO], 0, "needs servers"),
        ([IO], 128, "fewer than 128"),
        ([IO, PAIRS, PAIRS], 4, "more than 1"),
        ([Workload("mpi", Role.PAIRS, 1, share=0.001)], 0, "too small"),
    ],
)
def test_what_cannot_be(network: SimulatedNetwork, workloads: list[Workload], servers: int, said: str) -> None:
    random = np.random.default_rng(1)

    def set_up() -> None:
        assigned = assign_hosts(network, workloads, servers, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, random)
        make_clients(network, workloads, assigned, [], seed=1)

    with pytest.raises(InconsistentError, match=said):
        set_up()


def test_isolation_shows() -> None:
    """Jobs on random hosts slow each other. On this fabric, jobs on whole leaf switches do not slow each other."""
    tree = index_network(read_subnet("xgft:3:8,8,4:1,8,2:1,1,4@100"), Hardware())

    def mean(workloads: list[Workload], placement: JobPlacement) -> float:
        assigned = assign_hosts(tree, [IO, PAIRS], 16, ServerPlacement.ISOLATED, placement, np.random.default_rng(2))
        kept = HostAssignment(assigned.servers, tuple(assigned.jobs[[IO, PAIRS].index(each)] for each in workloads))
        jobs, clients = make_clients(tree, workloads, kept, ["mpi"], seed=2)
        of_pairs = np.array([jobs[client.job].name == "mpi" for client in clients])
        latency = measure(Simulation(tree, jobs, clients), of_pairs, Effort(messages=10, background=3))
        assert latency.is_settled
        return latency.mean

    slowdown = {placement: mean([IO, PAIRS], placement) / mean([PAIRS], placement) for placement in JobPlacement}
    assert slowdown[JobPlacement.RANDOM_SWITCH] == pytest.approx(1, abs=0.05)
    assert slowdown[JobPlacement.RANDOM_NODE] > 2
