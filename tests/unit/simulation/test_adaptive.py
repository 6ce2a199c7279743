# SPDX-License-Identifier: Apache-2.0
"""With adaptive routing, packets take shortest paths, and choose among the least occupied ports at random."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_converter.routing.subnet_routes import NONE
from ibprof_lab.simulation.engine.deadlock import describe_deadlock, find_cycle, refuse_adaptive_deadlock
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, find_minimal_ports, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.cell import Cell, Setting, run_cell, set_up
from ibprof_lab.simulation.workload.workloads import Role, Workload
from ibprof_testing.samples.fabrics import read_subnet

TREE = "xgft:2:4,2:1,4@100"
"""Two leaves of 4 hosts, four switches above them."""


def make(name: str, **changes: float) -> SimulatedNetwork:
    return index_network(read_subnet(name), Hardware(gbps=100, **changes))  # type: ignore[arg-type]


def make_bad_tables(network: SimulatedNetwork) -> None:
    """Change the tables, so that all packets that leave leaf 0 take one port."""
    far = np.flatnonzero(network.host_leaf != network.host_leaf[0])
    network.egress[network.host_leaf[0], far] = network.egress[network.host_leaf[0], far[0]]


def bytes_up(simulation: Simulation) -> list[int]:
    network = simulation.network
    ends = network.port_end[network.host_leaf[0]]
    up = ends[(ends >= 0) & (network.end_to[ends] >= network.hosts)]
    return sorted(simulation.look_at_ends().bytes[up].sum(axis=1).tolist())


@pytest.mark.parametrize(("adaptive", "links"), [(False, 1), (True, 4)])
def test_packets_go_where_there_is_room(adaptive: bool, links: int) -> None:
    """Four hosts send to four other hosts. Bad tables use one of four links, and adaptive routing uses all four."""
    network = make(TREE)
    make_bad_tables(network)
    clients = [Client(host, 0, [Step(host + 4, 1 << 20)]) for host in range(4)]
    simulation = Simulation(network, [Job("all")], clients, adaptive=adaptive)
    simulation.run(network.ticks(2e6))
    gbps = simulation.state.bytes_arrived * 8 / 2e6
    assert gbps == pytest.approx(100 * links, rel=0.05)
    assert sum(each > 0 for each in bytes_up(simulation)) == links


@pytest.mark.parametrize(
    ("name", "ports", "limit"),
    [(TREE, 4, 16.3), ("xgft:2:4,2:1,7@100", 7, 22.5), ("xgft:2:90,2:1,90@100", 90, 136)],
    ids=["4", "7", "90, beyond a word of bits"],
)
def test_a_tie_is_decided_by_lot(name: str, ports: int, limit: float) -> None:
    """A single packet finds empty ports, and takes each with the same probability. Chi-square with ports - 1 degrees of
    freedom exceeds `limit` with probability 0.001. The seed is fixed."""
    network = make(name)
    simulation = Simulation(
        network,
        [Job("one", interval=network.ticks(5000), limit=1000 * ports)],
        [Client(0, 0, [Step(network.hosts - 1, 64)])],
        adaptive=True,
    )
    simulation.run()
    taken = np.array(bytes_up(simulation)) / 64
    assert len(taken) == ports
    assert taken.sum() == 1000 * ports
    assert ((taken - 1000) ** 2 / 1000).sum() < limit


@pytest.mark.parametrize("ports", [7, 90])
def test_all_other_ports_are_taken_before_an_occupied_one(ports: int) -> None:
    """A leaf switch has as many hosts as uplinks. If all hosts send at once, each packet takes a different uplink."""
    network = make(f"xgft:2:{ports},2:1,{ports}@100")
    clients = [Client(host, 0, [Step(host + ports, 4096)]) for host in range(ports)]
    simulation = Simulation(network, [Job("all", limit=1)], clients, adaptive=True)
    simulation.run()
    assert bytes_up(simulation) == [4096] * ports


def test_the_packets_of_a_message_stay_together() -> None:
    """With one choice per message, all packets of a message take one port. Several messages use all ports."""
    network, size = make(TREE, message_step_bytes=4096), 1 << 18
    simulation = Simulation(network, [Job("one", limit=1)], [Client(0, 0, [Step(7, size)])], adaptive=True)
    simulation.run()
    assert bytes_up(simulation) == [0, 0, 0, size]
    many = Simulation(network, [Job("many", limit=400)], [Client(0, 0, [Step(7, size)])], adaptive=True)
    many.run()
    assert all(each % size == 0 for each in bytes_up(many))
    # The standard deviation of the binomial distribution is 8.7 messages.
    assert np.array(bytes_up(many)) / size == pytest.approx([100] * 4, abs=40)


@pytest.mark.parametrize(("step", "links"), [(1, 2), (1 << 20, 1)])
def test_a_message_avoids_ports_that_are_fuller_by_a_step(step: int, links: int) -> None:
    """If `message_step_bytes` is small, a message avoids the port that another host's message occupies; else not."""
    network = make("xgft:2:2,2:1,2@100", message_step_bytes=step)
    counts = set()
    for seed in range(1, 21):
        clients = [Client(host, 0, [Step(host + 2, 1 << 18)], start=1000 * host) for host in range(2)]
        simulation = Simulation(network, [Job("all", limit=1)], clients, seed, adaptive=True)
        simulation.run()
        counts.add(sum(each > 0 for each in bytes_up(simulation)))
    assert min(counts) == links


@pytest.mark.parametrize("name", ["xgft:3:4,4,4:1,4,2@100", "xgft:3:4,4,4:1,2,2@100"])
def test_paths_are_no_longer_than_the_shortest(name: str) -> None:
    network = make(name)
    random = np.random.default_rng(2)
    to = random.permutation(network.hosts)
    clients = [Client(host, 0, [Step(int(to[host]), 100_000)]) for host in range(network.hosts) if to[host] != host]
    hops = []
    for adaptive in (False, True):
        simulation = Simulation(network, [Job("all", limit=3)], clients, adaptive=adaptive)
        simulation.run()
        assert simulation.state.stop == Stop.DONE
        hops.append(simulation.state.packet_hops)
    assert hops[0] == hops[1]


@pytest.mark.parametrize(
    "name", ["xgft:3:4,4,4:1,4,2@100", "xgft:2:4,2:1,4@100", "tree:3,3@100", "xgft:2:32,2:1,32@400"]
)
def test_trees_are_fit_for_it(name: str) -> None:
    refuse_adaptive_deadlock(make(name))


@pytest.mark.parametrize("name", ["torus:6:1@100", "torus:4x4:1@100", "dragonfly:4,2,2@100"])
def test_what_can_lock_up_is_refused_by_name(name: str) -> None:
    network = make(name)
    cycle = find_cycle(network, adaptive=True)
    for here, there in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        end = int(network.end_to[here]) - network.hosts
        assert there in network.port_end[end]
    with pytest.raises(InconsistentError, match=r"adaptive routes can deadlock: '.*' port .* -> the first"):
        refuse_adaptive_deadlock(network)
    workload = Workload("a", Role.PAIRS, 100, share=1)
    cell = Cell(Setting(name, adaptive=True, servers=0), (workload,), ("a",), "a", 1)
    with pytest.raises(InconsistentError, match="adaptive routes can deadlock"):
        set_up(cell)


def test_every_port_of_a_large_switch_is_taken() -> None:
    """Switches have 132 ports, so a set of ports takes three 64-bit words."""
    network = make("xgft:2:66,2:1,66@100")
    clients = [Client(host, 0, [Step((host + 66) % 132, 1 << 20)]) for host in range(132)]
    simulation = Simulation(network, [Job("all", limit=4)], clients, adaptive=True)
    simulation.run()
    assert simulation.state.stop == Stop.DONE
    sent = simulation.look_at_ends().bytes[:, 0]
    upwards = network.port_end[np.unique(network.host_leaf)]
    upwards = upwards[(upwards != NONE) & (network.end_to[upwards] >= network.hosts)]
    assert len(upwards) == 132
    # All ports carry the same bytes, except for random choices among equal ports.
    mean = 4 * (1 << 20)
    assert (np.abs(sent[upwards] / mean - 1) < 0.05).all()


def test_a_deadlock_names_its_circle() -> None:
    """A ring with one virtual lane, and buffers for one packet at each end."""
    network = make("torus:6:1@100", lane_bytes=4096)
    clients = [Client(host, 0, [Step((host + 2) % 6, 1 << 20)]) for host in range(6)]
    stuck = Simulation(network, [Job("all")], clients)
    latency = measure(stuck, np.ones(6, bool), Effort())
    assert not latency.is_settled
    assert latency.note.startswith("deadlock: packets wait for each other in a cycle: '")
    assert stuck.state.stop == Stop.DEADLOCK
    assert describe_deadlock(network, stuck.find_waits()).count(" -> ") == 6


def test_a_torus_runs_with_its_tables() -> None:
    workload = Workload("a", Role.PAIRS, 100_000, share=1)
    setting = Setting("torus:4x4:1@100", servers=0, effort=Effort(messages=5, warm_up=2))
    outcome = run_cell(Cell(setting, (workload,), ("a",), "a", 1))
    assert outcome.latency.is_settled


@pytest.mark.parametrize("name", ["torus:3x4:2", "dragonfly:4,2,2", "xgft:2:4,4:1,2:1,2", "xgft:2:62,2:1,70"])
@pytest.mark.parametrize("cut", [False, True])
def test_ports_on_shortest_paths_are_those_of_networkx(name: str, cut: bool) -> None:
    """With `cut`, all cables of a switch are removed, so no path leads to the switch."""
    network = make(name)
    port_end = network.port_end.copy()
    if cut:
        gone = network.host_leaf[0]
        for switch, port in zip(*np.nonzero(port_end != NONE), strict=True):
            to = int(network.end_to[port_end[switch, port]]) - network.hosts
            if gone in {switch, to} and to >= 0:
                port_end[switch, port] = NONE
        network = replace(network, port_end=port_end)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(network.switches))
    cables = [
        (int(switch), int(port), int(to))
        for switch, port in zip(*np.nonzero(port_end != NONE), strict=True)
        if (to := int(network.end_to[port_end[switch, port]]) - network.hosts) >= 0
    ]
    graph.add_edges_from((switch, to) for switch, _, to in cables)
    found = find_minimal_ports(network)
    for leaf in np.unique(network.host_leaf).tolist():
        distance = nx.single_source_shortest_path_length(graph.reverse(), leaf)
        for switch, port, to in cables:
            nearer = switch in distance and distance[switch] == distance[to] + 1
            assert bool(int(found[switch, leaf, port // 64]) >> port % 64 & 1) == nearer
    leaves = np.unique(network.host_leaf)
    assert not np.delete(found, leaves, axis=1).any()
